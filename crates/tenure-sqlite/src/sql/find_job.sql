-- find_job.sql: where a job stands: its ready row, or its final attempt, or neither while a lease holds it.
-- Zero rows means that there is no such job, or that it is out of the caller's sight.
-- The plus keeps it from walking over every job that has ended, whose index covers what is asked.
select job.queue, job.priority, job.tenant, job.scope, job.key, ready.state, ready.attempt, ready.losses, ended.how,
    job.policy, job.line
from job
join tenant on tenant.id = job.tenant
left join ready on ready.job = job.id
left join attempt as ended on ended.job = job.id and +ended.final = 1
where job.id = :job
  and (:sight is null or tenant.name = :sight);
