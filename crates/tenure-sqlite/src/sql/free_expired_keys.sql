-- free_expired_keys.sql: keys whose window is over, a bounded batch. Nobody holds them, whatever became of their jobs.
-- Zero rows means that there is none.
delete from unique_key
where (unique_key.tenant, unique_key.scope, unique_key.key) in (
    select old.tenant, old.scope, old.key
    from unique_key as old indexed by unique_key_expires
    where old.expires_at is not null and old.expires_at <= :now
    order by old.expires_at
    limit :limit);
