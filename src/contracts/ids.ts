// Branded identities. All are UUIDv7 texts made by `platform/ids.ts`; nothing here makes one.

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type ScanId = Branded<'ScanId'>;
export type TaskId = Branded<'TaskId'>;
export type AttemptId = Branded<'AttemptId'>;
export type IncarnationId = Branded<'IncarnationId'>;
export type ExecutorId = Branded<'ExecutorId'>;
export type FinalizationId = Branded<'FinalizationId'>;
export type TokenId = Branded<'TokenId'>;
/** Of a list that was brought into the inventory. */
export type ImportId = Branded<'ImportId'>;
/** What records come from. */
export type SourceId = ScanId | ImportId;
/** One per message a worker gets from the broker; retries of `started` reuse it. */
export type DeliveryId = Branded<'DeliveryId'>;
/** Proves that a claim is still the claimant's; a new one is made for every claim. */
export type ClaimToken = Branded<'ClaimToken'>;

export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The one workspace there is so far; `workspace_id` is on every business table and natural key. */
export const defaultWorkspace = 'default';
