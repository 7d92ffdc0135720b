import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, statSync } from 'node:fs';
import { StackError } from './stack-error.ts';

/** PostgreSQL refuses to run as root, so root runs it as somebody else. */
export interface DatabaseUser {
  /** A command line that runs as that user. */
  as(program: string, args: readonly string[]): { command: string; args: readonly string[] };
  /** Gives a file or an empty folder to that user. */
  give(path: string): void;
}

/** Who it may be, unless data is there already: then its owner. */
const candidates = ['postgres', 'nobody'];

/** Of util-linux, which Debian always has. */
const userChanger = 'setpriv';

// Both let a process pass folders it has no right to; the first grants reading only and is missing in some containers.
const passingCapabilities = [
  { name: 'dac_read_search', bit: 2n },
  { name: 'dac_override', bit: 1n },
];

/**
 * The user that PostgreSQL runs as. The checkout or the cache may lie in a folder which that user cannot pass (root's
 * home, a `mktemp -d`): it then keeps one capability, to pass and to read. It is ambient, to survive the change of user
 * and each exec, and `no_setuid_fixup` makes access(2) honour it, by which PostgreSQL looks for its own files.
 */
export function chooseDatabaseUser(data: string, mustReach: readonly string[]): DatabaseUser {
  if (process.getuid?.() !== 0) return { as: (command, args) => ({ command, args }), give: () => undefined };
  const { uid, gid } = ownerOf(data) ?? firstCandidate();
  const give = (path: string): void => chownSync(path, uid, gid);
  const plain = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  if (reaches(plain, mustReach)) return { as: changing(plain), give };
  const capability = heldCapability();
  const passing = [
    ...plain,
    '--securebits=+no_setuid_fixup',
    `--inh-caps=-all,+${capability}`,
    `--ambient-caps=-all,+${capability}`,
  ];
  if (capability && reaches(passing, mustReach)) return { as: changing(passing), give };
  throw new StackError(
    'service_failed',
    `PostgreSQL does not run as root, and user ${uid} cannot be let at ${mustReach.join(', ')}`,
    [
      'run as an ordinary user',
      'put the checkout and XDG_CACHE_HOME where every user may pass, or install setpriv (util-linux)',
      'set SONAR_DATABASE_URL to a running PostgreSQL',
    ],
  );
}

function changing(options: readonly string[]): DatabaseUser['as'] {
  return (program, args) => ({ command: userChanger, args: [...options, program, ...args] });
}

function ownerOf(data: string): { uid: number; gid: number } | undefined {
  if (!existsSync(data)) return undefined;
  const { uid, gid } = statSync(data);
  return uid === 0 ? undefined : { uid, gid };
}

function firstCandidate(): { uid: number; gid: number } {
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const candidate of candidates) {
    const account = accounts.find(([name]) => name === candidate);
    if (account) return { uid: Number(account[2]), gid: Number(account[3]) };
  }
  throw new StackError(
    'service_failed',
    `PostgreSQL does not run as root, and there is no user ${candidates.join(' or ')}`,
    ['run as an ordinary user', 'set SONAR_DATABASE_URL to a running PostgreSQL'],
  );
}

function reaches(options: readonly string[], paths: readonly string[]): boolean {
  return paths.every(
    (path) => spawnSync(userChanger, [...options, 'test', '-x', path], { stdio: 'ignore' }).status === 0,
  );
}

function heldCapability(): string | undefined {
  const line = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
  const held = BigInt(`0x${line?.[1] ?? '0'}`);
  return passingCapabilities.find(({ bit }) => ((held >> bit) & 1n) === 1n)?.name;
}
