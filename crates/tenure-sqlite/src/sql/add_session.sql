-- add_session.sql: begin a session; nothing happens when there is one of this hash.
insert into session (hash, key, began_at, expires_at) values (:hash, :key, :now, :expires_at) on conflict do nothing
