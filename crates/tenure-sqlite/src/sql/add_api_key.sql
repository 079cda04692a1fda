-- add_api_key.sql: a new key.
-- Zero rows cannot be: the caller has looked for its id.
insert into api_key (id, hash, tenant, name, scopes, created_at, expires_at)
values (:id, :hash, :tenant, :name, :scopes, :now, :expires_at);
