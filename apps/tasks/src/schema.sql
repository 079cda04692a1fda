-- schema: what tasks bring home. What each of them used is kept with its attempt, by the library.

-- A document as it was fetched last: what a digest is made of.
create table if not exists task_document (
  url text primary key,
  body bytea not null,
  fetched_at timestamptz not null
);

-- One row for each task that is done, written in the transaction that completes it: a task that is run twice has one,
-- and it is its last holder's.
create table if not exists task_result (
  job text primary key,
  kind text not null,
  attempt bigint not null check (attempt >= 1),
  fence bigint not null,
  output jsonb not null,
  finished_at timestamptz not null
);
