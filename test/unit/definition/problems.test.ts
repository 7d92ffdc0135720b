import { ok, problemsOf, withStep } from './problems-of.ts';

test('ten different mistakes give ten messages in one go, each with its place', () => {
  const source = `sonar: 2
name: Bad Name
inputs:
  hosts: {type: hostz, required: yes}
steps:
  ports:
    tags: []
    foreach: {in: inputs.host}
    command: [nmap, "\${itm}", "\${out.xml}"]
    timeout: 30
    outputs: {xml: {path: ../nmap.xml, read: nmap}}
  web:
    tgas: [web]
    tags: [web]
    needs: {port: single}
    command: [curl]
`;
  expect(problemsOf(source)).toEqual([
    '1:8 sonar: there is no language version `2` | write `sonar: 1`',
    '2:7 name: `Bad Name` cannot be the name of a definition | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
    '4:17 inputs.hosts.type: `hostz` is none of text, number, flag, lines, domains, hosts, cidrs, urls, file | did you mean `hosts`?',
    '4:34 inputs.hosts.required: `yes` is neither true nor false | did you mean `true`?',
    '7:11 steps.ports.tags: `tags` is empty | name at least one tag of the workers that may run the step',
    '8:19 steps.ports.foreach.in: there is no input `host` | did you mean `hosts`?',
    '9:22 steps.ports.command[1]: unknown variable `${itm}` | write item, item.FIELD, batch, inputs.NAME, in.NAME, out.NAME, file.NAME or join(…)',
    '10:14 steps.ports.timeout: `30` is no duration | name the unit: `30s`',
    '11:27 steps.ports.outputs.xml.path: `../nmap.xml` leaves the output folder | write a path below the output folder, as `out/scan.xml`',
    '11:46 steps.ports.outputs.xml.read: there is no reader `nmap` | did you mean `nmap-xml`?',
    '13:5 steps.web.tgas: unknown field `tgas` | did you mean `tags`?',
    '15:13 steps.web.needs.port: there is no step `port` | did you mean `ports`?',
  ]);
});

test('a comma in a value inside { } is explained', () => {
  expect(
    problemsOf(
      'sonar: 1\nname: x\ninputs: {p: {type: text, default: 80,443}}\nsteps: {a: {tags: [t], command: [c]}}',
    ),
  ).toEqual([
    '3:38 inputs.p.443: unknown field `443` | inside { } a comma ends a value: quote it, as in "80,443"',
  ]);
});

test('the scope of a definition and the defaults of inputs are checked', () => {
  const source = [
    'sonar: 1',
    'name: x',
    'scope: {allow: [example.com, "*.example.com"], deny: [10.0.0.1/8]}',
    'inputs: {n: {type: number, default: many}, f: {type: flag, default: "on"}, l: {type: text, default: [a]}, r: {type: text, required: true, default: a}}',
    'steps: {a: {tags: [t], command: [c]}}',
  ].join('\n');
  expect(problemsOf(source)).toEqual([
    '3:30 scope.allow[1]: `*.example.com` is no domain, address or CIDR | a domain covers its subdomains: write `example.com`',
    '3:55 scope.deny[0]: `10.0.0.1/8` has bits set beyond its prefix | write `10.0.0.0/8` for the network',
    '4:37 inputs.n.default: the default of `n` is no number: `many`',
    '4:69 inputs.f.default: the default of `f` is neither true nor false: `on`',
    '4:101 inputs.l.default: the default of `l` is a list, but the type is none',
    '4:148 inputs.r.default: an input that is required has no use for a default | drop one of the two',
  ]);
});

test('what is to come is named, not passed over', () => {
  expect(problemsOf(withStep(...ok, 'run: {}'))).toEqual([
    '12:5 steps.scan.run: `run` is not read by this version of Sonar | leave it out',
  ]);
});

test('mistakes with files are found beside all others', () => {
  const source = [
    withStep('tags: [tool]', 'command: [tool, "${file.templtes}", "${file.words}"]'),
    'files: {templates: ./nuclei-templates, words: "", Bad: ./x, odd: "./${item}"}',
  ].join('\n');
  expect(problemsOf(source)).toEqual([
    '11:22 steps.scan.command[1]: `${file.templtes}`: the definition has no file `templtes` | did you mean `templates`?',
    '12:47 files.words: the path of `words` is empty',
    '12:51 files.Bad: `Bad` cannot be the name of a file | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
    '12:66 files.odd: `./${item}` holds a template; paths are fixed',
  ]);
});
