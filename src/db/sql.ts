// SQL stays SQL: a tag that turns `${value}` into a parameter. Every statement has a name, by which
// the tests find it to describe it against the migrated schema, and PostgreSQL keeps it prepared.
import { registerStatement } from './statements.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** `sql('task.accept')`update … where task_id = ${id}``; the name is `family.verb`, unique. */
export function sql(name: string): (strings: TemplateStringsArray, ...values: unknown[]) => Statement {
  return (strings, ...values) => {
    const text = strings.reduce((whole, piece, index) => `${whole}$${index}${piece}`);
    registerStatement(name, text);
    return { name, text, values };
  };
}
