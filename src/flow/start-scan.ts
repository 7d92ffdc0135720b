// A scan begins: inputs and scope are checked, then one transaction makes the scan, its inputs and its steps.
import { createHash } from 'node:crypto';
import type { Definition, Scope } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { StartScan } from '#sonar/contracts/scan-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import { resolveInputs } from '#sonar/definition/input-values.ts';
import { canonicalJson } from '#sonar/domain/inventory-fold.ts';
import { parseScope } from '#sonar/domain/scope.ts';
import { scanInputsOf } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { latestRevision } from '#sonar/stores/definitions.ts';
import { findScan, findScanByKey, insertScan, insertScanInput, type ScanRow } from '#sonar/stores/scans.ts';
import { insertSteps } from '#sonar/stores/steps.ts';
import { knownFiles } from '#sonar/stores/stored-files.ts';

export interface NewInput {
  name: string;
  type: string;
  content: string;
  /** Of an input that was stored before: a file, or the lines of a list. */
  fileSha256: string | null;
}
type Problem = { path: string; message: string; hint?: string | null };

/**
 * Idempotent on the client key: the same request again answers the scan there is (`created: false`).
 * @throws SonarError `not_found` (no such definition), `invalid` (all faults of inputs and scope at once),
 * `conflict` (the key belongs to another request).
 */
export async function startScan(
  database: Database,
  workspaceId: string,
  request: StartScan,
): Promise<{ scan: ScanRow; created: boolean }> {
  const requestSha256 = hashOf(request);
  // Before anything is judged: a newer revision must not make another answer of a request that was taken.
  const known =
    request.clientKey === undefined
      ? undefined
      : await findScanByKey(database, workspaceId, request.clientKey);
  if (known) return again(known, request, requestSha256);
  const revision = await latestRevision(database, workspaceId, request.definition);
  if (!revision)
    throw new SonarError(
      'not_found',
      `there is no definition "${request.definition}"; apply it with: sonar definition apply FILE`,
    );
  const { inputs, scope } = await judgeRequest(database, workspaceId, revision.compiled, request);

  const scanId = newId<ScanId>();
  const created = await database.transaction(async (tx) => {
    const inserted = await insertScan(tx, {
      scanId,
      workspaceId,
      name: request.name ?? request.definition,
      clientKey: request.clientKey ?? null,
      requestSha256,
      definitionName: revision.name,
      definitionRevision: revision.revision,
      pinned: request.pin ?? false,
      scope,
    });
    if (!inserted) return false;
    const owner = { scanId, workspaceId };
    for (const input of inputs) await insertScanInput(tx, owner, input);
    await insertSteps(
      tx,
      owner,
      revision.compiled.steps.map((step) => step.name),
      revision.revision,
    );
    return true;
  });
  const scan = created
    ? await findScan(database, scanId)
    : await findScanByKey(database, workspaceId, request.clientKey ?? '');
  if (!scan) throw new SonarError('internal', `scan ${scanId} was made and is gone`);
  return created ? { scan, created } : again(scan, request, requestSha256);
}

/**
 * What a definition makes of the inputs and the scope that it is given.
 * @throws SonarError `invalid` with all faults at once.
 */
export async function judgeRequest(
  database: Database,
  workspaceId: string,
  definition: Definition,
  request: Pick<StartScan, 'inputs' | 'scope'>,
): Promise<{ inputs: NewInput[]; scope: Scope }> {
  const problems: Problem[] = [];
  const inputs = readInputs(definition, request.inputs ?? {}, problems);
  await checkFiles(database, workspaceId, inputs, problems);
  const scope = readScope(definition, request.scope, problems);
  if (problems.length > 0 || !scope)
    throw new SonarError('invalid', summary(problems), { details: { problems } });
  return { inputs, scope };
}

/** Of the request as it was made, before defaults of any revision are put in. */
function hashOf({ definition, name, inputs, scope, pin }: StartScan): string {
  const asked = { allow: scope?.allow ?? [], deny: scope?.deny ?? [] };
  const request = [definition, name ?? null, inputs ?? {}, scope ? asked : null, pin ?? false];
  return createHash('sha256').update(canonicalJson(request)).digest('hex');
}

function again(scan: ScanRow, request: StartScan, requestSha256: string): { scan: ScanRow; created: false } {
  if (scan.request_sha256 === requestSha256) return { scan, created: false };
  throw new SonarError(
    'conflict',
    `client key "${request.clientKey}" belongs to scan ${scan.scan_id}, which was started with another request; take another key`,
  );
}

function summary(problems: Problem[]): string {
  return problems
    .map((problem) => `${problem.path}: ${problem.message}${problem.hint ? ` (${problem.hint})` : ''}`)
    .join('; ');
}

function readScope(
  definition: Definition,
  given: StartScan['scope'],
  problems: Problem[],
): Scope | undefined {
  const scope = given ? { allow: given.allow, deny: given.deny ?? [] } : definition.scope;
  if (!scope) {
    problems.push({
      path: 'scope',
      message: 'the scan has no scope',
      hint: 'say what may be scanned: --allow example.com, or scope in the definition',
    });
    return undefined;
  }
  const parsed = parseScope(scope);
  if (!parsed.ok)
    problems.push(...parsed.problems.map((problem) => ({ ...problem, path: `scope.${problem.path}` })));
  return scope;
}

function readInputs(
  definition: Definition,
  given: NonNullable<StartScan['inputs']>,
  problems: Problem[],
): NewInput[] {
  const resolved = resolveInputs(definition, given);
  if (!resolved.ok) {
    problems.push(
      ...resolved.problems.map(({ input, ...problem }) => ({ ...problem, path: `inputs.${input}` })),
    );
    return [];
  }
  problems.push(...storedInCommands(definition, resolved.inputs));
  return Object.entries(resolved.inputs).map(([name, value]) => {
    const type = definition.inputs[name]?.type ?? 'text';
    if (typeof value === 'string') return { name, type, content: value, fileSha256: null };
    return Array.isArray(value)
      ? { name, type, content: value.join('\n'), fileSha256: null }
      : { name, type, content: '', fileSha256: value.sha256 };
  });
}

/** A stored list may have a million lines: steps go through it, and none puts it on a command line. */
function storedInCommands(definition: Definition, inputs: Record<string, unknown>): Problem[] {
  return definition.steps.flatMap((step) =>
    scanInputsOf(step)
      .filter((name) => isStored(inputs[name]))
      .map((name) => ({
        path: `inputs.${name}`,
        message: `is a stored file, and step ${step.name} names it in a template`,
        hint: 'give the list in the request itself, or let the step read it through `foreach` or `inputs`',
      })),
  );
}

const isStored = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Files are named by their hash, and must have been stored before. */
async function checkFiles(
  database: Database,
  workspaceId: string,
  inputs: readonly NewInput[],
  problems: Problem[],
): Promise<void> {
  const digests = inputs.flatMap(({ fileSha256 }) => (fileSha256 === null ? [] : [fileSha256]));
  if (digests.length === 0) return;
  const known = await knownFiles(database, workspaceId, digests);
  for (const { name, fileSha256 } of inputs)
    if (fileSha256 !== null && !known.has(fileSha256))
      problems.push({
        path: `inputs.${name}`,
        message: `no file with SHA-256 ${fileSha256} is stored`,
        hint: 'upload it by POST /v1/files first',
      });
}
