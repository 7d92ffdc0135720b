// The reference in docs/definitions.md is the field table itself: a field that is added or reworded is added there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FieldTable, fieldTables } from '#sonar/definition/fields.ts';

const titles: Record<keyof typeof fieldTables, string> = {
  root: 'The document',
  input: '`inputs.NAME`',
  defaults: '`defaults`',
  retry: '`retry`, where it is no number',
  scope: '`scope`',
  step: '`steps.NAME`',
  foreach: '`foreach`',
  stepInput: '`inputs.NAME` of a step',
  output: '`outputs.NAME`',
  record: '`records.NAME`',
  read: '`read`, where it is no name',
};

function reference(): string {
  return Object.entries(fieldTables as Record<string, FieldTable>)
    .map(([table, fields]) => {
      const rows = Object.entries(fields).map(
        ([name, field]) =>
          `| \`${name}\` | ${field.help}${field.required ? ' Required.' : ''}${field.later ? ' Not read yet.' : ''} |`,
      );
      return `### ${titles[table as keyof typeof titles]}\n\n| field | |\n| --- | --- |\n${rows.join('\n')}\n`;
    })
    .join('\n');
}

test('docs/definitions.md has the reference of the fields as they are', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/definitions.md'), 'utf8');
  expect(page.slice(page.indexOf('### The document')).trimEnd()).toBe(reference().trimEnd());
});
