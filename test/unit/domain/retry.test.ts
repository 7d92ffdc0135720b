import type { Step } from '#sonar/contracts/definition.ts';
import { retryEffects } from '#sonar/domain/retry.ts';

const step = (name: string, needs: Record<string, 'single' | 'all'> = {}): Step =>
  ({ name, needs: Object.entries(needs).map(([upstream, mode]) => ({ step: upstream, mode })) }) as Step;

const steps = [
  step('list'),
  step('child', { list: 'single' }),
  step('grandchild', { child: 'single' }),
  step('report', { child: 'all' }),
  step('mail', { report: 'single' }),
  step('other'),
];

test.each([
  ['a leaf', ['mail'], { reopened: ['mail'], superseded: [] }],
  ['a step with children', ['child'], { reopened: ['child', 'grandchild'], superseded: ['report', 'mail'] }],
  ['the root', ['list'], { reopened: ['list', 'child', 'grandchild'], superseded: ['report', 'mail'] }],
  ['an All step itself', ['report'], { reopened: ['report', 'mail'], superseded: [] }],
  [
    'both ends',
    ['list', 'report'],
    { reopened: ['list', 'child', 'grandchild'], superseded: ['report', 'mail'] },
  ],
  ['nothing of the others', ['other'], { reopened: ['other'], superseded: [] }],
])('a retry of %s', (_what, retried, effects) => {
  expect(retryEffects({ steps }, new Set(retried))).toEqual(effects);
});
