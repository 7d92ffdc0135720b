create table sonar.worker_incarnation (
  incarnation_id uuid primary key,
  workspace_id text not null,
  worker_name text not null,
  key_id text not null,
  location text not null,
  image text not null,
  tags text[] not null,
  slots integer not null check (slots between 1 and 1024),
  free_slots integer not null default 0,
  draining boolean not null default false,
  attempts uuid[] not null default '{}',
  registered_at timestamptz not null default clock_timestamp(),
  pulsed_at timestamptz,
  pulse_sequence bigint not null default 0,
  replaced_at timestamptz
);
-- Of one name only the newest registration counts.
create unique index worker_current on sonar.worker_incarnation (workspace_id, worker_name) where replaced_at is null;

create table sonar.attempt (
  attempt_id uuid primary key,
  workspace_id text not null,
  scan_id uuid not null,
  task_id uuid not null references sonar.task,
  step text not null,
  tag text not null,
  number integer not null,
  -- The credential is derived from this master key and the attempt's id.
  key_id text not null,
  definition_revision integer not null,
  created_at timestamptz not null default clock_timestamp(),
  confirmed_at timestamptz,
  started_at timestamptz,
  delivery_id uuid,
  worker_name text,
  incarnation_id uuid references sonar.worker_incarnation,
  started_pulse_sequence bigint,
  -- The command is to be ended; the attempt counts for capacity until it is known to have ended.
  cancel_requested_at timestamptz,
  ended_at timestamptz,
  end_reason text check (end_reason in ('result', 'cancelled', 'released', 'recovered', 'superseded')),
  check ((ended_at is null) = (end_reason is null))
);
create index attempt_of_task on sonar.attempt (task_id);
-- In flight: what capacity is measured by.
create index attempt_in_flight on sonar.attempt (tag, scan_id, step) where ended_at is null;
create index attempt_to_cancel on sonar.attempt (scan_id) where ended_at is null and cancel_requested_at is not null;
create index attempt_in_flight_of_scan on sonar.attempt (scan_id) where ended_at is null;
create index attempt_of_incarnation on sonar.attempt (incarnation_id) where ended_at is null;

-- The ledger of what was to be told, and apart from it the work of telling.
create table sonar.outbox_events (
  event_id uuid primary key,
  workspace_id text not null,
  attempt_id uuid not null,
  tag text not null,
  -- contracts/dispatch-message.ts: Dispatch, without the credential
  payload jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  published_at timestamptz
);
create index outbox_events_created on sonar.outbox_events (created_at);
create table sonar.outbox_delivery_queue (
  event_id uuid primary key references sonar.outbox_events,
  workspace_id text not null,
  bytes integer not null,
  available_at timestamptz not null default clock_timestamp(),
  claim_token uuid,
  claimed_by uuid,
  attempts integer not null default 0,
  last_error text
);
create index outbox_delivery_available on sonar.outbox_delivery_queue (available_at);

-- Requests for a placement pass: a sequence, so that asking never waits for the pass that runs.
create sequence sonar.placement_request;
-- One row: how far they are served, and by whom.
create table sonar.placement (
  singleton boolean primary key default true check (singleton),
  served bigint not null default 0,
  claim_token uuid,
  claimed_by uuid,
  claim_expires_at timestamptz
);
insert into sonar.placement default values;
