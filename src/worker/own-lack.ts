// Faults of the system that say something of this machine, not of the command or of what it left: no descriptor, no
// memory, no process, a disk that is full, broken or read-only. The same attempt may do well elsewhere.

const codes: ReadonlySet<unknown> = new Set([
  'EAGAIN',
  'EDQUOT',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ENOSPC',
  'EROFS',
  'ESTALE',
]);

export const isOwnLack = (error: unknown): boolean =>
  codes.has((error as { code?: unknown } | null | undefined)?.code);
