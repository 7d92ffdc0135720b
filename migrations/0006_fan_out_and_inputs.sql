-- A foreach that groups its rows or puts items together in batches: its stream is staged here first, then tasks
-- are made of what is staged, which goes with the same transaction.
alter table sonar.expansion
  -- The whole stream is staged.
  add column staged boolean not null default false,
  -- Groups or batches that have become tasks: moves on with each transaction that makes some.
  add column next_group bigint not null default 0;

create table sonar.expansion_row (
  expansion_id uuid not null references sonar.expansion on delete cascade,
  ordinal bigint not null,
  workspace_id text not null,
  -- SHA-256 of the value that the rows are grouped by; null in a batch.
  group_key bytea,
  item jsonb not null,
  primary key (expansion_id, ordinal)
);
create index expansion_row_group on sonar.expansion_row (expansion_id, group_key, ordinal)
  where group_key is not null;

-- Values that `unique` has seen in a step of a scan. They are free again when their expansion goes.
create table sonar.unique_item (
  scan_id uuid not null,
  step text not null,
  value_sha256 bytea not null,
  workspace_id text not null,
  expansion_id uuid not null references sonar.expansion on delete cascade,
  primary key (scan_id, step, value_sha256),
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step)
);
create index unique_item_of_expansion on sonar.unique_item (expansion_id);

-- Files that belong to one task: its item where that is a file, its batch.
create table sonar.task_file (
  task_id uuid not null references sonar.task,
  input text not null,
  path text not null,
  workspace_id text not null,
  object_key text not null,
  size bigint not null,
  sha256 text not null,
  primary key (task_id, input, path)
);

-- A step's input that is made of rows: one file for each owner (a parent task, the pinned sources of the step's
-- All needs, or the scan), made once before the first task that reads it is placed.
create table sonar.input_file (
  owner_id uuid not null,
  step text not null,
  input text not null,
  workspace_id text not null,
  scan_id uuid not null,
  object_key text not null,
  size bigint not null,
  sha256 text not null,
  lines bigint not null,
  -- Lines that the scope kept out.
  refused bigint not null,
  primary key (owner_id, step, input),
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step)
);

alter table sonar.task
  -- Its input files are not made yet: it is not placed before they are.
  add column inputs_due boolean not null default false,
  add check (not inputs_due or status in ('Pending', 'Cancelled'));
create index task_inputs_due on sonar.task (scan_id, task_id) where inputs_due and status = 'Pending';
