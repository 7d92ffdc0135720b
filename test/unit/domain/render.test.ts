import fc from 'fast-check';
import type { JsonValue, Step, Template } from '#sonar/contracts/definition.ts';
import type { RenderedArgument } from '#sonar/contracts/rendered-command.ts';
import { parseTemplate } from '#sonar/definition/template.ts';
import { maxArgumentBytes, renderCommand, renderTarget } from '#sonar/domain/render.ts';
import { stepWith } from '../../fixtures/step-with.ts';

const seed = 20_004;
const template = (text: string): Template => parseTemplate(text).parts.map(({ part }) => part);

const stepOf = (command: string[], more: Partial<Step> = {}): Step =>
  stepWith({ command: command.map(template), ...more });

/** What a worker makes of an argument whose files are at `/in/NAME` and `/out/NAME`. */
const argument = (parts: RenderedArgument): string =>
  parts.map((part) => (part.kind === 'text' ? part.text : `/${part.kind}/${part.name}`)).join('');

function rendered(
  command: string[],
  item: JsonValue | undefined,
  more: Partial<Step> = {},
): string[] | string {
  const inputs = { ports: '80,443', hosts: ['a.test', 'b.test'], text: 'one\ntwo' };
  const result = renderCommand(stepOf(command, more), { item, inputs });
  return result.ok ? result.command.map(argument) : result.reason;
}

const hostile = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '-oN',
    '--script=x',
    '',
    'a b',
    '"quoted name"',
    "'",
    '$(id)',
    '`id`',
    'a;id',
    '${out.x}',
    '$${',
    'a\nb',
    '\0',
    '\ud800',
    '-',
  ),
);

describe('no item', () => {
  const templates = [
    '${item}',
    '-p',
    '-p${item}',
    '--host=${item}',
    'x${item}${inputs.ports}',
    '${in.list}',
    '${item}-${item}',
  ];
  const command = fc.array(fc.constantFrom(...templates), { minLength: 1, maxLength: 6 });

  test('becomes a second argument or changes another one', () => {
    fc.assert(
      fc.property(command, hostile, (args, item) => {
        const result = rendered(['tool', ...args], item);
        const plain = rendered(['tool', ...args], 'ITEM');
        if (typeof result === 'string' || typeof plain === 'string') return;
        expect(result).toEqual(plain.map((text) => text.split('ITEM').join(item)));
      }),
      { seed, numRuns: 1_000 },
    );
  });

  test('becomes an option', () => {
    fc.assert(
      fc.property(command, hostile, (args, item) => {
        const result = rendered(['tool', ...args], item);
        if (typeof result === 'string') return;
        for (const [index, text] of result.slice(1).entries()) {
          const written = args[index] ?? '';
          expect(text.startsWith('-')).toBe(written.startsWith('-'));
        }
      }),
      { seed, numRuns: 1_000 },
    );
  });

  test('of a row reaches an argument with a NUL, a line end or half a surrogate pair', () => {
    fc.assert(
      fc.property(hostile, (item) => {
        const result = rendered(['tool', '${item.value}'], { value: item });
        if (typeof result === 'string') return;
        expect(result.join('')).not.toMatch(/[\0\r\n]/);
        expect(result.join('').isWellFormed()).toBe(true);
      }),
      { seed, numRuns: 500 },
    );
  });

  test('chooses the option after dashes of the author', () => {
    expect(rendered(['tool', '--${item}'], 'config=x')).toMatch(/read as an option/);
    expect(rendered(['tool', '${item}${item}'], '')).toEqual(['tool', '']);
    expect(rendered(['tool', '${item}-x'], '')).toMatch(/argument 1 would start with "-"/);
  });
});

test('each target of the hostile list is one literal argument or a refusal that names it', () => {
  const lines = ['good.example.test', 'a.example.test;id', '$(id)', '-oN', '`id`', '"quoted name"'];
  expect(lines.map((line) => rendered(['tool', '${item}'], line))).toEqual([
    ['tool', 'good.example.test'],
    ['tool', 'a.example.test;id'],
    ['tool', '$(id)'],
    'argument 1 would start with "-" because of its item, and be read as an option: -oN',
    ['tool', '`id`'],
    ['tool', '"quoted name"'],
  ]);
});

test('an input is held to the same rule, and `allowOptionItems` lifts it', () => {
  const step = stepOf(['tool', '${inputs.flags}']);
  expect(renderCommand(step, { item: undefined, inputs: { flags: '-x' } })).toMatchObject({ ok: false });
  expect(rendered(['tool', '${item}'], '-x', { allowOptionItems: true })).toEqual(['tool', '-x']);
});

test('values are put in as text', () => {
  const row = { ip: '192.0.2.1', port: 80, ports: [80, 443], open: true, nested: { name: 'x' } };
  expect(rendered(['tool', '${item.ip}:${item.port}', '${item.open}', '${item.nested.name}'], row)).toEqual([
    'tool',
    '192.0.2.1:80',
    'true',
    'x',
  ]);
  expect(
    rendered(['tool', '${join(item.ports)}', '${join(item.ports, ";")}', '${join(item.port)}'], row),
  ).toEqual(['tool', '80,443', '80;443', '80']);
  expect(rendered(['tool', '${join(inputs.hosts, " ")}', '-p', '${inputs.ports}'], row)).toEqual([
    'tool',
    'a.test b.test',
    '-p',
    '80,443',
  ]);
  expect(rendered(['tool', '$${item}', '$HOME', '$$'], row)).toEqual(['tool', '${item}', '$HOME', '$$']);
  expect(rendered(['tool', '${in.list}', 'file=${out.xml}'], row)).toEqual([
    'tool',
    '/in/list',
    'file=/out/xml',
  ]);
});

test('what has no text is refused, naming the fields there are', () => {
  const row = { ip: '192.0.2.1', port: null, ports: [80] };
  expect(rendered(['tool', '${item}'], row)).toBe(
    'argument 1: ${item} is no text or number; the row has ip, port, ports',
  );
  expect(rendered(['tool', '${item.port}'], row)).toBe(
    'argument 1: ${item.port} has no value; the row has ip, port, ports',
  );
  expect(rendered(['tool', '${item.ports}'], row)).toBe(
    'argument 1: ${item.ports} is a list; write ${join(item.ports)}',
  );
  expect(rendered(['tool', '${item.constructor}'], row)).toMatch(/has no value/);
  expect(rendered(['tool', '${item}'], undefined)).toBe('argument 1: ${item} has no value');
  expect(rendered(['tool', '${inputs.toString}'], row)).toMatch(/has no value/);
});

test('an argument has a size', () => {
  expect(rendered(['tool', '${item}'], 'a'.repeat(maxArgumentBytes))).toHaveLength(2);
  expect(rendered(['tool', '${item}'], 'ä'.repeat(maxArgumentBytes / 2 + 1))).toBe(
    `argument 1 is longer than ${maxArgumentBytes} bytes`,
  );
});

test('stdin and environment are rendered; a list on stdin is one line each', () => {
  const step = stepOf(['tool'], {
    stdin: template('${inputs.hosts}'),
    env: { TEXT: template('${inputs.text}'), FILE: template('${in.list}') },
  });
  const context = { item: undefined, inputs: { hosts: ['a.test', 'b.test'], text: 'one\ntwo' } };
  expect(renderCommand(step, context)).toEqual({
    ok: true,
    command: [[{ kind: 'text', text: 'tool' }]],
    stdin: [{ kind: 'text', text: 'a.test\nb.test' }],
    env: { TEXT: [{ kind: 'text', text: 'one\ntwo' }], FILE: [{ kind: 'in', name: 'list' }] },
  });
  expect(renderCommand(step, { item: undefined, inputs: { ...context.inputs, text: 'a\0' } })).toMatchObject({
    ok: false,
  });
  expect(
    renderCommand(step, { item: undefined, inputs: { ...context.inputs, hosts: ['a\nb'] } }),
  ).toMatchObject({ ok: false });
});

test('targets are what the scope is asked about', () => {
  const targets = (target: string | null, item: JsonValue): unknown => {
    const result = renderTarget(stepOf(['tool'], { target: target === null ? null : template(target) }), {
      item,
      inputs: {},
    });
    return result.ok ? result.targets : result.reason;
  };
  expect(targets(null, 'a')).toEqual([]);
  expect(targets('${item}', 'a.test')).toEqual(['a.test']);
  expect(targets('${item.ip}:${item.port}', { ip: '192.0.2.1', port: 80 })).toEqual(['192.0.2.1:80']);
  expect(targets('${item.ips}', { ips: ['192.0.2.1', '192.0.2.2'] })).toEqual(['192.0.2.1', '192.0.2.2']);
  expect(targets('${item.ip}', { ip: null })).toMatch(/no value/);
});
