import { pool } from '#sonar/db/pool.ts';

export const tasks = pool;
