-- tenant_quota.sql: how many jobs a tenant may have pending in each fair queue.
-- Zero rows cannot be: the caller has just found it.
select tenant.quota from tenant where tenant.id = :tenant;
