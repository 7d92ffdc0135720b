import { tasks } from '#sonar/stores/tasks.ts';

export type Placed = number;
export const placeTasks = tasks;
