// A definition's text and its files become a revision; the same again are the same revision.
import { createHash } from 'node:crypto';
import type { Definition, JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordDeclaration } from '#sonar/contracts/record-declaration.ts';
import type { UploadedFiles } from '#sonar/contracts/scan-api.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { problemAt } from '#sonar/definition/problem-at.ts';
import { canonicalJson } from '#sonar/domain/inventory-fold.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  ensureDefinition,
  findRevision,
  insertRevision,
  lockDefinition,
  type RevisionRow,
} from '#sonar/stores/definitions.ts';
import { declaredTypes, declareTypes } from '#sonar/stores/record-types.ts';
import { insertDefinitionFiles, knownFiles, type NewDefinitionFile } from '#sonar/stores/stored-files.ts';

type Problem = { path: string; message: string; hint: string | null };

/** @throws SonarError `invalid` with every problem of the text, or of the files. */
export async function applyDefinition(
  database: Database,
  workspaceId: string,
  source: string,
  uploaded: UploadedFiles = {},
): Promise<RevisionRow> {
  const compiled = compileDefinition(source);
  if (!compiled.ok) throw withProblems(compiled.problems);
  const problems: Problem[] = [];
  const definition = withFiles(compiled.definition, uploaded, problems);
  const files = filesOf(uploaded);
  await checkStored(database, workspaceId, files, problems);
  if (problems.length > 0) throw withProblems(problems);
  const sourceSha256 = createHash('sha256').update(source).digest('hex');
  const filesSha256 = Object.keys(uploaded).length === 0 ? '' : digestOf(uploaded);
  return database.transaction(async (tx) => {
    await ensureDefinition(tx, workspaceId, definition.name);
    const latest = (await lockDefinition(tx, workspaceId, definition.name)) ?? 0;
    const current = await findRevision(tx, workspaceId, definition.name, latest);
    if (current?.source_sha256 === sourceSha256 && current.files_sha256 === filesSha256) return current;
    const next = { workspaceId, name: definition.name, revision: latest + 1 };
    await insertRevision(tx, workspaceId, {
      ...next,
      source,
      sourceSha256,
      filesSha256,
      compiled: definition,
    });
    await declareRecordTypes(tx, workspaceId, definition, source);
    if (files.length > 0) await insertDefinitionFiles(tx, next, files);
    return (await findRevision(tx, workspaceId, definition.name, latest + 1)) as RevisionRow;
  });
}

/** A type's key tells its records apart for good: with two meanings one thing would be two records, and two things one. */
async function declareRecordTypes(
  tx: Db,
  workspaceId: string,
  { name, records = {} }: Definition,
  source: string,
): Promise<void> {
  if (Object.keys(records).length === 0) return;
  await declareTypes(tx, workspaceId, name, records);
  const problems = (await declaredTypes(tx, workspaceId)).flatMap((row) => {
    const own = Object.hasOwn(records, row.name) ? records[row.name] : undefined;
    if (own === undefined || canonicalJson({ ...own }) === canonicalJson({ ...row.declaration })) return [];
    const message = `the definition \`${row.declared_by}\` declares \`${row.name}\` in another way: ${meaningOf(row.declaration)}`;
    return problemAt(
      source,
      ['records', row.name],
      message,
      'declare it in the same way, or give yours another name',
    );
  });
  if (problems.length > 0) throw withProblems(problems);
}

const meaningOf = ({ key, normalize }: RecordDeclaration): string =>
  [
    `key: [${key.join(', ')}]`,
    ...Object.entries(normalize).map(([field, form]) => `${field} as ${form}`),
  ].join(', ');

const digestOf = (content: JsonValue): string =>
  createHash('sha256').update(canonicalJson(content)).digest('hex');

const withProblems = (problems: readonly Problem[]): SonarError =>
  new SonarError('invalid', `the definition has ${problems.length} problem(s)`, { details: { problems } });

/** The definition with the kind of each of its files. */
function withFiles(definition: Definition, uploaded: UploadedFiles, problems: Problem[]): Definition {
  const files: Definition['files'] = {};
  for (const [name, { path }] of Object.entries(definition.files)) {
    const given = Object.hasOwn(uploaded, name) ? uploaded[name] : undefined;
    files[name] = { path, kind: given?.kind ?? 'file', digest: digestOf(given ?? null) };
    const message = given === undefined ? `\`${path}\` was not uploaded` : contentFault(given);
    const hint = 'sonar definition apply FILE uploads the files beside the definition';
    if (message !== null) problems.push({ path: `files.${name}`, message, hint });
  }
  for (const name of Object.keys(uploaded)) {
    if (Object.hasOwn(definition.files, name)) continue;
    problems.push({ path: `files.${name}`, message: `the definition has no file \`${name}\``, hint: null });
  }
  return { ...definition, files };
}

function contentFault({ kind, entries }: UploadedFiles[string]): string | null {
  if (kind === 'file' && entries.length !== 1) return `is one file, but has ${entries.length}`;
  const paths = new Set<string>();
  for (const { path } of entries) {
    const unsafe = path.split('/').some((part) => part === '' || part === '.' || part === '..');
    if (unsafe || path.includes('\0')) return `has the unsafe path ${JSON.stringify(path.slice(0, 200))}`;
    if (paths.has(path)) return `has ${JSON.stringify(path.slice(0, 200))} twice`;
    paths.add(path);
  }
  return null;
}

const filesOf = (uploaded: UploadedFiles): NewDefinitionFile[] =>
  Object.entries(uploaded).flatMap(([file, { entries }]) =>
    entries.map(({ path, sha256 }) => ({ file, path, sha256 })),
  );

async function checkStored(
  database: Database,
  workspaceId: string,
  files: readonly NewDefinitionFile[],
  problems: Problem[],
): Promise<void> {
  if (files.length === 0) return;
  const known = await knownFiles(database, workspaceId, [...new Set(files.map(({ sha256 }) => sha256))]);
  const missing = files.filter(({ sha256 }) => !known.has(sha256));
  const [first] = missing;
  if (first === undefined) return;
  const message = `${missing.length} file(s) are not stored, the first is ${JSON.stringify(first.path.slice(0, 200))}`;
  problems.push({ path: `files.${first.file}`, message, hint: 'upload them by POST /v1/files' });
}
