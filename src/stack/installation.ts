import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';
import { ensureCached } from './binary-cache.ts';
import type { DownloadContext } from './download-context.ts';
import { StackError } from './stack-error.ts';

/** Programs of a service that were found, and where. */
export interface Installation<Files> {
  source: 'path' | 'cache' | 'download';
  version: string;
  files: Files;
}

/** What PATH offers of a program: usable files, or the reason why it is passed over. */
export type PathOffer<Files> = { version: string; files: Files } | { passedOver: string };

/** The ways to come by one service's programs, in the order they are tried after the environment's address. */
export interface InstallationWays<Files> {
  /** As a person calls it. */
  title: string;
  /** The variable that names a running one instead. */
  variable: string;
  /** What to install so that PATH offers it. */
  onPath: string;
  fromPath(environment: NodeJS.ProcessEnv): Promise<PathOffer<Files> | undefined>;
  /** Undefined where nothing can be downloaded for this machine. */
  download: Download<Files> | undefined;
}

export interface Download<Files> {
  /** The entry's name in the cache: program, version, architecture. */
  key: string;
  /** As it is shown before it is there. */
  version: string;
  /** The clients it needs. */
  clients: readonly string[];
  fill(folder: string, context: DownloadContext): Promise<void>;
  open(folder: string): { version: string; files: Files };
}

/** Where the programs would come from, without fetching anything. */
export interface InstallationPlan<Files> {
  installed: Installation<Files> | undefined;
  /** Why PATH's was passed over, when it has one. */
  passedOver: string | undefined;
}

/** Looks on PATH, then in the cache. */
export async function planInstallation<Files>(
  ways: InstallationWays<Files>,
  environment: NodeJS.ProcessEnv,
  cache: string,
): Promise<InstallationPlan<Files>> {
  const offer = await ways.fromPath(environment);
  if (offer && 'files' in offer) return { installed: { source: 'path', ...offer }, passedOver: undefined };
  const passedOver = offer?.passedOver;
  if (!ways.download) return { installed: undefined, passedOver };
  const entry = join(cache, ways.download.key);
  if (!existsSync(entry)) return { installed: undefined, passedOver };
  return { installed: { source: 'cache', ...ways.download.open(entry) }, passedOver };
}

/** The programs, downloaded when neither PATH nor the cache has them. Throws `download_failed` naming the ways out. */
export async function ensureInstalled<Files>(
  ways: InstallationWays<Files>,
  cache: string,
  context: DownloadContext,
  onDownload: (detail: string) => void,
): Promise<Installation<Files>> {
  const { installed, passedOver } = await planInstallation(ways, context.environment, cache);
  if (installed) return installed;
  const waysOut = waysToGet(ways);
  const { download } = ways;
  if (!download) {
    const machine = `${process.platform}-${process.arch}`;
    throw new StackError('download_failed', `no ${ways.title} can be downloaded for ${machine}`, waysOut);
  }
  onDownload(`${ways.title} ${download.version}${passedOver ? ` (${passedOver})` : ''}`);
  try {
    const entry = await ensureCached(cache, download.key, (folder) => download.fill(folder, context));
    return { source: 'download', ...download.open(entry) };
  } catch (fault) {
    context.signal.throwIfAborted();
    throw new StackError(
      'download_failed',
      `${ways.title} could not be downloaded: ${messageOf(fault)}`,
      waysOut,
      {
        cause: fault,
      },
    );
  }
}

/** What a person can do to let a service come up. */
export function waysToGet(ways: InstallationWays<unknown>): string[] {
  return [
    `set ${ways.variable} to a running ${ways.title}`,
    `install ${ways.onPath} so that it is on PATH`,
    ...(ways.download
      ? [`let the download work: it needs ${ways.download.clients.join(', ')} and a reachable registry`]
      : []),
    'sonar doctor shows what is missing',
  ];
}
