import { ok, problemsOf, withStep } from './problems-of.ts';

describe('a step', () => {
  test.each<[string, string[], string]>([
    [
      'without command',
      ['tags: [tool]'],
      '10:5 steps.scan.command: `command` is missing | Program and arguments. There is no shell.',
    ],
    [
      'without tags',
      ['command: [tool]'],
      '10:5 steps.scan.tags: `tags` is missing | Workers with any of these tags may run it.',
    ],
    [
      'with a shell line',
      ['tags: [tool]', 'command: nmap -p 80'],
      '11:14 steps.scan.command: `command` must be a list of arguments | there is no shell: write `[nmap, -p, "80,443"]`',
    ],
    [
      'with a comma between digits',
      ['tags: [tool]', 'command: [tool, -p, 80,443,8080]'],
      '11:25 steps.scan.command[2]: inside [ ] `80,443` is two arguments | quote it: "80,443"',
    ],
    [
      'with an empty command',
      ['tags: [tool]', 'command: []'],
      '11:14 steps.scan.command: `command` is empty | name the program first',
    ],
    [
      'that lets an item choose the program',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: ["${item}"]'],
      '12:16 steps.scan.command[0]: the program must be a fixed text | an item or an input must not choose what is run',
    ],
    [
      'that lets an item choose the option',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: [tool, "--${item}"]'],
      '12:22 steps.scan.command[1]: an item must not choose the option | write the option out, or set `allowOptionItems: true`',
    ],
    [
      'with an item and no foreach',
      ['tags: [tool]', 'command: [tool, "${item}"]'],
      '11:22 steps.scan.command[1]: `${item}`: the step has no `foreach` | add `foreach: {in: inputs.NAME}` or `{in: STEP.OUTPUT}`',
    ],
    [
      'with a field of a line',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: [tool, "${item.ip}"]'],
      '12:22 steps.scan.command[1]: `${item.ip}`: the lines of an input have no fields | write `${item}`',
    ],
    [
      'with a whole row',
      ['tags: [tool]', 'needs: {other: single}', 'foreach: {in: other.page}', 'command: [tool, "x${item}"]'],
      '13:23 steps.scan.command[1]: `${item}` is a whole row | write `${item.FIELD}`, or `pick` a field',
    ],
    [
      'with a misspelled row field',
      [
        'tags: [tool]',
        'needs: {other: single}',
        'foreach: {in: other.rows}',
        'command: [tool, "${item.prot}"]',
      ],
      '13:22 steps.scan.command[1]: `${item.prot}`: rows have no field `prot` | did you mean `port`?',
    ],
    [
      'that picks a field there is not',
      [
        'tags: [tool]',
        'needs: {other: single}',
        'foreach: {in: other.rows, pick: adress}',
        'command: [tool, "${item}"]',
      ],
      '12:37 steps.scan.foreach.pick: rows of `other.rows` have no field `adress` | known: ip, host, hostnames, port, host_port, ip_port, protocol, state, service, product, version, tunnel, extrainfo, title, cpes, scripts, url',
    ],
    [
      'that picks from lines',
      [...ok, 'foreach: {in: inputs.hosts, pick: host}'],
      '12:39 steps.scan.foreach.pick: the lines of an input have no fields to pick | leave `pick` out',
    ],
    [
      'with foreach over a text',
      [...ok, 'foreach: {in: inputs.ports}'],
      '12:19 steps.scan.foreach.in: `ports` is one text, not a list | a list has the type lines, domains, hosts, cidrs, urls',
    ],
    [
      'with foreach over a step it does not need',
      [...ok, 'foreach: {in: other.rows}'],
      '12:19 steps.scan.foreach.in: `other` is not among the needs of `scan` | add `needs: {other: single}` or `all`',
    ],
    [
      'with foreach over an unknown output',
      [...ok, 'needs: {other: single}', 'foreach: {in: other.row}'],
      '13:19 steps.scan.foreach.in: the step `other` has no output `row` | did you mean `rows`?',
    ],
    [
      'with foreach over an unknown step',
      [...ok, 'foreach: {in: othr.rows}'],
      '12:19 steps.scan.foreach.in: there is no step `othr` | did you mean `other`?',
    ],
    [
      'with a source of no form',
      [...ok, 'foreach: {in: hosts}'],
      '12:19 steps.scan.foreach.in: `hosts` is no source | write `inputs.NAME` or `STEP.OUTPUT`',
    ],
    [
      'with an input from a step it does not need',
      [...ok, 'inputs: {x: {from: other.rows}}'],
      '12:24 steps.scan.inputs.x.from: `other` is not among the needs of `scan` | add `needs: {other: single}` or `all`',
    ],
    [
      'with an unknown input of the scan',
      ['tags: [tool]', 'command: [tool, "-p=${inputs.port}"]'],
      '11:25 steps.scan.command[1]: `${inputs.port}`: there is no input `port` | did you mean `ports`?',
    ],
    [
      'with a list in one argument',
      ['tags: [tool]', 'command: [tool, "${inputs.hosts}"]'],
      '11:22 steps.scan.command[1]: `${inputs.hosts}` is a list, and this is one argument | write `${join(inputs.hosts)}`, or `foreach: {in: inputs.hosts}`',
    ],
    [
      'with an undeclared file',
      ['tags: [tool]', 'command: [tool, "${in.list}"]'],
      '11:22 steps.scan.command[1]: `${in.list}`: the step has no input `list`',
    ],
    [
      'with an undeclared output',
      ['tags: [tool]', 'command: [tool, "${out.xml}"]'],
      '11:22 steps.scan.command[1]: `${out.xml}`: the step has no output `xml` | add `outputs: {xml: {path: FILE}}`',
    ],
    [
      'with the path of the standard output',
      ['tags: [tool]', 'command: [tool, "${out.text}"]', 'outputs: {text: {stdout: true}}'],
      '11:22 steps.scan.command[1]: `${out.text}` is the standard output and has no path',
    ],
    [
      'with an output that is nowhere',
      [...ok, 'outputs: {a: {optional: true}}'],
      '12:15 steps.scan.outputs.a: `a` has neither a path nor stdout | write `path: FILE` or `stdout: true`',
    ],
    [
      'with an output that is in two places',
      [...ok, 'outputs: {a: {path: x, stdout: true}}'],
      '12:15 steps.scan.outputs.a: `a` has both a path and stdout | write `path: FILE` or `stdout: true`',
    ],
    [
      'with two outputs in one place',
      [...ok, 'outputs: {a: {path: x/y}, b: {path: x}}'],
      '12:31 steps.scan.outputs.b: `b` and `a` share the path `x`',
    ],
    [
      'with two single needs',
      [...ok, 'needs: {other: single, third: single}', 'env: {A: "1"}'],
      '12:28 steps.scan.needs.third: at most one need may be `single` | a task comes from one task of one step; make the other need `all`',
    ],
    ['that needs itself', [...ok, 'needs: {scan: all}'], '12:13 steps.scan.needs.scan: `scan` needs itself'],
    [
      'with a need of no mode',
      [...ok, 'needs: {other: every}'],
      '12:20 steps.scan.needs.other: `every` is none of single, all | known: single, all',
    ],
    [
      'with maxConcurrent 0',
      [...ok, 'maxConcurrent: 0'],
      '12:20 steps.scan.maxConcurrent: `0` is no whole number from 1 to 1000000',
    ],
    [
      'with an exit code that is none',
      [...ok, 'okExit: [0, 256]'],
      '12:17 steps.scan.okExit[1]: `256` is no whole number from 0 to 255',
    ],
    [
      'with a variable of Sonar',
      [...ok, 'env: {SONAR_TOKEN: x}'],
      "12:11 steps.scan.env.SONAR_TOKEN: `SONAR_TOKEN`: names with SONAR_ are Sonar's own",
    ],
    [
      'with an open template',
      ['tags: [tool]', 'command: [tool, "a${item"]'],
      '11:23 steps.scan.command[1]: `${` is never closed | close it with `}`, or write `$${` for a literal `${`',
    ],
    [
      'with a record that lacks its key',
      [...ok, 'outputs: {a: {path: x, read: {format: jsonl, record: service, fields: {address: ip}}}}'],
      '12:75 steps.scan.outputs.a.read.fields: the record `service` needs the field `port` | add `port: ROW FIELD` under `fields`',
    ],
    [
      'with a record of lines that need fields',
      [...ok, 'outputs: {a: {path: x, read: {format: lines, record: address, fields: {ip: lin}}}}'],
      '12:80 steps.scan.outputs.a.read.fields.ip: rows of `lines` have no field `lin` | did you mean `line`?',
    ],
    [
      'with a record of a reader that makes its own',
      [...ok, 'outputs: {a: {path: x, read: {format: nmap-xml, record: address}}}'],
      '12:61 steps.scan.outputs.a.read.record: the reader `nmap-xml` makes its own records | write `read: nmap-xml`',
    ],
    [
      'with an unknown record',
      [...ok, 'outputs: {a: {path: x, read: {format: jsonl, record: endpiont}}}'],
      '12:58 steps.scan.outputs.a.read.record: `endpiont` is none of domain, address, dns, service, endpoint, certificate, technology, finding | did you mean `endpoint`?',
    ],
  ])('%s', (_, lines, expected) => {
    expect(problemsOf(withStep(...lines))).toContain(expected);
  });

  test.each(['/etc/passwd', '..', 'a/../b', './a', 'a//b', 'a/', 'a\\\\b', 'a\\nb', '${item}'])(
    'an output cannot lie at %s',
    (path) => {
      expect(problemsOf(withStep(...ok, `outputs: {a: {path: "${path}"}}`)).join()).toMatch(
        /steps\.scan\.outputs\.a\.path/,
      );
    },
  );

  test('a circle is named whole, once', () => {
    const step = (name: string, need: string): string =>
      `  ${name}: {tags: [t], command: [c], needs: {${need}: all}}`;
    expect(
      problemsOf(
        [
          'sonar: 1',
          'name: x',
          'steps:',
          step('a', 'c'),
          step('b', 'a'),
          step('c', 'b'),
          step('d', 'c'),
        ].join('\n'),
      ),
    ).toEqual(['4:40 steps.a.needs.c: the steps need each other in a circle: a → c → b → a']);
  });
});
