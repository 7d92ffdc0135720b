import { boundaries, boundaryCanaries } from './boundaries.ts';
import { lockFile, oneProtobufjs } from './lock-file.ts';
import { failed, type Outcome, passed, type Step } from './step.ts';
import { runTool, type ToolResult } from './tool.ts';
import { tree } from './tree.ts';
import { workflowBundle } from './workflow-bundle.ts';

export const checkSteps: readonly Step[] = [
  {
    name: 'format',
    run: async () =>
      verdict(
        await runTool('@biomejs/biome/bin/biome', [
          'check',
          '--error-on-warnings',
          '--reporter=summary',
          '.',
        ]),
        '`npm run format` mends it',
      ),
  },
  {
    name: 'lint',
    run: async () =>
      verdict(
        await runTool('oxlint/bin/oxlint', [
          '--type-aware',
          '--format=unix',
          '--deny-warnings',
          '--report-unused-disable-directives',
          '.',
        ]),
      ),
  },
  { name: 'types', run: async () => verdict(await runTool('typescript/bin/tsc', ['-p', '.'])) },
  {
    name: 'unused code',
    run: async () => verdict(await runTool('knip/bin/knip.js', ['--no-progress'])),
  },
  { name: 'workflow bundle', run: workflowBundle },
  { name: 'boundaries', run: boundaries },
  { name: 'boundary canaries', run: boundaryCanaries },
  { name: 'one protobufjs', run: oneProtobufjs },
  { name: 'lock file', run: lockFile },
  { name: 'tree', run: tree },
];

function verdict({ ok, output }: ToolResult, hint?: string): Outcome {
  if (ok) return passed();
  return failed(hint === undefined ? output : `${output.trimEnd()}\n${hint}`);
}
