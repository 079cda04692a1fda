-- 0018_pages: what the pages of the dashboard ask for.

-- Somebody who signed in with a key. Of the token only its SHA-256 is here: it is 256 random bits.
create table tenure.session (
  hash bytea primary key check (length(hash) = 32),
  key text collate "C" not null references tenure.api_key (id),
  began_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > began_at)
);
create index session_expires on tenure.session (expires_at);
