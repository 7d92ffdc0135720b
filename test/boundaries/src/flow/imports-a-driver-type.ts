// forbidden: own-driver: @temporalio/client
import type { Client } from '@temporalio/client';

export type Driver = Client;
