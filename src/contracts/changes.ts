/** How a later scan may have seen a record otherwise than an earlier one. */
export const changes = ['added', 'changed', 'gone', 'unknown'] as const;
export type Change = (typeof changes)[number];
