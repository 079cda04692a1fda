-- count_permits.sql: the gates whose permits are not what live leases say, and what they say. One snapshot: an ending
-- writes its attempt and its event together.
-- Zero rows is the only good answer.
with live as (
    select lease.gates ->> listed.key as gate, count(*) as held
    from lease, json_each(lease.jobs) as listed
    where lease.gates is not null
      and not exists (
        select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no)
    group by 1
)
select gate.name, coalesce(live.held, 0)
from gate
left join live on live.gate = gate.id
where gate.in_use <> coalesce(live.held, 0) + (select count(*) from gate_event where gate_event.gate = gate.id);
