-- end_session.sql: end a session, if there is one.
delete from session where hash = :hash
