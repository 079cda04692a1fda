-- add_usage.sql: add the numbers of a usage record to the sums of the day.
-- Zero rows means that there is no number in it.
insert into usage_total (day, tenant, kind, name, amount, attempts)
select :day, job.tenant, job.kind, substr(used.key, 1, :chars), used.value, 1
from job
join json_each(case when json_type(:usage) = 'object' then :usage else '{}' end) as used
where job.id = :job and used.type in ('integer', 'real')
on conflict (day, tenant, kind, name)
do update set amount = usage_total.amount + excluded.amount, attempts = usage_total.attempts + 1;
