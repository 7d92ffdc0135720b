import type { z } from 'zod';
import type { repairedSchema } from '#sonar/contracts/poison-api.ts';
import type { retriedSchema } from '#sonar/contracts/scan-api.ts';
import { counted } from './figures.ts';

/** What a retry came to, and how to see its end. */
export const retryLines = ({ scan, retried }: z.infer<typeof retriedSchema>): string[] => [
  `${counted(retried, 'task')} to be tried again; ${scan.id} is ${scan.status}, generation ${scan.generation}`,
  `see its end with: sonar scan watch ${scan.id}`,
];

/** What a repair came to. */
export const repairLines = ({ scan, repaired }: z.infer<typeof repairedSchema>): string[] => [
  repaired === 0
    ? `it waits to be read already; ${scan.id} is ${scan.status}`
    : `${counted(repaired, 'result')} to be read again; ${scan.id} is ${scan.status}, generation ${scan.generation}`,
  `see its end with: sonar scan watch ${scan.id}`,
];
