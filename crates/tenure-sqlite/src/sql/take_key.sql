-- take_key.sql: a job takes a key that is free or that its holder let go.
-- The caller has looked in this very transaction, and there is one writer: nobody can come between.
insert into unique_key (tenant, scope, key, job, policy, expires_at, body)
values (:tenant, :scope, :key, :job, :policy, :expires_at, :body)
on conflict (tenant, scope, key) do update
set job = excluded.job, policy = excluded.policy, expires_at = excluded.expires_at, body = excluded.body;
