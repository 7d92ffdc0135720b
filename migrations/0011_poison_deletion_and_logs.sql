-- What was being read when a result could not be: so that its fault can be judged without its file.
alter table sonar.finalization
  add column sample_file text,
  add column sample text;
create index finalization_poisoned on sonar.finalization (workspace_id, finalization_id) where status = 'poisoned';

-- A scan that is being deleted does not exist for anybody but its deletion, which goes on from here after a crash.
-- Its row goes last.
alter table sonar.scan
  add column deleting_at timestamptz;
create index scan_deleting on sonar.scan (deleting_at) where deleting_at is not null;
create index if not exists outbox_events_of_attempt on sonar.outbox_events (attempt_id);
create index scan_input_file on sonar.scan_input (workspace_id, file_sha256) where file_sha256 is not null;
create index definition_file_stored on sonar.definition_file (workspace_id, sha256);
create index input_file_of_scan on sonar.input_file (scan_id, step);
create index pinned_source_of_scan on sonar.pinned_source (scan_id);
-- All tasks of a scan, superseded or not: for lists, and for what refers to its steps.
create index task_of_scan on sonar.task (scan_id, task_id);
drop index sonar.task_listed;
-- Both rows are written with their attempt, in one transaction and from its row. A reference without an index makes
-- each deletion of an attempt or a task read the whole table, and an index would be paid for by every result.
alter table sonar.result drop constraint result_task_id_fkey;
alter table sonar.finalization drop constraint finalization_attempt_id_fkey;

-- Objects that nothing refers to any more, until the store has removed them.
create table sonar.doomed_object (
  object_key text primary key,
  workspace_id text not null,
  doomed_at timestamptz not null default clock_timestamp()
);

-- What happened in a scan, by time, without a table of its own.
create index attempt_of_scan on sonar.attempt (scan_id, created_at, attempt_id);
create index attempt_ended_of_scan on sonar.attempt (scan_id, ended_at, attempt_id) where ended_at is not null;
create index task_failed_of_scan on sonar.task (scan_id, finished_at, task_id)
  where status = 'Failed' and accepted_attempt_id is null;
