import type { CommandLine } from './command-line.ts';
import { route, type ScriptedApi } from './scripted-api.ts';
import { useScriptedCli } from './scripted-cli.ts';
import { scanIds, scanView } from './views.ts';

const scripted = useScriptedCli();
let api: ScriptedApi;
let cli: CommandLine;
beforeEach(() => {
  ({ api, cli } = scripted);
});

const item = {
  kind: 'finalization',
  id: scanIds.second,
  scanId: scanIds.first,
  scan: 'survey',
  taskId: scanIds.second,
  step: 'ports',
  item: 'a\u001b[2J',
  attemptId: scanIds.second,
  worker: 'w1',
  taskStatus: 'Failed',
  error: 'none of 3 records\nof x could be read',
  sample: { file: 'x.jsonl', text: '\u001b]0;owned\u0007rest' },
  size: 12,
  attempts: 8,
  poisonedAt: '2026-01-02T03:04:05.678Z',
};

test('list and show tell error and sample, and nothing of them reaches the terminal as it is', async () => {
  api.answer = route({
    'GET /v1/poison': { json: { items: [item], next: null } },
    [`GET /v1/poison/${item.id}`]: { json: item },
  });
  const list = await cli.run('poison', 'list', '--scan', 'latest');
  expect(list.out.split('\n')).toHaveLength(3);
  expect(api.asked[0]?.url.search).toBe('?scan=latest&limit=100');
  const shown = await cli.run('poison', 'show', item.id);
  expect(shown.out).toContain('sample       rest\n');
  expect(shown.out).toContain(`sonar poison retry ${item.id}`);
  expect(list.out + shown.out).not.toMatch(/[\u001b\u0007]/);
  expect(JSON.parse((await cli.run('poison', 'show', item.id, '--json')).out)).toEqual(item);
});

test('one is repaired by its id, all of a scan by --all and --scan, and nothing between them', async () => {
  const repaired = { scan: scanView({ status: 'Running', generation: 2 }), repaired: 2 };
  api.answer = route({
    [`POST /v1/poison/${item.id}/retry`]: { json: { ...repaired, repaired: 0 } },
    'POST /v1/poison/retry': { json: repaired },
  });
  expect((await cli.run('poison', 'retry', item.id)).out).toContain('waits to be read already');
  expect((await cli.run('poison', 'retry', '--all', '--scan', 'latest')).out).toContain(
    '2 results to be read again',
  );
  expect(api.asked[1]?.body).toEqual({ scan: 'latest' });
  for (const words of [[], ['--all'], [item.id, '--scan', 'latest'], [item.id, '--all', '--scan', 'latest']])
    expect(await cli.run('poison', 'retry', ...words)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--all --scan ID'),
    });
});
