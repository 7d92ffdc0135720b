// A local command: it may reach past the API.
import { pool } from '#sonar/db/pool.ts';

export const migrate = pool;
