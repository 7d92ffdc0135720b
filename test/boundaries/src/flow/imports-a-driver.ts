// forbidden: own-driver: pg
import { Pool } from 'pg';

export const driver = Pool;
