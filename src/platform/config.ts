// Settings with their defaults, in one zod schema a concern. `roles/` parses the environment into them.
import { z } from 'zod';
import { environment } from '#sonar/contracts/names.ts';
import { SonarError } from './errors.ts';
import { maxTimerMs } from './wait.ts';

/** `SONAR_…` variables of the services; all are needed by the control roles. */
export const connectionsSchema = z.object({
  [environment.databaseUrl]: z.string().min(1),
  [environment.amqpUrl]: z.string().min(1),
  [environment.temporalAddress]: z.string().min(1),
  [environment.temporalNamespace]: z.string().min(1),
  [environment.s3Endpoint]: z.url(),
  [environment.s3Bucket]: z.string().min(1),
  AWS_REGION: z.string().min(1).default('us-east-1'),
  [environment.masterKeys]: z.string().min(1),
});
export type Connections = z.infer<typeof connectionsSchema>;

/** Waits: what is beyond a timer would be no wait at all. */
const ms = z.coerce.number().int().min(1).max(maxTimerMs);
/** Ages that the database compares; ten years. */
const keepMs = z.coerce.number().int().min(1).max(315_360_000_000);

/** Every figure that an operator may set, as `SONAR_…` in capitals; the comment says what breaks beside it. */
const figures = z.object({
  // Shorter: healthy workers drop out of placement over one slow pulse. Longer: dead ones get work.
  SONAR_PULSE_EVERY_MS: ms.default(10_000),
  SONAR_ALIVE_WITHIN_MS: ms.default(35_000),
  // Smaller: workers idle between a result and the next message. Larger: a lost worker holds more.
  SONAR_CAPACITY_MULTIPLE: z.coerce.number().int().min(1).max(100).default(2),
  SONAR_PLACEMENT_LEASE_MS: ms.default(10_000),
  SONAR_PLACEMENT_EVERY_MS: ms.default(100),
  SONAR_MESSAGE_TTL_MS: ms.default(3_600_000),
  // S3 presigns for seven days at most.
  SONAR_URL_LIFE_MS: ms.max(7 * 86_400_000).default(900_000),
  SONAR_QUEUE_TYPE: z.enum(['classic', 'quorum']).default('classic'),
  SONAR_PUBLISH_WINDOW: z.coerce.number().int().min(1).max(10_000).default(256),
  SONAR_OUTBOX_LEASE_MS: ms.default(30_000),
  SONAR_BACKOFF_MS: ms.default(5_000),
  SONAR_MAX_BACKOFF_MS: ms.default(300_000),
  SONAR_FINALIZATION_LEASE_MS: ms.default(60_000),
  SONAR_FINALIZATION_ATTEMPTS: z.coerce.number().int().min(1).max(100).default(8),
  SONAR_FINALIZATION_CLAIMS: z.coerce.number().int().min(1).max(1_000).default(16),
  SONAR_FINALIZATION_ROWS: z.coerce.number().int().min(1).max(1_000).default(50),
  SONAR_FINALIZATION_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(16 * 1024 * 1024),
  SONAR_EXECUTOR_RENEW_MS: ms.default(10_000),
  SONAR_EXECUTOR_LEASE_MS: ms.default(75_000),
  SONAR_SCAN_TASK_CAP: z.coerce.number().int().min(1).default(1_000_000),
  SONAR_CANCEL_GRACE_MS: ms.default(600_000),
  SONAR_MAX_RELEASES: z.coerce.number().int().min(1).default(10),
  // Recovery. Shorter: tasks are given away while their worker is only slow. Longer: lost tasks wait longer. Of
  // messages without a start, of commands on absent workers, and of pulse intake before anybody counts as absent.
  SONAR_STALE_AFTER_MS: ms.default(600_000),
  // The least time between two passes over all scans, however many ask.
  SONAR_RECOVERY_EVERY_MS: ms.default(5_000),
  SONAR_RECOVERY_LEASE_MS: ms.default(60_000),
  // Larger: a command that kills its machine kills more of them.
  SONAR_MAX_RECOVERIES: z.coerce.number().int().min(0).max(1_000).default(3),
  // Of so many workers over half lost within the window looks like a cut network: nobody is judged for the hold.
  SONAR_FLEET_HOLD_WORKERS: z.coerce.number().int().min(2).default(10),
  SONAR_FLEET_HOLD_WINDOW_MS: ms.default(60_000),
  SONAR_FLEET_HOLD_MS: ms.default(600_000),
  SONAR_WORKER_KEEP_MS: keepMs.default(7 * 86_400_000),
  // How long a tag whose queue the broker refuses is left alone.
  SONAR_TAG_PARKED_MS: ms.default(60_000),
  SONAR_LEDGER_KEEP_MS: keepMs.default(7 * 86_400_000),
  SONAR_SILENT_SCAN_MS: ms.default(180_000),
  SONAR_WAKE_EVERY_MS: ms.default(1_000),
  SONAR_OUTPUT_CAP_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(2 * 1024 ** 3),
  SONAR_DATABASE_CONNECTIONS: z.coerce.number().int().min(2).max(200).default(10),
});

/** Pulses have to come so often that one which is late and an outage can be told from a worker that is dead. */
const pulsesInALife = 3.5;

export const settingsSchema = figures.refine(
  (set) => set.SONAR_ALIVE_WITHIN_MS >= pulsesInALife * set.SONAR_PULSE_EVERY_MS,
  {
    path: ['SONAR_ALIVE_WITHIN_MS'],
    message: `must be at least ${pulsesInALife} times SONAR_PULSE_EVERY_MS`,
  },
);
export type Settings = z.infer<typeof settingsSchema>;

/**
 * Parses an environment by a schema.
 * @throws SonarError `configuration` that names every variable that is missing or wrong.
 */
export function parseEnvironment<Schema extends z.ZodType>(
  schema: Schema,
  source: NodeJS.ProcessEnv,
): z.infer<Schema> {
  const parsed = schema.safeParse(source);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) =>
    source[String(issue.path[0])] === undefined && issue.code !== 'custom'
      ? `${issue.path.join('.')} is not set`
      : `${issue.path.join('.')}: ${issue.message}`,
  );
  throw new SonarError(
    'configuration',
    `${faults.join('; ')}. For a local stack with all of them set, run: sonar up`,
  );
}
