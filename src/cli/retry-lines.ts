import type { z } from 'zod';
import type { retriedSchema } from '#sonar/contracts/scan-api.ts';
import { counted } from './figures.ts';

/** What a retry came to, and how to see its end. */
export const retryLines = ({ scan, retried }: z.infer<typeof retriedSchema>): string[] => [
  `${counted(retried, 'task')} to be tried again; ${scan.id} is ${scan.status}, generation ${scan.generation}`,
  `see its end with: sonar scan watch ${scan.id}`,
];
