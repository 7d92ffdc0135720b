// `npm run test:model -- --runs N --seed S [--path P]`: random stories of a scan against the reference model. `--path` is
// what a failure prints: it goes straight to that story.
import { parseArgs } from 'node:util';
import { checkout, inCheckout } from '../../scripts/checkout.ts';
import { endGroupsOnSignals, ProcessGroup } from '../../scripts/process-group.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    path: { type: 'string' },
  },
});
const count = (name: 'runs' | 'seed'): string => {
  if (/^\d{1,10}$/.test(values[name])) return values[name];
  console.error(`test:model: --${name} is a number, not "${values[name]}"`);
  process.exit(2);
};
const environment = {
  SONAR_MODEL_RUNS: count('runs'),
  SONAR_MODEL_SEED: count('seed'),
  ...(values.path === undefined ? {} : { SONAR_MODEL_PATH: values.path }),
};
console.log(`test:model: ${environment.SONAR_MODEL_RUNS} stories, seed ${environment.SONAR_MODEL_SEED}`);
endGroupsOnSignals(15_000, () => Promise.resolve());
const jest = new ProcessGroup(
  process.execPath,
  [
    inCheckout('node_modules/jest/bin/jest.js'),
    '--selectProjects',
    'flow',
    '--runTestsByPath',
    'test/flow/model.test.ts',
  ],
  { cwd: checkout, env: { ...process.env, ...environment }, output: 'inherit' },
);
const { code } = await jest.ended;
process.exit(code ?? 1);
