-- find_session.sql: the session of a token. No row: there is none.
select key, began_at, expires_at from session where hash = :hash
