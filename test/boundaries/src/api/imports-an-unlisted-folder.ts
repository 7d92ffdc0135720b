// forbidden: arrows-point-down: src/api
// forbidden: every-folder-is-listed
import { help } from '#sonar/util/imports-nothing.ts';

export const helped = help;
