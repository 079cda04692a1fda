-- add_tenant.sql: make a tenant known on its first job.
-- Zero rows means that it was known.
insert into tenant (name) values (:name) on conflict (name) do nothing;
