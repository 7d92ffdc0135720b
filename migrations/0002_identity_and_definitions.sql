create table sonar.workspace (
  workspace_id text primary key,
  created_at timestamptz not null default clock_timestamp()
);
insert into sonar.workspace (workspace_id) values ('default');

create table sonar.token (
  token_id uuid primary key,
  workspace_id text not null references sonar.workspace,
  name text not null,
  role text not null check (role in ('viewer', 'operator', 'admin', 'worker')),
  -- SHA-256 of a random 256-bit token: nothing slower is needed against guessing.
  secret_sha256 bytea not null unique,
  tags text[] not null default '{}',
  name_prefix text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  revoked_at timestamptz,
  unique (workspace_id, name)
);

create table sonar.definition (
  workspace_id text not null references sonar.workspace,
  name text not null,
  latest_revision integer not null,
  deleted_at timestamptz,
  primary key (workspace_id, name)
);

create table sonar.definition_revision (
  workspace_id text not null,
  name text not null,
  revision integer not null,
  source text not null,
  source_sha256 text not null,
  -- contracts/definition.ts: Definition
  compiled jsonb not null,
  applied_at timestamptz not null default clock_timestamp(),
  primary key (workspace_id, name, revision),
  foreign key (workspace_id, name) references sonar.definition
);
