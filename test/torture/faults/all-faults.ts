import type { FaultKind } from '../schedule.ts';
import { workerPlans } from '../settings.ts';
import { stepClock } from './clock-faults.ts';
import { type Fault, lasting } from './fault-context.ts';
import { cutMember, cutService, holdMember, partMember, slowService, tampering } from './network-faults.ts';
import {
  drainWorker,
  killHelper,
  killRole,
  killWorker,
  killWorkerAndHelper,
  restartRole,
  stopMachine,
  stopRole,
  stopRolePastLease,
  stopWorker,
} from './process-faults.ts';
import { killService, restartService } from './service-faults.ts';

const tags = [...new Set(workerPlans.flatMap((worker) => worker.tags))];

export const faults: Record<FaultKind, Fault> = {
  kill_api: killRole('api'),
  kill_reconciler: killRole('reconciler'),
  kill_finalizer: killRole('finalizer'),
  kill_publisher: killRole('publisher'),
  kill_worker: killWorker,
  kill_helper: killHelper,
  kill_worker_and_helper: killWorkerAndHelper,
  stop_worker: stopWorker,
  stop_machine: stopMachine,
  stop_role: stopRole,
  stop_role_past_lease: stopRolePastLease,
  drain_worker: drainWorker,
  restart_role: restartRole,
  kill_postgres: killService('postgres'),
  kill_rabbitmq: killService('rabbitmq'),
  kill_s3: killService('s3'),
  kill_temporal: killService('temporal'),
  restart_postgres: restartService('postgres'),
  restart_rabbitmq: restartService('rabbitmq'),
  restart_s3: restartService('s3'),
  restart_temporal: restartService('temporal'),
  cut_service: cutService,
  cut_member: cutMember,
  part_member: partMember,
  hold_member: holdMember,
  slow_service: slowService,
  callbacks_repeated: tampering('repeated'),
  callbacks_reordered: tampering('reordered'),
  callbacks_delayed: tampering('delayed'),
  callbacks_late: tampering('late'),
  callbacks_unanswered: tampering('unanswered'),
  messages_duplicated: ({ copies, signal }, planned) =>
    copies.duplicate(tags, lasting(planned, 2_000, 6_000), planned.part, signal),
  step_clock: stepClock,
};
