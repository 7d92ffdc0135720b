create table sonar.scan (
  scan_id uuid primary key,
  workspace_id text not null references sonar.workspace,
  name text not null,
  -- A start with the same key and the same request is the same scan.
  client_key text,
  request_sha256 text not null,
  definition_name text not null,
  -- The newest revision that this scan has taken; a pinned scan never takes another.
  definition_revision integer not null,
  pinned boolean not null,
  scope jsonb not null,
  status text not null check (status in
    ('Running', 'Paused', 'Cancelling', 'Completed', 'CompletedWithErrors', 'Failed', 'Cancelled')),
  -- Grows when a retry or a repair reopens the scan.
  generation integer not null default 1,
  reason text,
  -- A fault that no retry mends: what is open is cancelled, and then the scan is Failed, not Cancelled.
  failing boolean not null default false,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  last_tick_at timestamptz,
  foreign key (workspace_id, definition_name, definition_revision) references sonar.definition_revision,
  unique (workspace_id, client_key),
  check ((finished_at is not null) = (status in ('Completed', 'CompletedWithErrors', 'Failed', 'Cancelled')))
);
create index scan_open on sonar.scan (last_tick_at) where status in ('Running', 'Paused', 'Cancelling');
create index scan_newest on sonar.scan (workspace_id, scan_id desc);

create table sonar.scan_input (
  scan_id uuid not null references sonar.scan,
  workspace_id text not null,
  name text not null,
  type text not null,
  -- Scalars as their text; lists with one item a line.
  content text not null,
  primary key (scan_id, name)
);

create table sonar.scan_step (
  scan_id uuid not null references sonar.scan,
  workspace_id text not null,
  step text not null,
  ordinal integer not null,
  state text not null check (state in ('open', 'settled', 'blocked')),
  -- The parts of the step that its first task fixed for this scan (needs, foreach, inputs, outputs).
  pins jsonb,
  -- Owner of the pinned sources of its All needs.
  sources_id uuid,
  -- How far a step that began late has looked at the tasks its parent step had finished before; null: to the end.
  backfill_after uuid,
  removed boolean not null default false,
  -- Items kept out by the scope or because they do not parse.
  refused bigint not null default 0,
  starved_since timestamptz,
  note text,
  primary key (scan_id, step)
);

-- The order of acceptance decides between observations of one record.
create sequence sonar.acceptance_sequence;

create table sonar.task (
  task_id uuid primary key,
  workspace_id text not null,
  scan_id uuid not null,
  step text not null,
  parent_task_id uuid,
  -- Ordinal in the expanded stream; null where the step has no foreach.
  item_ordinal bigint,
  item jsonb,
  -- Owner of the pinned sources of its step's All needs.
  sources_id uuid,
  status text not null check (status in ('Pending', 'Published', 'Running', 'Completed', 'Failed', 'Cancelled')),
  no_work boolean not null default false,
  definition_revision integer not null,
  not_before timestamptz,
  -- The current attempt; cleared by every return to Pending.
  attempt_id uuid,
  attempts integer not null default 0,
  retries integer not null default 0,
  releases integer not null default 0,
  tag text,
  published_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz,
  accepted_attempt_id uuid,
  accepted_digest text,
  accepted_sequence bigint,
  outcome text,
  exit_code integer,
  failure_code text,
  failure_message text,
  -- False while an accepted result waits to be read.
  finalized boolean not null default true,
  -- A finished result whose dependents are not made yet.
  plan_due boolean not null default false,
  superseded_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step),
  -- domain/task-states.ts, mirrored.
  check (not no_work or status = 'Completed'),
  check ((status in ('Published', 'Running')) = (attempt_id is not null)),
  check (status <> 'Running' or started_at is not null),
  check ((status in ('Completed', 'Failed', 'Cancelled')) = (finished_at is not null)),
  check (status <> 'Failed' or failure_code is not null),
  check (failure_code is null or status in ('Failed', 'Cancelled')),
  check (status <> 'Published' or (published_at is not null and tag is not null)),
  -- A result is accepted by the transition that ends the task; only a no-work outcome completes without one.
  check (num_nonnulls(accepted_attempt_id, accepted_digest, accepted_sequence) in (0, 3)),
  check (accepted_attempt_id is null or status in ('Completed', 'Failed')),
  check (status <> 'Completed' or (accepted_attempt_id is null) = no_work),
  check (finalized or accepted_attempt_id is not null),
  check (not plan_due or (status = 'Completed' and finalized))
);
-- One child per parent, step and item: what makes planning again harmless.
create unique index task_identity on sonar.task (scan_id, step, parent_task_id, item_ordinal)
  nulls not distinct where superseded_at is null;
create index task_pending on sonar.task (scan_id, step, item_ordinal, task_id) where status = 'Pending';
create index task_open on sonar.task (scan_id, step)
  where superseded_at is null and (status in ('Pending', 'Published', 'Running') or not finalized);
create index task_plan_due on sonar.task (scan_id, step, task_id) where plan_due;
create index task_listed on sonar.task (scan_id, task_id) where superseded_at is null;
create index task_by_status on sonar.task (scan_id, step, status, task_id) where superseded_at is null;

-- Counts by step and status without counting: statements leave deltas, ticks fold them.
create table sonar.task_count (
  scan_id uuid not null,
  workspace_id text not null,
  step text not null,
  status text not null,
  no_work boolean not null,
  tasks bigint not null,
  primary key (scan_id, step, status, no_work)
);
create table sonar.task_count_delta (
  delta_id bigint generated always as identity primary key,
  scan_id uuid not null,
  workspace_id text not null,
  step text not null,
  status text not null,
  no_work boolean not null,
  tasks bigint not null
);
create index task_count_delta_scan on sonar.task_count_delta (scan_id);

create function sonar.count_inserted_tasks() returns trigger language plpgsql as $$
begin
  insert into sonar.task_count_delta (scan_id, workspace_id, step, status, no_work, tasks)
  select scan_id, workspace_id, step, status, no_work, count(*)
  from new_rows where superseded_at is null group by 1, 2, 3, 4, 5;
  return null;
end $$;
create function sonar.count_updated_tasks() returns trigger language plpgsql as $$
begin
  insert into sonar.task_count_delta (scan_id, workspace_id, step, status, no_work, tasks)
  select scan_id, workspace_id, step, status, no_work, sum(change) from (
    select scan_id, workspace_id, step, status, no_work, 1 as change from new_rows where superseded_at is null
    union all
    select scan_id, workspace_id, step, status, no_work, -1 from old_rows where superseded_at is null
  ) changes group by 1, 2, 3, 4, 5 having sum(change) <> 0;
  return null;
end $$;
create trigger count_inserted after insert on sonar.task
  referencing new table as new_rows for each statement execute function sonar.count_inserted_tasks();
create trigger count_updated after update on sonar.task
  referencing old table as old_rows new table as new_rows for each statement execute function sonar.count_updated_tasks();

-- A foreach under way: which stream, how far it got. One per parent of a Single step, one per other step.
create table sonar.expansion (
  expansion_id uuid primary key,
  workspace_id text not null,
  scan_id uuid not null,
  step text not null,
  parent_task_id uuid,
  next_ordinal bigint not null default 0,
  made bigint not null default 0,
  done_at timestamptz,
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step)
);
create unique index expansion_identity on sonar.expansion (scan_id, step, parent_task_id) nulls not distinct;
create index expansion_open on sonar.expansion (scan_id, step) where done_at is null;

-- The pinned, ordered sources of an All task or of an expansion over an All need.
create table sonar.pinned_source (
  owner_id uuid not null,
  ordinal bigint not null,
  workspace_id text not null,
  scan_id uuid not null,
  task_id uuid not null,
  attempt_id uuid not null,
  digest text not null,
  primary key (owner_id, ordinal)
);
