-- A running scan follows its definition step by step.
alter table sonar.scan_step
  -- The newest revision that the scan has taken of the step; null: none yet.
  add column revision integer,
  -- What of a newer revision was not taken, and why.
  add column revision_note text,
  -- Its All needs are settled and what it rests on is pinned: its work may be planned. `pins` come with the first
  -- task.
  add column begun boolean not null default false;

update sonar.scan_step p
set revision = s.definition_revision, begun = p.pins is not null,
    pins = case when p.pins is not null then p.pins || '{"target": null, "reads": []}'::jsonb end
from sonar.scan s where s.scan_id = p.scan_id;

alter table sonar.scan_step
  add check (revision is not null or state <> 'open'),
  add check (pins is null or begun);

-- Who runs a definition that was edited.
create index scan_open_of_definition on sonar.scan (workspace_id, definition_name)
  where status in ('Running', 'Paused') and not pinned;
