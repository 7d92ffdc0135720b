-- One order of records on every server, whatever its locale: pages, exports and locks go by it.
alter table sonar.inventory
  alter column type type text collate "C",
  alter column key type text collate "C";
alter table sonar.observation
  alter column type type text collate "C",
  alter column key type text collate "C",
  -- An import has no scan; its `attempt_id` is the import's own id.
  alter column scan_id drop not null;

-- What one source (a scan or an import) has seen of a record: the fold of that source's observations. The inventory is
-- the fold of these, so what a scan saw is read, counted, compared and taken away without its observations.
create table sonar.source_record (
  source_id uuid not null,
  workspace_id text not null,
  type text collate "C" not null,
  key text collate "C" not null,
  -- domain/inventory-fold.ts: RecordState
  state jsonb not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  -- Of a scan: the steps whose outputs showed it, sorted.
  steps text[] not null,
  primary key (source_id, type, key)
);
create index source_record_of_record on sonar.source_record (workspace_id, type, key, source_id);

-- How many records of each type a source has: kept by the statements that add and remove them.
create table sonar.source_count (
  source_id uuid not null,
  workspace_id text not null,
  type text collate "C" not null,
  records bigint not null,
  primary key (source_id, type)
);

create function sonar.count_source_records() returns trigger language plpgsql as $$
begin
  insert into sonar.source_count as c (source_id, workspace_id, type, records)
  select source_id, workspace_id, type, case when tg_op = 'INSERT' then count(*) else -count(*) end
  from changed group by source_id, workspace_id, type order by source_id, type
  on conflict (source_id, type) do update set records = c.records + excluded.records;
  return null;
end $$;
create trigger count_inserted after insert on sonar.source_record
  referencing new table as changed for each statement execute function sonar.count_source_records();
create trigger count_deleted after delete on sonar.source_record
  referencing old table as changed for each statement execute function sonar.count_source_records();

-- What was observed before: the fold of domain/inventory-fold.ts in SQL, once.
with stated as (
  select o.scan_id, o.type, o.key, f.name, f.value, o.order_key,
         row_number() over (partition by o.scan_id, o.type, o.key, f.name order by o.order_key collate "C" desc) as place
  from sonar.observation o cross join lateral jsonb_each(o.fields) as f (name, value) where f.value <> 'null'::jsonb),
fields as (
  select scan_id, type, key, jsonb_object_agg(name, jsonb_build_object('value', value, 'by', order_key)) as fields
  from stated where place = 1 group by scan_id, type, key),
members as (
  select distinct o.scan_id, o.type, o.key, s.name, m.value
  from sonar.observation o cross join lateral jsonb_each(o.sets) as s (name, members)
  cross join lateral jsonb_array_elements_text(s.members) as m (value)),
ranked as (
  select *, row_number() over (partition by scan_id, type, key, name order by value collate "C") as place from members),
smallest as (
  select scan_id, type, key, name, jsonb_agg(value order by value collate "C") as members
  from ranked where place <= 64 group by scan_id, type, key, name),
sets as (
  select scan_id, type, key, jsonb_object_agg(name, members) as sets from smallest group by scan_id, type, key),
seen as (
  select o.scan_id, o.workspace_id, o.type, o.key, min(o.observed_at) as first_seen_at, max(o.observed_at) as last_seen_at,
         bool_and(o.partial) as partial, array_agg(distinct a.step order by a.step) as steps
  from sonar.observation o join sonar.attempt a on a.attempt_id = o.attempt_id
  group by o.scan_id, o.workspace_id, o.type, o.key)
insert into sonar.source_record (source_id, workspace_id, type, key, state, first_seen_at, last_seen_at, steps)
select n.scan_id, n.workspace_id, n.type, n.key,
       jsonb_build_object(
         'fields', coalesce(f.fields, '{}'), 'sets', coalesce(s.sets, '{}'), 'partial', n.partial,
         'firstSeenAt', to_char(n.first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         'lastSeenAt', to_char(n.last_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
       n.first_seen_at, n.last_seen_at, n.steps
from seen n
left join fields f using (scan_id, type, key)
left join sets s using (scan_id, type, key);

-- What this build has no row for: left by nothing but a transaction that was never committed.
delete from sonar.inventory where state is null;
alter table sonar.inventory
  alter column state set not null,
  alter column first_seen_at set not null,
  alter column last_seen_at set not null;

-- Record types that definitions declare, one meaning each in a workspace.
create table sonar.record_type (
  workspace_id text not null references sonar.workspace,
  name text not null,
  -- contracts/records.ts: RecordDeclaration
  declaration jsonb not null,
  declared_by text not null,
  declared_at timestamptz not null default clock_timestamp(),
  primary key (workspace_id, name)
);

-- Lists that people bring in: a source of records like a scan, one a file and reading.
create table sonar.inventory_import (
  import_id uuid primary key,
  workspace_id text not null,
  sha256 text not null,
  -- How its bytes become records (contracts/definition.ts: ReadSpec), and the hash of that.
  read jsonb not null,
  read_sha256 text not null,
  name text not null,
  imported_by text not null,
  accepted_sequence bigint not null,
  status text not null check (status in ('due', 'done', 'failed')),
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  claim_token uuid,
  claim_expires_at timestamptz,
  attempts integer not null default 0,
  -- Events of the reader that are in the inventory: where the next one goes on.
  events bigint not null default 0,
  records bigint not null default 0,
  bad_records bigint not null default 0,
  warnings text[] not null default '{}',
  error text,
  unique (workspace_id, sha256, read_sha256),
  foreign key (workspace_id, sha256) references sonar.stored_file,
  check ((status = 'due') = (finished_at is null))
);
create index inventory_import_due on sonar.inventory_import (created_at) where status = 'due';

-- Steps of which something could not be read: what a comparison of scans must know.
create index finalization_bad_of_scan on sonar.finalization (scan_id) where bad_records > 0;
