-- drop_sessions.sql: delete some sessions that are over.
delete from session
where hash in (select hash from session where expires_at <= :now order by expires_at limit :limit)
