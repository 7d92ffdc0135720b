// forbidden: own-driver: pg
import { Client } from 'pg';

export const client = Client;
