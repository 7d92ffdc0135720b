// The newest revision × what a scan has pinned × what it took last.
import fc from 'fast-check';
import type { Definition, InputType, Step } from '#sonar/contracts/definition.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import {
  effectiveStep,
  type HeldStep,
  inOrder,
  liveDefinition,
  pinsOf,
} from '#sonar/definition/live-definition.ts';
import { type MergedStep, mergeRevision, type ScanInputs } from '#sonar/definition/merge-revision.ts';
import { stepFaults } from '#sonar/definition/step-fits.ts';

function compiled(steps: string, inputs = ''): Definition {
  const result = compileDefinition(
    `sonar: 1\nname: d\ninputs: {hosts: {type: hosts, default: ""}${inputs}}\nsteps:\n${steps}`,
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.definition;
}

const inputsOf = (definition: Definition): ScanInputs => ({
  inputs: Object.fromEntries(Object.entries(definition.inputs).map(([name, { type }]) => [name, type])),
  stored: new Set(),
});

/** A scan that has taken the first revision whole; the named steps have begun. */
const heldBy = (definition: Definition, begun: readonly string[]): HeldStep[] =>
  definition.steps.map((step) => ({
    step: step.name,
    revision: 1,
    removed: false,
    pins: begun.includes(step.name) ? pinsOf(step, definition) : null,
  }));

function merge(before: Definition, begun: readonly string[], after: Definition, inputs = inputsOf(before)) {
  const merged = mergeRevision(
    heldBy(before, begun),
    () => before,
    { revision: 2, definition: after },
    inputs,
  );
  return Object.fromEntries(merged.map((row) => [row.step, row])) as Record<string, MergedStep>;
}

const list = `  list: {tags: [t], command: [list, "\${out.rows}"], outputs: {rows: {path: r, read: jsonl}}}\n`;
const probe = (command: string, more = ''): string =>
  `  probe: {tags: [t], needs: {list: single}, foreach: {in: list.rows, pick: host}, target: "\${item}", command: ${command}${more}}\n`;

test('an edit of what is not pinned is taken, of a step that has begun too', () => {
  const merged = merge(
    compiled(list + probe('[a, "${item}"]')),
    ['list', 'probe'],
    compiled(list + probe('[b, -x, "${item}"]', ', timeout: 5m, retry: 3')),
  );
  expect(merged.probe).toMatchObject({ revision: 2, note: null, removed: false });
});

test('a change of pinned parts is for new scans, said, and the rest of the edit is taken', () => {
  const after = compiled(
    list +
      `  probe: {tags: [t], needs: {list: single}, foreach: {in: list.rows, pick: ip}, target: "\${item}", command: [b, "\${item}"]}\n`,
  );
  const before = compiled(list + probe('[a, "${item}"]'));
  const { probe: row } = merge(before, ['list', 'probe'], after);
  expect(row).toMatchObject({
    revision: 2,
    note: 'revision 2 changes its foreach, for new scans: this scan keeps what its first task began with',
  });
  // Not begun: everything is taken.
  expect(merge(before, ['list'], after).probe).toMatchObject({ revision: 2, note: null });
});

test.each([
  [
    'a reference that the pinned foreach has no value for',
    `  probe: {tags: [t], needs: {list: single}, foreach: {in: list.rows}, command: [b, "\${item.host}", "\${item.port}"]}\n`,
    `  probe: {tags: [t], needs: {list: single}, command: [b, "\${item}"], foreach: {in: list.rows, batch: 5}}\n`.replace(
      '"${item}"',
      '"${batch}"',
    ),
    'the step has no batches',
  ],
  [
    'an output that the pins do not know',
    probe('[a, "${item}"]'),
    probe('[a, "${item}", "${out.extra}"]', ', outputs: {extra: {path: e}}'),
    'the step has no output',
  ],
  [
    'an output that is gone',
    probe('[a, "${item}", "${out.found}"]', ', outputs: {found: {path: f}}'),
    probe('[a, "${item}"]'),
    'it has no output "found"',
  ],
])('%s leaves a step that has begun its last valid revision, said', (_what, first, second, why) => {
  const { probe: row } = merge(compiled(list + first), ['list', 'probe'], compiled(list + second));
  expect(row?.revision).toBe(1);
  expect(row?.note).toMatch(/^revision 2 was not taken: .*; revision 1 stays in force$/);
  expect(row?.note).toContain(why);
});

test('a step that feeds a pinned one does not take a reader whose rows have not what is pinned', () => {
  const http = (reader: string) =>
    `  web: {tags: [t], command: [w, "\${out.o}"], outputs: {o: {path: o, read: ${reader}}}}\n  shot: {tags: [t], needs: {web: single}, foreach: {in: web.o, pick: url}, target: "\${item}", command: [s, "\${item}"]}\n`;
  const other =
    `  web: {tags: [t], command: [v, "\${out.o}"], outputs: {o: {path: o, read: subfinder}}}\n` +
    `  shot: {tags: [t], needs: {web: single}, foreach: {in: web.o, pick: host}, target: "\${item}", command: [s, -q, "\${item}"]}\n`;
  const merged = merge(compiled(http('httpx')), ['web', 'shot'], compiled(other));
  expect(merged.web).toMatchObject({ revision: 1 });
  expect(merged.web?.note).toContain('the step "shot" of this scan rests on what it was');
  // Its own command goes with what it keeps.
  expect(merged.shot).toMatchObject({ revision: 2 });
  // Nothing of it has begun: all of it is taken.
  expect(merge(compiled(http('httpx')), ['web'], compiled(other))).toMatchObject({
    web: { revision: 2, note: null },
    shot: { revision: 2, note: null },
  });
});

test('a removed step stays removed when a later revision has it again', () => {
  const before = compiled(list + probe('[a, "${item}"]'));
  const without = merge(before, ['list', 'probe'], compiled(list));
  expect(without.probe).toMatchObject({ removed: true, revision: 1, note: 'removed in revision 2' });
  const held = heldBy(before, ['list', 'probe']).map((row) =>
    row.step === 'probe' ? { ...row, removed: true } : row,
  );
  const back = mergeRevision(held, () => before, { revision: 3, definition: before }, inputsOf(before));
  expect(back.find(({ step }) => step === 'probe')).toMatchObject({
    removed: true,
    revision: 1,
    note: 'removed; revision 3 has it again, for new scans',
  });
});

test('what uses an input that the scan does not have stays as it was; a new step is not taken; both say so', () => {
  const before = compiled(list + probe('[a, "${item}"]'));
  const after = compiled(
    list + probe('[a, "${inputs.key}", "${item}"]') + '  fresh: {tags: [t], command: [x, "${inputs.key}"]}\n',
    ', key: {type: text, required: true}',
  );
  const merged = merge(before, ['list', 'probe'], after);
  expect(merged.probe).toMatchObject({ revision: 1 });
  expect(merged.probe?.note).toContain('there is no input `key`');
  expect(merged.fresh).toMatchObject({ isNew: true, revision: null });
  expect(merged.fresh?.note).toContain('revision 2 was not taken');
  // With a value for it both are.
  const given = merge(before, ['list', 'probe'], after, {
    inputs: { ...inputsOf(before).inputs, key: 'text' },
    stored: new Set(),
  });
  expect(given).toMatchObject({ probe: { revision: 2, note: null }, fresh: { revision: 2, note: null } });
});

test('a list that is a stored file is for streams: what would put it into a command is not taken', () => {
  const before = compiled('  each: {tags: [t], foreach: {in: inputs.hosts}, command: [a, "${item}"]}\n');
  const after = compiled(
    '  each: {tags: [t], foreach: {in: inputs.hosts}, command: [a, "${item}", "${join(inputs.hosts)}"]}\n',
  );
  const stored = { ...inputsOf(before), stored: new Set(['hosts']) };
  expect(merge(before, ['each'], after, stored).each).toMatchObject({ revision: 1 });
  expect(merge(before, ['each'], after).each).toMatchObject({ revision: 2 });
});

test('a step that has not begun and needs another one begins anew; with the same needs it does not', () => {
  const before = compiled(`${list}  other: {tags: [t], command: [o]}\n${probe('[a, "${item}"]')}`);
  const after = compiled(
    `${list}  other: {tags: [t], command: [o]}\n  probe: {tags: [t], needs: {other: all}, command: [p]}\n`,
  );
  expect(merge(before, ['list', 'other'], after).probe).toMatchObject({ revision: 2, restarts: true });
  expect(merge(before, ['list', 'other'], before).probe).toMatchObject({ restarts: false });
});

test('a file that was made without a check never becomes the target; nor do batches get another', () => {
  const before = (target: string) =>
    compiled(
      `  all: {tags: [t], inputs: {h: {from: inputs.hosts}}, ${target}command: [a, "\${in.h}"]}\n` +
        `  each: {tags: [t], foreach: {in: inputs.hosts, batch: 2}, ${target === '' ? '' : 'target: "${item}", '}command: [a, "\${batch}"]}\n`,
    );
  const merged = merge(before(''), ['all', 'each'], before('target: "${in.h}", '));
  expect(merged.all).toMatchObject({ revision: 1 });
  expect(merged.all?.note).toContain('made without that check');
  expect(merged.each).toMatchObject({ revision: 1 });
  expect(merged.each?.note).toContain('checked by the one before');
});

test('needs that go round in a circle with pinned ones are not taken', () => {
  const first = compiled(
    `  a: {tags: [t], command: [a]}\n  b: {tags: [t], needs: {a: single}, command: [b]}\n`,
  );
  const second = compiled(
    `  a: {tags: [t], needs: {b: single}, command: [a2]}\n  b: {tags: [t], command: [b2]}\n`,
  );
  expect(merge(first, ['b'], second)).toMatchObject({
    a: { revision: 1, note: expect.stringContaining('it would need itself') },
    b: { revision: 2, note: expect.stringContaining('changes its needs') },
  });
});

// Definitions of up to four steps, each of which may need earlier ones and read them in some way.
const names = ['a', 'b', 'c', 'd'] as const;
const stepText = fc.record({
  needs: fc.array(fc.nat(3), { maxLength: 2 }),
  single: fc.boolean(),
  reader: fc.constantFrom('jsonl', 'httpx', 'nmap-xml', ''),
  source: fc.constantFrom('none', 'foreach', 'input', 'key'),
  output: fc.constantFrom('o', 'p'),
  present: fc.boolean(),
});
const definitionOf = (
  texts: readonly (typeof stepText extends fc.Arbitrary<infer T> ? T : never)[],
  order: boolean,
) => {
  const chosen = order ? names : names.toReversed();
  const present = chosen
    .map((name, index) => ({ name, text: texts[index] }))
    .filter(({ text }) => text?.present);
  const lines = present.map(({ name, text }, index) => {
    const needs = [...new Set(text?.needs.map((need) => need % Math.max(1, index)) ?? [])]
      .filter(() => index > 0)
      .map((need) => present[need]?.name ?? '');
    const [first] = needs;
    const upstream = present.find((other) => other.name === first)?.text;
    const source = first === undefined || upstream === undefined ? 'none' : (text?.source ?? 'none');
    const readable = upstream !== undefined && upstream.reader !== '';
    const field = upstream?.reader === 'nmap-xml' ? 'ip' : 'host';
    const parts = [
      'tags: [t]',
      ...(needs.length > 0
        ? [
            `needs: {${needs.map((need, at) => `${need}: ${text?.single && at === 0 ? 'single' : 'all'}`).join(', ')}}`,
          ]
        : []),
      `outputs: {${text?.output}: {path: x, optional: true${text?.reader ? `, read: ${text.reader}` : ''}}}`,
      source === 'foreach' && readable
        ? `foreach: {in: ${first}.${upstream?.output}, pick: ${field}}, command: [x, "\${item}"]`
        : source === 'input'
          ? `inputs: {i: {from: ${first}.${upstream?.output}, as: directory}}, command: [x, "\${in.i}"]`
          : source === 'key'
            ? 'command: [x, "${inputs.key}"]'
            : 'command: [x]',
    ];
    return `  ${name}: {${parts.join(', ')}}\n`;
  });
  return lines.length === 0 ? undefined : compiled(lines.join(''), ', key: {type: text, required: true}');
};

test('property: whatever is edited, what a scan runs always fits itself, and pinned parts never move', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.array(stepText, { minLength: 4, maxLength: 4 }), fc.boolean()), {
        minLength: 2,
        maxLength: 4,
      }),
      fc.array(fc.constantFrom(...names)),
      fc.boolean(),
      (edits, begun, hasKey) => {
        const revisions = edits.flatMap(([texts, order]) => definitionOf(texts, order) ?? []);
        const [first, ...later] = revisions;
        if (first === undefined) return;
        const inputs: Record<string, InputType> = { hosts: 'hosts', key: 'text' };
        let held = heldBy(first, begun);
        // The first revision was taken whole, by a scan that had what it asks for.
        const has = hasKey || JSON.stringify(first).includes('"key"');
        const known: ScanInputs = { inputs: has ? inputs : { hosts: 'hosts' }, stored: new Set() };
        for (const [index, definition] of later.entries()) {
          const partOf = (revision: number) => revisions[revision - 1] as Definition;
          const merged = mergeRevision(held, partOf, { revision: index + 2, definition }, known);
          expect(mergeRevision(held, partOf, { revision: index + 2, definition }, known)).toEqual(merged);
          const before = held;
          held = merged.map(({ step, revision, removed, restarts }) => {
            const row = before.find((candidate) => candidate.step === step);
            expect(row?.removed === true && !removed).toBe(false);
            expect(row?.revision !== undefined && row.revision !== null && revision === null).toBe(false);
            expect(row?.pins != null && restarts).toBe(false);
            return { step, revision, removed, pins: row?.pins ?? null };
          });
          const live = liveDefinition('d', held, (revision, name) =>
            partOf(revision).steps.find((step) => step.name === name),
          );
          expect(inOrder(live.steps).circle).toEqual([]);
          for (const row of held) {
            const written =
              row.revision === null
                ? undefined
                : partOf(row.revision).steps.find(({ name }) => name === row.step);
            if (written === undefined || row.removed) continue;
            const step: Step = effectiveStep(written, row.pins);
            const faults = stepFaults(step, {
              ...known,
              files: {},
              stepOf: (name) => live.steps.find((candidate) => candidate.name === name),
            });
            expect(faults).toEqual([]);
            expect(row.pins === null || JSON.stringify(step.needs) === JSON.stringify(row.pins.needs)).toBe(
              true,
            );
            expect(row.pins?.outputs ?? step.outputs.map(({ name }) => name)).toEqual(
              step.outputs.map(({ name }) => name),
            );
          }
          // Something begins between two edits.
          held = held.map((row) => {
            const step = live.steps.find(({ name }) => name === row.step);
            return row.pins === null && step !== undefined && !row.removed && begun.includes(row.step as 'a')
              ? { ...row, pins: pinsOf(step, live) }
              : row;
          });
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('what the first task pinned is taken from there, and the rest from the step as it is now', () => {
  const step = (foreach: string, command: string) =>
    compiled(`  a: {tags: [t], foreach: {${foreach}}, command: [${command}, "\${item}"]}\n`);
  const before = step('in: inputs.hosts', 'one');
  const then = before.steps[0]!;
  const now = step('in: inputs.hosts, unique: true', 'two').steps[0]!;
  expect(then.foreach).not.toEqual(now.foreach);
  expect(effectiveStep(now, pinsOf(then, before))).toEqual({ ...now, foreach: then.foreach });
});
