import { type StayOptions, stayUntilStopped } from '#sonar/cli/long-running.ts';
import { Session } from '#sonar/cli/session.ts';
import { CapturedSink } from './command-line.ts';

class Stay {
  readonly stderr = new CapturedSink();
  readonly exits: number[] = [];
  readonly done = Promise.withResolvers<number>();
  stopped = 0;
  interrupt = (): void => undefined;
  listening = false;

  run(start?: (signal: AbortSignal) => Promise<never>, options: StayOptions = {}): Promise<number> {
    const session = new Session(
      {
        environment: {},
        workingDirectory: '/',
        stdout: new CapturedSink(),
        stderr: this.stderr,
        version: '',
        entry: '',
        onInterrupt: (interrupted) => {
          this.interrupt = interrupted;
          this.listening = true;
          return () => {
            this.listening = false;
          };
        },
        exitNow: ((code: number) => this.exits.push(code)) as unknown as (code: number) => never,
        readStdin: () => Promise.resolve(''),
      },
      {},
    );
    const running = { stop: () => Promise.resolve(void this.stopped++), done: this.done.promise };
    return stayUntilStopped(session, start ?? (() => Promise.resolve(running)), options);
  }
}

test('what ends by itself gives its own exit code', async () => {
  const stay = new Stay();
  const code = stay.run();
  stay.done.resolve(7);
  expect(await code).toBe(7);
  expect([stay.stopped, stay.listening]).toEqual([0, false]);
});

test('the first Ctrl-C stops in order', async () => {
  const stay = new Stay();
  const code = stay.run();
  stay.interrupt();
  stay.done.resolve(0);
  expect(await code).toBe(0);
  expect(stay.stderr.text).toBe('stopping in order; Ctrl-C again ends it at once\n');
  expect(stay.exits).toEqual([]);
});

test('the second ends at once, but not the same one that came twice', async () => {
  const clock = jest.spyOn(performance, 'now');
  try {
    const stay = new Stay();
    const code = stay.run();
    const interruptAt = (ms: number): void => {
      clock.mockReturnValue(ms);
      stay.interrupt();
    };
    interruptAt(1000);
    interruptAt(1002);
    expect(stay.exits).toEqual([]);
    interruptAt(3000);
    expect(stay.exits).toEqual([130]);
    stay.done.resolve(0);
    await code;
  } finally {
    clock.mockRestore();
  }
});

test('what can be stopped harder is, by the second; the third ends the process', async () => {
  const clock = jest.spyOn(performance, 'now');
  try {
    const stay = new Stay();
    const code = stay.run(undefined, { stopAgain: true });
    // The start is over.
    await new Promise((resolve) => setImmediate(resolve));
    const interruptAt = async (ms: number): Promise<void> => {
      clock.mockReturnValue(ms);
      stay.interrupt();
      await new Promise((resolve) => setImmediate(resolve));
    };
    await interruptAt(1000);
    await interruptAt(1002);
    expect([stay.stopped, stay.exits]).toEqual([1, []]);
    await interruptAt(3000);
    expect([stay.stopped, stay.exits]).toEqual([2, []]);
    await interruptAt(5000);
    expect(stay.exits).toEqual([130]);
    stay.done.resolve(0);
    expect(await code).toBe(0);
  } finally {
    clock.mockRestore();
  }
});

test('Ctrl-C during the start aborts it, without a fault', async () => {
  const stay = new Stay();
  const code = stay.run(async (signal) => {
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(signal.reason as Error));
    return promise;
  });
  stay.interrupt();
  expect(await code).toBe(130);
});

test('a start that fails by itself is a fault', async () => {
  await expect(new Stay().run(() => Promise.reject(new Error('port in use')))).rejects.toThrow('port in use');
});

test('a start that does not hear of it ends with the process, after its grace', async () => {
  const stay = new Stay();
  const start = Promise.withResolvers<never>();
  const code = stay.run(() => start.promise, { startGraceMs: 1 });
  const exit = Promise.withResolvers<number>();
  jest.spyOn(stay.exits, 'push').mockImplementation((exitCode) => {
    exit.resolve(exitCode);
    return 1;
  });
  stay.interrupt();
  expect(await exit.promise).toBe(130);
  start.reject(new Error('never started'));
  await expect(code).rejects.toThrow('never started');
});
