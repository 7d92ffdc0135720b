// Groups and batches: what an expansion has staged becomes tasks. Files are stored before the transaction that
// names them, under their own hash, so a crash between the two leaves nothing but bytes that are stored again.
import type { ForeachSpec, JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import { batchInput, inputObjectKey } from '#sonar/contracts/names.ts';
import { GroupFold, maxGroupBytes } from '#sonar/domain/group-fold.ts';
import { type StreamFile, targetFault } from '#sonar/domain/judge-item.ts';
import { lineOf } from '#sonar/domain/list-line.ts';
import { fieldAt } from '#sonar/domain/records-path.ts';
import { safeSample } from '#sonar/domain/records-storable.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import {
  dropGroups,
  dropRowsTo,
  groupRows,
  nextGroups,
  type StagedRow,
  stagedRows,
} from '#sonar/stores/expansions.ts';
import {
  commitExpansion,
  type ExpandedTask,
  type Expanding,
  type ExpandParts,
  here,
  type Progress,
} from './commit-expansion.ts';
import { InputSpool } from './input-spool.ts';

const rowsPerPage = 2_000;
const batchesPerTransaction = 50;
const batchesAtOnce = 8;
const groupsPerTransaction = 50;

/** Until nothing that is staged is left or `signal` aborts. */
export async function makeStagedTasks(
  parts: ExpandParts,
  expanding: Expanding,
  signal: AbortSignal,
): Promise<Progress> {
  const { foreach, expansion } = expanding;
  let made = 0;
  for (;;) {
    const portion =
      foreach.group === null
        ? await nextBatches(parts, expanding, foreach.batch)
        : await groupsToTasks(parts, expanding, foreach.group);
    const committed = await commitExpansion(parts, expanding, {
      ...here(expansion),
      nextGroup: expansion.next_group + portion.tasks.length + portion.refused,
      refused: portion.refused,
      reason: portion.reason,
      done: portion.last,
      tasks: async (tx) => {
        await portion.drop(tx);
        return portion.tasks;
      },
    });
    if (committed === null) return { made, stopped: true };
    made += committed;
    if (portion.last) return { made, stopped: false };
    if (signal.aborted) return { made, stopped: true };
  }
}

interface Portion {
  tasks: ExpandedTask[];
  refused: number;
  reason?: string;
  /** Removes the staged rows that this portion was made of. */
  drop: (tx: Parameters<typeof dropGroups>[0]) => Promise<unknown>;
  /** Nothing is left after it. */
  last: boolean;
}

async function nextBatches(
  parts: ExpandParts,
  { scan, expansion }: Expanding,
  batch: ForeachSpec['batch'],
): Promise<Portion> {
  if (batch === null) throw new SonarError('internal', `step ${expansion.step} stages rows and has no batch`);
  const keyOf = (sha256: string): string => inputObjectKey(scan.workspace_id, scan.scan_id, sha256);
  const storing: Promise<ExpandedTask>[] = [];
  const rows = stagedInOrder(parts, expansion.expansion_id)[Symbol.asyncIterator]();
  let reached = -1;
  let last = false;
  let taken = 0;
  while (!last && storing.length < batchesPerTransaction && taken < rowsPerPage) {
    const one = new Batch(batch.as, parts.settings.SONAR_OUTPUT_CAP_BYTES);
    while (one.count < batch.size) {
      const next = await rows.next();
      if (next.done === true) {
        last = true;
        break;
      }
      await one.add(next.value);
      reached = next.value.ordinal;
    }
    taken += one.count;
    if (one.count === 0) break;
    const task = one.task(parts, keyOf);
    // Awaited below; until then nobody listens.
    task.catch(() => undefined);
    storing.push(task);
    if (storing.length % batchesAtOnce === 0) await Promise.all(storing);
  }
  const tasks = await Promise.all(storing);
  return { tasks, refused: 0, last, drop: (tx) => dropRowsTo(tx, expansion.expansion_id, reached) };
}

async function* stagedInOrder(parts: ExpandParts, expansionId: string): AsyncGenerator<StagedRow, void> {
  let after = -1;
  for (;;) {
    const page = await stagedRows(parts.database, expansionId, after, rowsPerPage);
    yield* page;
    const tail = page.at(-1);
    if (tail === undefined || page.length < rowsPerPage) return;
    after = tail.ordinal;
  }
}

/** One batch under construction. */
class Batch {
  readonly #spool: InputSpool;
  readonly #as: NonNullable<ForeachSpec['batch']>['as'];
  readonly #files: StreamFile[] = [];
  #first: StagedRow | undefined;
  #lastLine = '';
  #firstLine = '';
  count = 0;

  constructor(as: NonNullable<ForeachSpec['batch']>['as'], maxBytes: number) {
    this.#as = as;
    this.#spool = new InputSpool(maxBytes);
  }

  async add(row: StagedRow): Promise<void> {
    let line: string;
    if (this.#as === 'directory') {
      const file = row.item as unknown as StreamFile;
      this.#files.push(file);
      line = file.path;
    } else {
      // What is no line was refused before it was staged.
      const written = lineOf(this.#as, row.item);
      if (!written.ok) throw new SonarError('internal', `a staged row is no line: ${written.reason}`);
      ({ line } = written);
      await this.#spool.write(`${line}\n`);
    }
    if (this.#first === undefined) this.#firstLine = line;
    this.#first ??= row;
    this.#lastLine = line;
    this.count += 1;
  }

  /** Stores the file and closes it. */
  async task(parts: ExpandParts, keyOf: (sha256: string) => string): Promise<ExpandedTask> {
    await using spool = this.#spool;
    const ends = { first: safeSample(this.#firstLine), last: safeSample(this.#lastLine) };
    const files =
      this.#as === 'directory'
        ? this.#files
        : [{ ...(await spool.store(parts.objects, keyOf)), path: batchNames[this.#as] }];
    return {
      taskId: newId<TaskId>(),
      ordinal: this.#first?.ordinal ?? 0,
      item: { items: this.count, ...ends },
      files: files.map((file) => ({ ...file, input: batchInput })),
    };
  }
}

/** Fixed: nothing of an item is in a name. */
const batchNames = { lines: 'batch.txt', jsonl: 'batch.jsonl' } as const;

async function groupsToTasks(parts: ExpandParts, expanding: Expanding, field: string): Promise<Portion> {
  const { expansion } = expanding;
  const keys = await nextGroups(parts.database, expansion.expansion_id, rowsPerPage, groupsPerTransaction);
  const folds = new Map<string, { ordinal: number; fold: GroupFold }>();
  let after = { groupKey: '', ordinal: -1 };
  for (let more = keys.length > 0; more; ) {
    const page = await groupRows(parts.database, expansion.expansion_id, keys, after, rowsPerPage);
    for (const { group_key: key, ordinal, item } of page) {
      const row = item as Row;
      const group = folds.get(key) ?? { ordinal, fold: new GroupFold(field, valueOf(row, field)) };
      folds.set(key, group);
      group.fold.add(row);
      after = { groupKey: key, ordinal };
    }
    more = page.length === rowsPerPage;
  }
  const tasks: ExpandedTask[] = [];
  const reasons: string[] = [];
  for (const { ordinal, fold } of [...folds.values()].toSorted((a, b) => a.ordinal - b.ordinal)) {
    const { item } = fold;
    const reason = fold.tooLarge
      ? `a group is larger than ${maxGroupBytes} bytes`
      : targetFault(expanding, item);
    if (reason === null) tasks.push({ taskId: newId<TaskId>(), ordinal, item, files: [] });
    else reasons.push(reason);
  }
  const [reason] = reasons;
  return {
    tasks,
    refused: reasons.length,
    ...(reason === undefined ? {} : { reason }),
    drop: (tx) => dropGroups(tx, expansion.expansion_id, keys),
    last: keys.length === 0,
  };
}

const valueOf = (row: Row, field: string): JsonValue => fieldAt(row, field) ?? null;
