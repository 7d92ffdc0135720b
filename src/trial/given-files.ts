// What a trial is given in place of upstream results: files and folders of this machine, by output.
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Definition, ReadSpec, Row, Source } from '#sonar/contracts/definition.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { readerFor } from '#sonar/readers/registry.ts';

export type OutputSource = Extract<Source, { kind: 'output' }>;

/** `STEP.OUTPUT` → paths, each in place of one upstream task. */
export type GivenOutputs = ReadonlyMap<string, readonly string[]>;

export interface GivenFile {
  /** In order of the paths that were given. */
  source: number;
  /** Below the output. */
  path: string;
  file: string;
}

// What a person points at by mistake (a home folder) must not be walked for ever.
const maxFiles = 10_000;

/** @throws SonarError `usage` where nothing was given for it or it is not there, with the way out. */
export async function filesOf(given: GivenOutputs, source: OutputSource): Promise<GivenFile[]> {
  const name = `${source.step}.${source.output}`;
  const paths = given.get(name);
  if (paths === undefined)
    throw new SonarError('usage', `the step reads ${name}: give a file in its place: --from ${name}=FILE`);
  const files: GivenFile[] = [];
  for (const [index, path] of paths.entries()) {
    const stats = await stat(path).catch(() => null);
    if (stats === null) throw new SonarError('usage', `--from ${name}: there is no ${path}`);
    if (stats.isDirectory()) await walk(files, index, path, '');
    else files.push({ source: index, path: basename(path), file: path });
  }
  return files;
}

async function walk(files: GivenFile[], source: number, root: string, below: string): Promise<void> {
  const entries = await readdir(join(root, below), { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) await walk(files, source, root, path);
    else if (entry.isFile()) files.push({ source, path, file: join(root, path) });
    if (files.length > maxFiles) throw new SonarError('usage', `${root} holds more than ${maxFiles} files`);
  }
}

export function readOf(definition: Definition, source: OutputSource): ReadSpec | null {
  const upstream = definition.steps.find(({ name }) => name === source.step);
  return upstream?.outputs.find(({ name }) => name === source.output)?.read ?? null;
}

export async function* rowsOf(
  given: GivenOutputs,
  source: OutputSource,
  read: ReadSpec,
): AsyncGenerator<Row> {
  for (const { file } of await filesOf(given, source))
    for await (const event of readerFor(read).read(createReadStream(file), read))
      if (event.kind === 'row') yield event.row;
}
