-- What a retry or a repair has asked for and is not done yet: it is worked off in bounded batches.
alter table sonar.scan_step
  -- Failed and Cancelled tasks that had finished by then go back to Pending.
  add column retry_until timestamptz,
  -- The tasks of the step, and all that was made for them, are void; nothing is made or placed of it before they are.
  add column voiding boolean not null default false;
