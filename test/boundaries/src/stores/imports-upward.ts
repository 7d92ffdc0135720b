// forbidden: arrows-point-down: src/stores
import type { Placed } from '../flow/place-tasks.ts';

export type Upward = Placed;
