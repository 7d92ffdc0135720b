// What every control role stands on: settings, keys, database, and the services it needs.

import { assertSchemaCurrent } from '#sonar/db/migrator.ts';
import { type Database, openDatabase } from '#sonar/db/pool.ts';
import type { Connections, Settings } from '#sonar/platform/config.ts';
import { connectionsSchema, parseEnvironment, settingsSchema } from '#sonar/platform/config.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { type MasterKeys, parseMasterKeys } from '#sonar/platform/signing.ts';
import { keepRevisions, type Revisions } from '#sonar/stores/revisions.ts';
import { type ObjectStore, openObjectStore } from '#sonar/transport/object-store.ts';
import { connectTemporal, type TemporalGateway } from '#sonar/transport/temporal-client.ts';

export interface ControlParts {
  connections: Connections;
  settings: Settings;
  keys: MasterKeys;
  database: Database;
  /** A connection of its own, which no work of the process can hold up. */
  leaseDatabase: Database;
  objects: ObjectStore;
  revisions: Revisions;
  temporal: TemporalGateway;
  log: Logger;
  close(): Promise<void>;
}

/** @throws SonarError `configuration`, `schema_version` or `unreachable`, with the way out. */
export async function openControlParts(environment: NodeJS.ProcessEnv, log: Logger): Promise<ControlParts> {
  const connections = parseEnvironment(connectionsSchema, environment);
  const settings = parseEnvironment(settingsSchema, environment);
  const keys = parseMasterKeys(connections.SONAR_MASTER_KEYS);
  const open = (maxConnections: number): Database =>
    openDatabase({
      url: connections.SONAR_DATABASE_URL,
      applicationName: 'sonar',
      maxConnections,
      onError: (error) => log.warn({ operation: 'database_connection_lost', error: messageOf(error) }),
    });
  const database = open(settings.SONAR_DATABASE_CONNECTIONS);
  const leaseDatabase = open(1);
  const objects = openObjectStore({
    endpoint: connections.SONAR_S3_ENDPOINT,
    bucket: connections.SONAR_S3_BUCKET,
    region: connections.AWS_REGION,
    urlLifeMs: settings.SONAR_URL_LIFE_MS,
  });
  try {
    await assertSchemaCurrent(database);
    const temporal = await connectTemporal({
      address: connections.SONAR_TEMPORAL_ADDRESS,
      namespace: connections.SONAR_TEMPORAL_NAMESPACE,
    });
    return {
      connections,
      settings,
      keys,
      database,
      leaseDatabase,
      objects,
      revisions: keepRevisions(),
      temporal,
      log,
      async close() {
        await temporal.close();
        objects.close();
        await leaseDatabase.close();
        await database.close();
      },
    };
  } catch (error) {
    objects.close();
    await leaseDatabase.close();
    await database.close();
    throw error;
  }
}
