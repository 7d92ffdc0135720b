-- Whether pulses are being taken at all: absence of a worker says something only while they are.
create table sonar.pulse_intake (
  singleton boolean primary key default true check (singleton),
  open_since timestamptz not null default clock_timestamp(),
  touched_at timestamptz not null default clock_timestamp()
);
insert into sonar.pulse_intake default values;

-- The recovery pass, one at a time for all scans; and why it judges nobody absent at present.
create table sonar.recovery (
  singleton boolean primary key default true check (singleton),
  claim_token uuid,
  claimed_by uuid,
  claim_expires_at timestamptz,
  passed_at timestamptz,
  held_until timestamptz,
  held_note text,
  check ((held_until is null) = (held_note is null))
);
insert into sonar.recovery default values;

-- Tags whose queue the broker refuses to declare: nothing is placed there until then.
create table sonar.parked_tag (
  tag text primary key,
  reason text not null,
  until timestamptz not null
);

alter table sonar.worker_incarnation
  -- Pulses in a row that showed a free slot, counted no further than two.
  add column free_pulses smallint not null default 0;

alter table sonar.task
  -- Times that it was taken back after a start without a result.
  add column recoveries integer not null default 0;

alter table sonar.attempt
  -- Pulses after its start that did not list it.
  add column omitted_pulses smallint not null default 0,
  -- contracts/states.ts: RecoveryRule
  add column recovery_rule text,
  add check (recovery_rule is null or end_reason = 'recovered'),
  -- Incarnations are cleared when they are old; an attempt keeps the name of its worker.
  drop constraint attempt_incarnation_id_fkey;
create index attempt_unlisted on sonar.attempt (attempt_id) where ended_at is null and omitted_pulses > 1;
create index attempt_unstarted on sonar.attempt (tag, confirmed_at)
  where ended_at is null and started_at is null and confirmed_at is not null;
create index attempt_recovered on sonar.attempt (scan_id, step) where end_reason = 'recovered';
-- By which an attempt that is over finds what was to be told of it.
create index outbox_events_of_attempt on sonar.outbox_events (attempt_id);
