// forbidden: arrows-point-down: src/worker
import { placeTasks } from '#sonar/flow/place-tasks.ts';

export const flow = placeTasks;
