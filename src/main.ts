// The `sonar` program.
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

// Stripping the types of a start's thirty files takes longer than all the rest of it: kept from run to run.
// A cache that cannot be written is no fault; the start is slower then. Hence the late import.
enableCompileCache(fileURLToPath(new URL('../.cache/compiled', import.meta.url)));
const [{ runCli }, { sinkOf }] = await Promise.all([import('./cli/program.ts'), import('./cli/terminal.ts')]);

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// `sonar … | head` ends early, and that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});
// Nobody is left to tell: a full disk under what a role says must not end the role.
process.stderr.on('error', () => undefined);

const signals = ['SIGINT', 'SIGTERM'] as const;

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  stdout: sinkOf(process.stdout),
  stderr: sinkOf(process.stderr),
  version: manifest.version,
  entry: fileURLToPath(import.meta.url),
  onInterrupt(interrupted) {
    for (const signal of signals) process.on(signal, interrupted);
    return () => {
      for (const signal of signals) process.off(signal, interrupted);
    };
  },
  exitNow: (code) => process.exit(code),
  readStdin: () => textOf(process.stdin),
});
