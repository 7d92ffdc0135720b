-- Files that people uploaded, by hash: verified before they get a row here.
create table sonar.stored_file (
  workspace_id text not null references sonar.workspace,
  sha256 text not null,
  size bigint not null,
  object_key text not null,
  stored_at timestamptz not null default clock_timestamp(),
  primary key (workspace_id, sha256)
);

-- What `files` of a definition's revision hold: one row a file, a folder's with their paths below it.
create table sonar.definition_file (
  workspace_id text not null,
  name text not null,
  revision integer not null,
  file text not null,
  path text not null,
  sha256 text not null,
  primary key (workspace_id, name, revision, file, path),
  foreign key (workspace_id, name, revision) references sonar.definition_revision,
  foreign key (workspace_id, sha256) references sonar.stored_file
);

alter table sonar.definition_revision
  -- Of all its files with their paths: the same text with other files is another revision.
  add column files_sha256 text not null default '';

alter table sonar.scan_input
  -- Of an input of type `file`: what was uploaded for it; `content` is empty then.
  add column file_sha256 text,
  add foreign key (workspace_id, file_sha256) references sonar.stored_file;

-- Values that only a master key opens (AES-256-GCM).
create table sonar.secret (
  workspace_id text not null references sonar.workspace,
  name text not null,
  key_id text not null,
  sealed text not null,
  updated_at timestamptz not null default clock_timestamp(),
  updated_by text not null,
  primary key (workspace_id, name)
);

alter table sonar.scan_step
  -- Secrets that its Pending tasks wait for.
  add column missing_secrets text[] not null default '{}';
