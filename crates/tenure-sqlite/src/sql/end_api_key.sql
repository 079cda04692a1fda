-- end_api_key.sql: when a key ends.
-- Zero rows cannot be: the caller has just found it.
update api_key set expires_at = :expires_at, revoked_at = :revoked_at where api_key.id = :id;
