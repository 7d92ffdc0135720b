// forbidden: arrows-point-down: src/api
// forbidden: only-the-entry-imports-roles-and-stack
import { publisher } from '#sonar/roles/publisher.ts';

export const role = publisher;
