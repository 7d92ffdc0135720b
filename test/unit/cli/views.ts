import type { ScanDetail, ScanView, StepView, TaskView } from '#sonar/contracts/scan-api.ts';

export const scanIds = {
  first: '01990000-0000-7000-8000-000000000001',
  second: '01990000-0000-7000-8000-000000000002',
};

export function scanView(changes: Partial<ScanView> = {}): ScanView {
  return {
    id: scanIds.first,
    name: 'survey',
    definition: 'survey',
    revision: 1,
    pinned: false,
    status: 'Running',
    generation: 1,
    cancelRequested: false,
    reason: null,
    createdAt: '2026-01-02T03:04:05.678Z',
    finishedAt: null,
    lastTickAt: null,
    ...changes,
  };
}

export function stepView(
  step: string,
  counts: Partial<StepView['counts']> = {},
  changes: Partial<StepView> = {},
): StepView {
  return {
    step,
    state: 'open',
    revision: 1,
    removed: false,
    tags: ['nmap'],
    counts: {
      pending: 0,
      published: 0,
      running: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      noWork: 0,
      ...counts,
    },
    refused: 0,
    recovered: 0,
    starvedSince: null,
    note: null,
    ...changes,
  };
}

export function scanDetail(changes: Partial<ScanDetail> = {}): ScanDetail {
  return {
    ...scanView(),
    scope: { allow: ['127.0.0.0/8'], deny: [] },
    steps: [stepView('ports', { completed: 3 })],
    unfinalized: 0,
    poisoned: 0,
    records: {},
    temporalWorkflowId: `scan/${scanIds.first}`,
    ...changes,
  };
}

export function taskView(changes: Partial<TaskView> = {}): TaskView {
  return {
    id: '01990000-0000-7000-8000-0000000000aa',
    scanId: scanIds.first,
    step: 'ports',
    parentTaskId: null,
    item: 'a.example.test',
    status: 'Completed',
    noWork: false,
    tag: 'nmap',
    worker: 'w1',
    attempts: 1,
    releases: 0,
    exitCode: 0,
    failure: null,
    warnings: [],
    records: 2,
    badRecords: 0,
    publishedAt: '2026-01-02T03:04:05.000Z',
    startedAt: '2026-01-02T03:04:06.000Z',
    finishedAt: '2026-01-02T03:04:08.500Z',
    recoveries: 0,
    lastRecovery: null,
    ...changes,
  };
}
