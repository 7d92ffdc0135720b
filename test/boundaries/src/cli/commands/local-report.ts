// forbidden: arrows-point-down: src/cli
import { tasks } from '#sonar/stores/tasks.ts';

export const report = tasks;
