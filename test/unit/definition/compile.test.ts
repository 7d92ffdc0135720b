import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Definition } from '#sonar/contracts/definition.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { resolveInputs } from '#sonar/definition/input-values.ts';
import { definitionJsonSchema } from '#sonar/definition/json-schema.ts';

const seed = 20_006;

function compiled(source: string): Definition {
  const result = compileDefinition(source);
  if (!result.ok) throw new Error(JSON.stringify(result.problems, null, 1));
  return result.definition;
}

const survey = `
sonar: 1
name: survey
inputs:
  targets: {type: hosts, required: true, help: Hosts}
  ports: {type: text, default: "80,443"}
  apexes: {type: domains, default: [a.test, b.test]}
defaults: {timeout: 1h30m, retry: {max: 2, backoff: 500ms}, image: tools}
scope: {allow: [a.test], deny: [b.a.test]}
steps:
  report:
    tags: [report]
    needs: {web: all, ports: all}
    inputs: {pages: {from: web.pages}, scans: {from: ports.xml}}
    command: [report, "\${in.pages}"]
    outputs: {html: {stdout: true, optional: true}}
  web:
    tags: [web, web2, web]
    needs: {ports: single}
    foreach: {in: ports.xml, pick: url}
    inputs: {scan: {from: ports.xml}}
    target: \${item}
    command: [curl, -H, 'X: \${item}', "\${in.scan}"]
    outputs: {pages: {path: out/pages.jsonl, read: {format: jsonl, record: endpoint, fields: {url: final.url}}}}
    okExit: 3
    retry: 1
    maxConcurrent: 4
  ports:
    tags: [nmap]
    foreach: {in: inputs.targets}
    target: \${item}
    command:
      - nmap
      - -p
      - 80,443
      - 08
      - 1.10
      - 0o17
      - yes
      - 1e3
      - 0x1F
      - 2026-01-01
      - 1_000
      - "quoted"
      - -oX
      - \${out.xml}
      - \${item}
    stdin: \${inputs.apexes}
    env: {PORTS: "\${inputs.ports}"}
    outputs: {xml: {path: nmap.xml, read: nmap-xml}}
    timeout: 10m
`;

describe('a definition', () => {
  const definition = compiled(survey);
  const [ports, web, report] = definition.steps;

  test('has its steps in an order in which each comes after all it needs', () => {
    expect(definition.steps.map(({ name }) => name)).toEqual(['ports', 'web', 'report']);
  });

  test('keeps the source text of every scalar', () => {
    const texts = ports?.command.map(([part]) => (part?.kind === 'text' ? part.text : part?.kind));
    expect(texts).toEqual([
      'nmap',
      '-p',
      '80,443',
      '08',
      '1.10',
      '0o17',
      'yes',
      '1e3',
      '0x1F',
      '2026-01-01',
      '1_000',
      'quoted',
      '-oX',
      'out',
      'item',
    ]);
  });

  test('knows its inputs', () => {
    expect(definition.inputs).toEqual({
      targets: { type: 'hosts', required: true, default: null, help: 'Hosts' },
      ports: { type: 'text', required: false, default: '80,443', help: null },
      apexes: { type: 'domains', required: false, default: 'a.test\nb.test', help: null },
    });
  });

  test('takes defaults from the step, then the definition, then the language', () => {
    expect(ports).toMatchObject({
      timeoutMs: 600_000,
      retry: { max: 2, backoffMs: 500, maxBackoffMs: 600_000 },
      image: 'tools',
      okExit: [0],
    });
    expect(web).toMatchObject({
      timeoutMs: 5_400_000,
      retry: { max: 1, backoffMs: 500 },
      maxConcurrent: 4,
      okExit: [3],
      tags: ['web', 'web2'],
    });
    const [bare] = compiled('sonar: 1\nname: x\nsteps: {a: {tags: [t], command: [c]}}').steps;
    expect(bare).toEqual({
      name: 'a',
      tags: ['t'],
      needs: [],
      foreach: null,
      inputs: [],
      target: null,
      command: [[{ kind: 'text', text: 'c' }]],
      stdin: null,
      env: {},
      secrets: {},
      outputs: [],
      okExit: [0],
      maxConcurrent: null,
      timeoutMs: 3_600_000,
      retry: { max: 0, backoffMs: 30_000, maxBackoffMs: 600_000 },
      image: null,
      location: null,
      allowOptionItems: false,
    });
  });

  test('resolves sources; a file comes from a single need, a directory from all', () => {
    const plain = { unique: false, group: null, batch: null, split: null, files: false };
    expect(ports?.foreach).toEqual({ in: { kind: 'input', input: 'targets' }, pick: null, ...plain });
    const xml = { kind: 'output', step: 'ports', output: 'xml' };
    expect(web?.foreach).toEqual({ in: xml, pick: 'url', ...plain });
    expect(web?.inputs).toEqual([{ name: 'scan', from: xml, as: 'file', pick: null, unique: false }]);
    expect(report?.inputs.map(({ as }) => as)).toEqual(['directory', 'directory']);
  });

  test('says how outputs are read', () => {
    expect(web?.outputs).toEqual([
      {
        name: 'pages',
        path: 'out/pages.jsonl',
        read: { reader: 'jsonl', record: 'endpoint', fields: { url: 'final.url' } },
        optional: false,
      },
    ]);
    expect(report?.outputs).toEqual([{ name: 'html', path: null, read: null, optional: true }]);
    const lines =
      'sonar: 1\nname: x\nsteps: {a: {tags: [t], command: [c], outputs: {o: {stdout: true, read: {format: lines, record: address}}}}}';
    expect(compiled(lines).steps[0]?.outputs[0]?.read).toEqual({
      reader: 'lines',
      record: 'address',
      fields: { ip: 'line' },
    });
  });

  test('is the same with anchors, CRLF and a byte order mark', () => {
    expect(compiled(`\ufeff${survey.replaceAll('\n', '\r\n')}`)).toEqual(definition);
    const again = compiled(
      'sonar: 1\nname: x\nsteps: {a: {tags: &t [t], command: [c]}, b: {tags: &t [u], command: [c]}, c: {tags: *t, command: [c]}}',
    );
    expect(again.steps.map(({ tags }) => tags)).toEqual([['t'], ['u'], ['u']]);
    const anchored = compiled('sonar: 1\nname: x\nsteps: {a: &a {tags: [t], command: [c]}, b: *a}');
    expect(anchored.steps.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

test('the catalog compiles', () => {
  const source = readFileSync(join(__dirname, '../../../catalog/loopback-survey.yaml'), 'utf8');
  const { steps } = compiled(source);
  expect(steps.map(({ name, tags, needs }) => ({ name, tags, needs }))).toEqual([
    { name: 'ports', tags: ['nmap'], needs: [] },
    { name: 'web', tags: ['web'], needs: [{ step: 'ports', mode: 'single' }] },
    { name: 'report', tags: ['report'], needs: [{ step: 'web', mode: 'all' }] },
  ]);
});

test('the order of steps holds for any graph without a circle', () => {
  const graph = fc
    .array(fc.array(fc.nat({ max: 30 }), { maxLength: 4 }), { minLength: 1, maxLength: 12 })
    .map((needs) =>
      needs.map((targets, index) =>
        [...new Set(targets.map((target) => target % (index + 1)))].filter((target) => target !== index),
      ),
    )
    .chain((needs) =>
      fc.tuple(
        fc.constant(needs),
        fc.shuffledSubarray(
          needs.map((_, index) => index),
          { minLength: needs.length },
        ),
      ),
    );
  fc.assert(
    fc.property(graph, ([needs, order]) => {
      const steps = order.map((index) => {
        const list = (needs[index] ?? []).map((target) => `s${target}: all`).join(', ');
        return `  s${index}: {tags: [t], command: [c], needs: {${list}}}`;
      });
      const names = compiled(`sonar: 1\nname: x\nsteps:\n${steps.join('\n')}`).steps;
      for (const [position, step] of names.entries()) {
        const before = names.slice(0, position).map(({ name }) => name);
        expect(before).toEqual(expect.arrayContaining(step.needs.map((need) => need.step)));
      }
    }),
    { seed, numRuns: 60 },
  );
});

describe('inputs of a scan', () => {
  const { inputs } = compiled(survey);

  test('are lines for lists and text for the rest, with defaults', () => {
    expect(resolveInputs({ inputs }, { targets: ' a.test \r\n\n b.test\n', ports: 8080 })).toEqual({
      ok: true,
      inputs: { targets: ['a.test', 'b.test'], ports: '8080', apexes: ['a.test', 'b.test'] },
    });
    expect(resolveInputs({ inputs }, { targets: ['a.test', 'b.test\nc.test'] })).toMatchObject({
      inputs: { targets: ['a.test', 'b.test', 'c.test'] },
    });
  });

  test('are refused all at once', () => {
    const result = resolveInputs({ inputs }, { target: 'a', ports: ['1', '2'] });
    expect(result).toMatchObject({
      ok: false,
      problems: [
        { input: 'target', message: 'there is no input `target`', hint: 'did you mean `targets`?' },
        { input: 'targets', message: 'the input `targets` is required' },
        { input: 'ports', message: 'the input `ports` is one text, not a list' },
      ],
    });
    // Fan-out over nothing comes to a no-work result; it is no fault of the start.
    expect(resolveInputs({ inputs }, { targets: ' \n' })).toMatchObject({ inputs: { targets: [] } });
    expect(resolveInputs({ inputs }, { targets: ['a\0'] })).toMatchObject({ ok: false });
  });
});

test('the JSON Schema names every field that is read, and none that is not', () => {
  const schema = JSON.parse(JSON.stringify(definitionJsonSchema())) as {
    properties: object;
    required: string[];
    $defs: Record<string, { properties: object; required: string[]; additionalProperties: boolean }>;
  };
  expect(schema.required).toEqual(['sonar', 'name', 'steps']);
  expect(Object.keys(schema.properties)).toEqual([
    'sonar',
    'name',
    'inputs',
    'files',
    'defaults',
    'records',
    'scope',
    'steps',
  ]);
  expect(schema.$defs.step?.required).toEqual(['tags', 'command']);
  expect(schema.$defs.step?.additionalProperties).toBe(false);
  expect(Object.keys(schema.$defs.step?.properties ?? {})).not.toContain('run');
  const references = [...JSON.stringify(schema).matchAll(/#\/\$defs\/(\w+)/g)].map(([, name]) => name ?? '');
  expect(Object.keys(schema.$defs)).toEqual(expect.arrayContaining(references));
});
