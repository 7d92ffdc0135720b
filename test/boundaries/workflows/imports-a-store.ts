// forbidden: arrows-point-down: workflows
import { tasks } from '#sonar/stores/tasks.ts';

export const store = tasks;
