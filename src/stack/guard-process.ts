// The guard of one stack: a small process that holds the other end of a pipe from the supervisor. The kernel closes the
// pipe however the supervisor ends, SIGKILL included; the guard then ends whatever the ledger still lists.
import { endRun } from './process-ledger.ts';

const ledgerFile = process.argv[2];
if (!ledgerFile) throw new Error('usage: guard-process.ts LEDGER-FILE');

// A Ctrl-C or a hang-up reaches the supervisor, which stops the stack in order; the guard has to outlive it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdin.resume();
process.stdin.on('close', () => void endRun(ledgerFile).then(() => process.exit(0)));
process.stdin.on('error', () => undefined);
