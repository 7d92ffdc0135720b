// The JSON Schema of the language for editors, made of the same field tables that the compiler checks by.
// Templates, needs and everything else that takes the whole text are the compiler's alone.
import { type FieldTable, fieldTables, type Schema } from './fields.ts';

function schemaOf(table: FieldTable): Schema {
  const fields = Object.entries(table).filter(([, { later }]) => later !== true);
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      fields.map(([name, { help, schema }]) => [name, { description: help, ...schema }]),
    ),
    required: fields.filter(([, { required }]) => required).map(([name]) => name),
  };
}

/** JSON Schema 2020-12 of a definition. */
export function definitionJsonSchema(): Schema {
  const { root, ...tables } = fieldTables;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sonar definition',
    ...schemaOf(root),
    $defs: Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, schemaOf(table)])),
  };
}
