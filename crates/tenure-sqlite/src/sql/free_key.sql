-- free_key.sql: a pruned job's key goes with it when the job had let it go; what it still holds stays.
-- Zero rows means that another job has the key, or that it is held for longer than the job is kept.
delete from unique_key
where unique_key.tenant = :tenant and unique_key.scope = :scope and unique_key.key = :key
  and unique_key.job = :job
  and (unique_key.policy = 1 or (unique_key.policy = 2 and :how <> 1)
    or (unique_key.policy = 4 and unique_key.expires_at <= :now));
