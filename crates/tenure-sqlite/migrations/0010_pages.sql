-- 0010_pages.sql: what the pages of the dashboard ask for.

-- Somebody who signed in with a key. Of the token only its SHA-256 is here: it is 256 random bits.
create table session (
    hash blob not null primary key check (length(hash) = 32),
    key text not null references api_key (id),
    began_at integer not null,
    expires_at integer not null check (expires_at > began_at)
) strict, without rowid;
create index session_expires on session (expires_at);

-- The story of a job: rows of its leases are found by journal_lease, the others here.
create index journal_job on journal (json_extract(jobs, '$[0]')) where lease is null and json_array_length(jobs) = 1;
