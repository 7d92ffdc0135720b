// A record type of a definition's own.
/** How a field of a declared type's key is brought into one spelling; texts and numbers stay as they are otherwise. */
export const keyForms = ['domain', 'address', 'host', 'url', 'lower'] as const;
export type KeyForm = (typeof keyForms)[number];

/** A record type that a definition declares: what tells two of its records apart. */
export interface RecordDeclaration {
  /** Fields, in the order in which they stand in the key. */
  key: string[];
  normalize: Record<string, KeyForm>;
}
/** What a record's fields may be called. */
export const recordFieldPattern = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
