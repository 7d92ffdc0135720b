import { existsSync, globSync, readFileSync } from 'node:fs';
import { inCheckout } from '../checkout.ts';
import { judge, type Outcome } from './step.ts';

interface LockedPackage {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
}

type Manifest = Partial<Record<(typeof dependencyKinds)[number], Record<string, string>>>;

const dependencyKinds = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;

const readJson = (file: string): unknown => JSON.parse(readFileSync(inCheckout(file), 'utf8'));
const lockedPackages = (): [string, LockedPackage & Manifest][] =>
  Object.entries(
    (readJson('package-lock.json') as { packages: Record<string, LockedPackage & Manifest> }).packages,
  );

/** Installs from any mirror give the same bytes: a hash for each package, an address for none, exact versions. */
export async function lockFile(): Promise<Outcome> {
  const manifest = readJson('package.json') as Manifest;
  const packages = lockedPackages();
  const root = packages.find(([path]) => path === '')?.[1] ?? {};
  const installed = packages.filter(([path, entry]) => path !== '' && entry.link !== true);
  return judge(
    [
      ...installed
        .filter(([, { resolved }]) => resolved !== undefined)
        .map(
          ([path]) =>
            `${path} records a download address; keep \`omit-lockfile-registry-resolved=true\` in .npmrc`,
        ),
      ...installed
        .filter(([, { integrity }]) => integrity === undefined)
        .map(([path]) => `${path} has no integrity hash`),
      ...dependencyKinds.flatMap((kind) =>
        Object.entries(manifest[kind] ?? {}).flatMap(([name, version]) => [
          ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`${kind}: ${name} is not pinned: ${version}`]),
          ...(root[kind]?.[name] === version
            ? []
            : [`${kind}: ${name} ${version} is not what the lock file has`]),
        ]),
      ),
    ],
    `${installed.length} packages`,
  );
}

/**
 * With a second copy, protobuf types of one are not those of the other and replaying a history throws
 * `type must be a Type`.
 */
export async function oneProtobufjs(): Promise<Outcome> {
  const locked = lockedPackages()
    .map(([path]) => path)
    .filter((path) => path.endsWith('node_modules/protobufjs'));
  const onDisk = globSync('node_modules/{,@*/}*/node_modules/protobufjs', { cwd: inCheckout() });
  return judge([
    ...(locked.length === 1
      ? []
      : [`the lock file has ${locked.length} copies of protobufjs: ${locked.join(', ')}`]),
    ...(existsSync(inCheckout('node_modules/protobufjs')) ? [] : ['protobufjs is not installed']),
    ...onDisk.map((path) => `a second copy of protobufjs is installed: ${path}`),
  ]);
}
