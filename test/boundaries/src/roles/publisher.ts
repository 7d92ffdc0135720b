import { placeTasks } from '#sonar/flow/place-tasks.ts';

export const publisher = placeTasks;
