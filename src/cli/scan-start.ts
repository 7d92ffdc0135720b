import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { namePattern } from '#sonar/contracts/names.ts';
import type { ScanView, StartScan } from '#sonar/contracts/scan-api.ts';
import { isSonarError, SonarError } from '#sonar/platform/errors.ts';
import type { ApiClient } from './api-client.ts';
import { type ExitCode, exitCodes, scanExitCode } from './exit-codes.ts';
import { followScan, lastSeen, summaryOf } from './follow-scan.ts';
import { divideInputs, uploadLists } from './large-lists.ts';
import { safeText } from './safe-text.ts';
import { parseInputs, parseScope } from './scan-inputs.ts';
import type { Session } from './session.ts';
import { watchScan } from './watch-scan.ts';

export interface StartOptions {
  input?: string[];
  file?: string[];
  allow?: string[];
  deny?: string[];
  scope?: string;
  name?: string;
  key?: string;
  pin?: boolean;
  wait?: boolean;
}

/** `sonar scan start`. */
export async function startScan(
  session: Session,
  definition: string,
  options: StartOptions,
): Promise<ExitCode> {
  const { workingDirectory } = session.surroundings;
  const { small, large } = divideInputs(options.input ?? [], workingDirectory);
  const body = startBody(definition, { ...options, input: small }, workingDirectory);
  const client = await session.api();
  Object.assign(
    body.inputs ?? {},
    await uploadLists(client, large, workingDirectory),
    await uploadInputs(session, client, options.file ?? []),
  );
  return begin(session, client, body, options.wait ?? false);
}

/** Starts the scan that the body asks for, and watches it to its end where that is wanted. */
export async function begin(
  session: Session,
  client: ApiClient,
  body: StartScan,
  wait: boolean,
): Promise<ExitCode> {
  const scan = await client.startScan(body).catch((error: unknown) => {
    throw withWayOut(error, body.definition, body.clientKey as string);
  });
  if (wait) {
    session.hint(`scan ${scan.id} of ${safeText(scan.definition)}`);
    return watchToItsEnd(session, scan.id, true);
  }
  session.answer(scan, startedLines);
  return exitCodes.ok;
}

/**
 * The body of a start. It always carries a client key, so that after an answer that was lost the same
 * command can be given again without starting a second scan.
 */
export function startBody(definition: string, options: StartOptions, workingDirectory: string): StartScan {
  if (!namePattern.test(definition))
    throw new SonarError(
      'usage',
      /[./\\]/.test(definition)
        ? `"${definition}" looks like a file, but a scan is started by the name of an applied definition; apply it first: sonar definition apply ${definition}`
        : `"${definition}" cannot be the name of a definition; "sonar definition list" shows those there are`,
    );
  const scope = parseScope(options, workingDirectory);
  return {
    definition,
    clientKey: options.key ?? `cli-${randomUUID()}`,
    inputs: parseInputs(options.input ?? [], workingDirectory),
    pin: options.pin ?? false,
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/** Inputs of type `file` and lists, by the hash under which they are stored. */
export async function uploadInputs(
  session: Session,
  client: ApiClient,
  words: readonly string[],
): Promise<Record<string, { sha256: string }>> {
  const inputs: [string, { sha256: string }][] = [];
  for (const word of words) {
    const at = word.indexOf('=');
    if (at <= 0) throw new SonarError('usage', `--file ${word}: write it as name=path`);
    const name = word.slice(0, at);
    const file = resolve(session.surroundings.workingDirectory, word.slice(at + 1));
    const { uploadFile } = await import('./file-upload.ts');
    inputs.push([name, { sha256: await uploadFile(client, file, `--file ${name}`) }]);
  }
  return Object.fromEntries(inputs);
}

function withWayOut(error: unknown, definition: string, key: string): unknown {
  if (isSonarError(error, 'not_found'))
    return new SonarError(
      error.code,
      `${error.message}; "sonar definition list" shows the definitions, "sonar definition apply FILE" adds ${definition}`,
      { cause: error, details: error.details },
    );
  const refused =
    isSonarError(error) && ['ECONNREFUSED', 'ENOTFOUND'].includes(String(error.details.network));
  if (isSonarError(error, 'unreachable') && !refused)
    return new SonarError(
      error.code,
      `${error.message}\nThe scan may have been started all the same: give the command again with --key ${key}, which starts no second one`,
      { cause: error, details: error.details },
    );
  return error;
}

function startedLines(scan: ScanView): string[] {
  return [`${scan.id} is ${scan.status}`, `see its progress with: sonar scan watch ${scan.id}`];
}

/** Watches a scan until it ends and gives the exit code of its state; Ctrl-C leaves the scan running. */
export async function watchToItsEnd(session: Session, id: string, reached: boolean): Promise<ExitCode> {
  const { stdout, environment, onInterrupt } = session.surroundings;
  const interruption = new AbortController();
  const client = await session.api(interruption.signal);
  const settled = onInterrupt(() => interruption.abort());
  try {
    const events = watchScan(client, id, { signal: interruption.signal, reached });
    const last = session.json ? await lastSeen(events) : await followScan(events, stdout, { environment });
    const code = last === null ? null : scanExitCode(last.status);
    if (last === null || code === null) {
      const shown = last?.id ?? id;
      session.hint(
        `the scan goes on; "sonar scan watch ${shown}" shows it, "sonar scan cancel ${shown}" ends it`,
      );
      return exitCodes.interrupted;
    }
    session.answer(last, (detail) => [summaryOf(detail, Date.now())]);
    if (last.steps.some((step) => step.counts.failed > 0))
      session.hint(
        `what failed: sonar task list --scan ${last.id} --status Failed; what it said: sonar task logs ID`,
      );
    if (Object.keys(last.records).length > 0)
      session.hint(`what was found: sonar inventory list --scan ${last.id}`);
    return code;
  } finally {
    settled();
  }
}
