-- Where in the bytes of a list an expansion is: the start of a line, and the ordinal of that line's first item, so
-- that going on costs no reading of the lines before.
alter table sonar.expansion
  add column at_byte bigint not null default 0,
  add column at_ordinal bigint not null default 0;

-- Whose turn it is in placement, from one pass to the next. Apart from the steps, since only passes write it and none
-- should wait for a scan's own transactions.
alter table sonar.placement
  -- Number of the last turn that anybody has had whole.
  add column turns bigint not null default 0;
create table sonar.placement_turn (
  scan_id uuid not null,
  step text not null,
  workspace_id text not null,
  -- Number of the last turn that the step has had whole; a new step stands behind all others.
  last_turn bigint not null,
  -- What it was given of the turn that it is in.
  turn_taken integer not null default 0 check (turn_taken >= 0),
  primary key (scan_id, step),
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step) on delete cascade
);

-- Tables whose rows come and go, or change, many times a second: cleaned after so many dead rows rather than after a
-- fifth of a table that is nearly empty, so they stay as small as what is in them.
do $$
declare name text;
begin
  foreach name in array array['sonar.outbox_delivery_queue', 'sonar.task_count_delta', 'sonar.worker_incarnation',
                              'sonar.placement', 'sonar.placement_turn', 'sonar.expansion', 'sonar.expansion_row',
                              'workflow_coordination.executor']
  loop
    execute format('alter table %s set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_insert_threshold = 10000)', name);
  end loop;
  -- Large ones of which a part is always hot: a fifth of a million dead rows is too many to wait for.
  foreach name in array array['sonar.task', 'sonar.attempt', 'sonar.outbox_events', 'sonar.finalization']
  loop
    execute format('alter table %s set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000)', name);
  end loop;
end $$;

-- Workers that have not the program of a step, by incarnation: a restarted one is asked again, and so are all where the
-- definition has changed.
create table sonar.missing_program (
  scan_id uuid not null,
  step text not null,
  incarnation_id uuid not null references sonar.worker_incarnation on delete cascade,
  definition_revision integer not null,
  workspace_id text not null,
  -- Names the worker, its image, its tag and its PATH.
  message text not null,
  found_at timestamptz not null default clock_timestamp(),
  primary key (scan_id, step, incarnation_id),
  foreign key (scan_id, step) references sonar.scan_step (scan_id, step) on delete cascade
);
create index missing_program_of_incarnation on sonar.missing_program (incarnation_id);
