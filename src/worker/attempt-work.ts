// Steps five to seven of an attempt: inputs, command, and the look at what it left.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import { type AttemptContext, type Intent, identityOf } from './attempt-context.ts';
import { makeFolders, type Prepared, prepareCommand, takesStdout } from './attempt-prepare.ts';
import { buildResult, type Failure, failureOf, judgeNotStarted, noStreams } from './command-result.ts';
import { examineCommand, spawnRequestOf } from './command-run.ts';
import { downloadInputs, type InputsEnd, type PageEnd } from './inputs.ts';
import type { OutputFile } from './outputs.ts';
import type { Deliverable } from './result-delivery.ts';
import type { CommandEnd } from './spawn-protocol.ts';
import type { RunningCommand } from './spawner.ts';

export type WorkEnd =
  | { kind: 'result'; deliverable: Deliverable }
  /** Ended without a result of its own, for a reason that lies with this worker. */
  | { kind: 'interrupted'; detail: string }
  /** Ended because of the intent, which the caller knows. */
  | { kind: 'ended' };

export interface WorkControl {
  intent(): Intent | null;
  /** The command runs from here on; until then only `interrupted` ends the work. */
  running(command: RunningCommand): void;
}

/** @throws the system's errors of this worker's own disk. */
export async function work(
  context: AttemptContext,
  control: WorkControl,
  secrets: Readonly<Record<string, string>>,
): Promise<WorkEnd> {
  const { message, folders, parts } = context;
  await makeFolders(context);
  const transfer = {
    page: (input: string, after: string | null) => askPage(context, input, after),
    signal: AbortSignal.any([context.interrupted, parts.signal]),
    forMs: parts.config.transferForMs,
    retryFirstMs: parts.config.retryFirstMs,
    retryMaxMs: parts.config.retryMaxMs,
  };
  const held: string[] = [];
  try {
    const end = await downloadInputs(message.inputs, folders, parts.shared, transfer, held);
    return await runWithInputs(context, control, secrets, end);
  } finally {
    for (const digest of held) await parts.shared.release(digest);
  }
}

async function runWithInputs(
  context: AttemptContext,
  control: WorkControl,
  secrets: Readonly<Record<string, string>>,
  inputs: InputsEnd,
): Promise<WorkEnd> {
  if (inputs.kind === 'unreachable') return { kind: 'interrupted', detail: inputs.message };
  if (inputs.kind === 'aborted' || control.intent() !== null) return withoutStart(context, control, null);
  if (inputs.kind === 'unavailable')
    return withoutStart(context, control, failureOf(failureCodes.inputUnavailable, inputs.message));

  const prepared = await prepareCommand(context, inputs.paths);
  if ('problem' in prepared) return withoutStart(context, control, prepared.problem);
  const end = await run(context, control, { ...prepared, env: { ...prepared.env, ...secrets } });
  switch (end.kind) {
    case 'helper_lost':
      return { kind: 'interrupted', detail: 'the spawn helper was killed, and the command with it' };
    case 'not_started':
      return couldNotStart(context, control, prepared, end);
    case 'exited':
      return examine(context, control, end);
    default:
      return end satisfies never;
  }
}

async function askPage(context: AttemptContext, input: string, after: string | null): Promise<PageEnd> {
  const { parts, message, interrupted } = context;
  for (let tried = 0; !interrupted.aborted && !parts.signal.aborted; tried += 1) {
    const outcome = await parts.api.inputs(message.credential, { ...identityOf(context), input, after });
    if (outcome.kind === 'answer') return { kind: 'page', page: outcome.value };
    if (outcome.kind === 'refused')
      return { kind: 'unavailable', message: `input ${input}: ${outcome.detail}` };
    // The attempt is ours: it waits as long as the api is away, and nobody pulls more meanwhile.
    parts.gate.shut();
    await pause(
      jittered(backoffMs(tried, parts.config.retryFirstMs, parts.config.retryMaxMs), Math.random()),
      interrupted,
    );
  }
  return { kind: 'aborted' };
}

async function run(context: AttemptContext, control: WorkControl, prepared: Prepared) {
  const { parts, log } = context;
  const command = parts.spawner.run(spawnRequestOf(context, prepared), (pid) =>
    log.info(
      { operation: 'command_started', program: prepared.argv[0], processGroup: pid },
      'command started',
    ),
  );
  control.running(command);
  return await command.ended;
}

/** Nothing ran: a failure to report, or an intent that the caller carries out; a cancel still wants its result. */
function withoutStart(context: AttemptContext, control: WorkControl, failure: Failure): WorkEnd {
  const intent = control.intent();
  if (intent !== null && intent.kind !== 'cancel') return { kind: 'ended' };
  if (intent === null && failure === null) return { kind: 'ended' };
  const verdict =
    intent === null
      ? { outcome: 'not_started' as const, failure }
      : {
          outcome: 'cancelled' as const,
          failure: failureOf(failureCodes.scanCancelled, 'cancelled before it ran'),
        };
  return resultOf(context, verdict, { exitCode: null, signal: null, durationMs: 0, ...noStreams }, []);
}

function couldNotStart(
  context: AttemptContext,
  control: WorkControl,
  prepared: Prepared,
  end: Extract<CommandEnd, { kind: 'not_started' }>,
): WorkEnd {
  const { config } = context.parts;
  const failure = judgeNotStarted(end, {
    program: prepared.argv[0] ?? '',
    worker: config.name,
    image: config.image,
    tag: context.message.tag,
    path: prepared.env.PATH ?? '',
  });
  if (failure === 'lack')
    return { kind: 'interrupted', detail: `this machine could not start it: ${end.message}` };
  return withoutStart(context, control, failure);
}

async function examine(
  context: AttemptContext,
  control: WorkControl,
  end: Extract<CommandEnd, { kind: 'exited' }>,
): Promise<WorkEnd> {
  const { log } = context;
  if (await endedWithTheWorker(context, control, end))
    return {
      kind: 'interrupted',
      detail: `${end.signal}, which this worker did not send, ended the command while the worker ends`,
    };
  const intent = control.intent();
  if (intent !== null && intent.kind !== 'cancel') return { kind: 'ended' };
  const { files, verdict } = await examineCommand(context, end, intent !== null);
  const { exitCode, signal, durationMs } = end;
  log.info(
    {
      operation: 'command_ended',
      outcome: verdict.outcome,
      failure: verdict.failure?.code,
      exitCode,
      signal,
      durationMs,
      files: files.length,
    },
    'command ended',
  );
  return resultOf(context, verdict, end, files);
}

/** What a supervisor or the machine's own end sends to every process. */
const endSignals: ReadonlySet<unknown> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL']);
/** The command's end may be heard before the worker's own signal. */
const ownSignalWithinMs = 1_000;

/** A supervisor that ends every process of the worker, or a machine that goes down, does not wait for a drain. */
async function endedWithTheWorker(
  { parts }: AttemptContext,
  control: WorkControl,
  end: Extract<CommandEnd, { kind: 'exited' }>,
): Promise<boolean> {
  if (control.intent() !== null || end.timedOut || !endSignals.has(end.signal)) return false;
  await pause(ownSignalWithinMs, parts.draining);
  return parts.draining.aborted && control.intent() === null;
}

function resultOf(
  context: AttemptContext,
  verdict: Parameters<typeof buildResult>[1],
  command: Omit<Parameters<typeof buildResult>[2], 'stdoutDeclared'>,
  files: readonly OutputFile[],
): WorkEnd {
  const { v: _, ...identity } = identityOf(context);
  const stdoutDeclared = takesStdout(context);
  return {
    kind: 'result',
    deliverable: {
      credential: context.message.credential,
      files,
      result: (uploaded, refusal) =>
        buildResult(
          identity,
          // A bad end of the command outweighs what befell its outputs.
          refusal === null || verdict.outcome !== 'completed'
            ? verdict
            : { outcome: 'failed', failure: failureOf(failureCodes.outputRefused, refusal) },
          { ...command, stdoutDeclared },
          uploaded.map(({ entry }) => entry),
        ),
    },
  };
}
