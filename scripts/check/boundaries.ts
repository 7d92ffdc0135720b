import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkout, inCheckout } from '../checkout.ts';
import { failed, judge, type Outcome, passed } from './step.ts';
import { runTool } from './tool.ts';

const cruiser = 'dependency-cruiser/bin/dependency-cruise.mjs';
const config = ['--config', inCheckout('.dependency-cruiser.mjs')];
const cruised = ['bin', 'src', 'workflows', 'activities', 'demo', 'bench', 'scripts', 'test'];

/** The arrows of the house, as .dependency-cruiser.mjs draws them. */
export async function boundaries(): Promise<Outcome> {
  const folders = cruised.filter((folder) => existsSync(inCheckout(folder)));
  const { ok, output } = await runTool(cruiser, [...config, '-T', 'err-long', ...folders]);
  return ok ? passed() : failed(output);
}

const fixtures = inCheckout('test', 'boundaries');

/**
 * The fixture tree stands where the program's folders would. Each of its files names in `// forbidden: RULE` lines
 * the rules that must report it; a rule that stays silent, or speaks where nothing is forbidden, fails the step.
 */
export async function boundaryCanaries(): Promise<Outcome> {
  const { stdout, output } = await runTool(cruiser, [...config, '-T', 'json', '.'], fixtures);
  if (!stdout.startsWith('{')) return failed(output);
  const { summary } = JSON.parse(stdout) as {
    summary: { violations: { from: string; rule: { name: string } }[] };
  };
  const reported = new Set(summary.violations.map(({ from, rule }) => `${from}: ${rule.name}`));
  const expected = new Set(
    globSync('**/*.ts', { cwd: fixtures }).flatMap((file) =>
      [...readFileSync(join(fixtures, file), 'utf8').matchAll(/^\/\/ forbidden: (.+)$/gm)].map(
        ([, rule]) => `${file}: ${rule}`,
      ),
    ),
  );
  if (expected.size === 0) return failed(`no canary in ${fixtures.slice(checkout.length + 1)}`);
  return judge(
    [
      ...[...expected]
        .filter((canary) => !reported.has(canary))
        .map((canary) => `not reported, though forbidden: ${canary}`),
      ...[...reported]
        .filter((report) => !expected.has(report))
        .map((report) => `reported, though no canary names it: ${report}`),
    ],
    `${expected.size} reported`,
  );
}
