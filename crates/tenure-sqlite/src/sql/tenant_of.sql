-- tenant_of.sql: whose job this is. Zero rows means that there is no such job.
select job.tenant from job where job.id = :id;
