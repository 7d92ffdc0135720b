import { existsSync, readFileSync } from 'node:fs';
import { workflowBundlePath } from '#sonar/roles/workflow-bundle.ts';
import { inCheckout } from '../checkout.ts';
import { failed, judge, type Outcome } from './step.ts';

/** The SDK alone comes to 1.6 MB with its source map; zod alone would add 1.1 MB. */
const largestBundleBytes = 2_200_000;

/** Packages that a workflow reaches only by mistake: a value import where `import type` was meant. */
const unwanted = ['zod', 'pg', 'yaml', 'pino', 'fastify', 'standardwebhooks'];

/** The workflows bundle: they reach neither Node nor a driver, and nothing heavy came along. */
export async function workflowBundle(): Promise<Outcome> {
  if (!existsSync(inCheckout('workflows/index.ts'))) {
    return failed('workflows/index.ts is missing: it is the only entry of the workflow bundle');
  }
  const bundle = readFileSync(await workflowBundlePath());
  const strangers = unwanted.filter((name) => bundle.includes(`/node_modules/${name}/`));
  return judge(
    [
      ...strangers.map((name) => `the bundle holds ${name}: use \`import type\` in what workflows import`),
      ...(bundle.length <= largestBundleBytes
        ? []
        : [`the bundle has ${bundle.length} bytes, more than ${largestBundleBytes}`]),
    ],
    `${(bundle.length / 1e6).toFixed(2)} MB`,
  );
}
