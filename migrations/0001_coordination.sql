-- Control processes hold a lease here; work that they claim carries their id. Rows stay as tombstones.
create schema workflow_coordination;

create table workflow_coordination.executor (
  executor_id uuid primary key,
  application_name text not null,
  -- A compatibility constant, raised only when old work cannot be taken over; the build is apart.
  application_version text not null,
  build text not null,
  roles text[] not null,
  host text not null,
  pid integer not null,
  state text not null check (state in ('active', 'released', 'revoked')),
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  check ((state = 'revoked') = (revoked_at is not null))
);

-- Peers scan for expired leases among the active ones only.
create index executor_active on workflow_coordination.executor (expires_at) where state = 'active';
