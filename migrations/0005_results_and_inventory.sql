create table sonar.result (
  attempt_id uuid primary key references sonar.attempt,
  workspace_id text not null,
  task_id uuid not null references sonar.task,
  digest text not null,
  outcome text not null,
  -- The digest covers these; kept whole for operators.
  body jsonb not null,
  accepted_at timestamptz not null
);

create table sonar.output_file (
  attempt_id uuid not null references sonar.attempt,
  workspace_id text not null,
  task_id uuid not null,
  output text not null,
  path text not null,
  object_key text not null,
  size bigint not null,
  sha256 text not null,
  -- Of a command that failed: read, but marked.
  partial boolean not null,
  primary key (attempt_id, output, path)
);

create table sonar.finalization (
  finalization_id uuid primary key,
  workspace_id text not null,
  scan_id uuid not null,
  task_id uuid not null references sonar.task,
  attempt_id uuid not null references sonar.attempt,
  digest text not null,
  size bigint not null,
  status text not null check (status in ('due', 'done', 'poisoned', 'superseded')),
  available_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  claim_token uuid,
  claimed_by uuid,
  claim_expires_at timestamptz,
  records bigint not null default 0,
  bad_records bigint not null default 0,
  warnings text[] not null default '{}',
  error text,
  finished_at timestamptz,
  unique (task_id, digest),
  check ((status = 'due') = (finished_at is null))
);
create index finalization_due on sonar.finalization (available_at) where status = 'due';
create index finalization_claimed on sonar.finalization (claim_token) where status = 'due' and claim_token is not null;
create index finalization_due_of_scan on sonar.finalization (scan_id) where status = 'due';
create index finalization_poisoned_of_scan on sonar.finalization (scan_id) where status = 'poisoned';

-- What one row of one file said of one record. The inventory is a fold of these and of nothing else.
create table sonar.observation (
  attempt_id uuid not null,
  output text not null,
  file text not null,
  row bigint not null,
  part integer not null,
  workspace_id text not null,
  scan_id uuid not null,
  type text not null,
  key text not null,
  order_key text not null,
  observed_at timestamptz not null,
  fields jsonb not null,
  sets jsonb not null,
  partial boolean not null,
  primary key (attempt_id, output, file, row, part)
);
create index observation_of_record on sonar.observation (workspace_id, type, key);
create index observation_of_scan on sonar.observation (scan_id, type, key);

create table sonar.inventory (
  workspace_id text not null,
  type text not null,
  key text not null,
  -- domain/inventory-fold.ts: RecordState; null only inside the transaction that makes the row
  state jsonb,
  first_seen_at timestamptz,
  last_seen_at timestamptz,
  primary key (workspace_id, type, key)
);
