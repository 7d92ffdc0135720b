// Why a task, a finalization or a scan failed: stored, shown, and matched on; messages are for people.
export const failureCodes = {
  commandFailed: 'command_failed',
  commandTimedOut: 'command_timed_out',
  commandNotFound: 'command_not_found',
  inputUnavailable: 'input_unavailable',
  outputMissing: 'output_missing',
  outputRefused: 'output_refused',
  itemRefused: 'item_refused',
  poisoned: 'finalization_poisoned',
  superseded: 'superseded',
  scanCancelled: 'scan_cancelled',
  scanFailed: 'scan_failed',
  stepRemoved: 'step_removed',
  releasedTooOften: 'RELEASED_TOO_OFTEN',
  recoveredTooOften: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
  taskCap: 'task_cap_exceeded',
  sourceLost: 'source_lost',
} as const;
