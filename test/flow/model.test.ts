// A few of the random stories that `npm run test:model` makes thousands of.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { runModel } from '../model/run-model.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const runs = Number(process.env.SONAR_MODEL_RUNS ?? 200);
const seed = Number(process.env.SONAR_MODEL_SEED ?? 20261130);
const path = process.env.SONAR_MODEL_PATH;

test(
  `${runs} random stories of a scan agree with the reference model, and come to their end`,
  async () => {
    const stories = runModel({ clone, objects }, { runs, seed, ...(path === undefined ? {} : { path }) });
    await expect(stories).resolves.toBeUndefined();
  },
  60_000 + runs * 5_000,
);
