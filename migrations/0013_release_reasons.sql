-- Why a worker gave an attempt back.
alter table sonar.attempt
  add column release_reason text
    check (release_reason in ('spot', 'shutdown', 'max_lifetime', 'command_not_found', 'interrupted')),
  add check (release_reason is null or end_reason = 'released');
