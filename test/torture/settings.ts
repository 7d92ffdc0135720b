// Sonar's own figures, shortened: what takes minutes in a deployment takes seconds here, in the same proportions.

export const executorLeaseMs = 15_000;

export const roleSettings: Record<string, string> = {
  SONAR_PULSE_EVERY_MS: '1000',
  SONAR_ALIVE_WITHIN_MS: '4000',
  SONAR_PLACEMENT_LEASE_MS: '2000',
  SONAR_OUTBOX_LEASE_MS: '3000',
  SONAR_BACKOFF_MS: '500',
  SONAR_MAX_BACKOFF_MS: '5000',
  SONAR_FINALIZATION_LEASE_MS: '4000',
  SONAR_FINALIZATION_ATTEMPTS: '4',
  SONAR_EXECUTOR_RENEW_MS: '2000',
  SONAR_EXECUTOR_LEASE_MS: String(executorLeaseMs),
  SONAR_CANCEL_GRACE_MS: '20000',
  // A run of twenty minutes drains its few workers more often than a fleet does in a day.
  SONAR_MAX_RELEASES: '1000',
  SONAR_STALE_AFTER_MS: '8000',
  SONAR_RECOVERY_EVERY_MS: '1000',
  SONAR_RECOVERY_LEASE_MS: '5000',
  // The bound would be a right answer too, but one that nobody can know beforehand.
  SONAR_MAX_RECOVERIES: '100',
  SONAR_SILENT_SCAN_MS: '8000',
  SONAR_MESSAGE_TTL_MS: '120000',
  SONAR_DATABASE_CONNECTIONS: '8',
};

export interface WorkerPlan {
  name: string;
  tags: string[];
  slots: number;
}

/** Four, with tags of their own and one that all of them have. */
export const workerPlans: readonly WorkerPlan[] = [
  { name: 'torture-a', tags: ['shared', 'left'], slots: 4 },
  { name: 'torture-b', tags: ['shared', 'left'], slots: 2 },
  { name: 'torture-c', tags: ['shared', 'right'], slots: 4 },
  { name: 'torture-d', tags: ['right', 'shared'], slots: 3 },
];
