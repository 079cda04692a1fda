-- find_violations.sql: broken invariants, by their ids in docs/ARCHITECTURE.md.
-- Zero rows is the only good answer.
with held as (
    select unhex(listed.value, '-') as job, lease.no as lease, lease.attempts ->> listed.key as attempt
    from lease, json_each(lease.jobs) as listed
    where not exists (
        select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no)
), ended as (
    select attempt.job as job, count(*) as finals from attempt where attempt.final = 1 group by attempt.job
), place as (
    select ready.job as job, 1 as waits, 0 as held, 0 as ended from ready
    union all select held.job, 0, 1, 0 from held
    union all select ended.job, 0, 0, 1 from ended
), places as (
    select place.job as job, sum(place.waits) as waits, sum(place.held) as held, sum(place.ended) as ended
    from place
    group by place.job
)
select 'L1' as invariant, held.job as job, 'live leases: ' || group_concat(held.lease) as detail
from held group by held.job having count(*) > 1
union all
select 'L2', places.job, 'ready rows ' || places.waits || ', live leases ' || places.held || ', ended ' || places.ended
from places where places.waits + min(places.held, 1) + places.ended <> 1
union all
select 'L2', job.id, 'neither ready nor leased nor ended'
from job where not exists (select 1 from places where places.job = job.id)
union all
select 'L3', ended.job, 'final attempts: ' || ended.finals
from ended where ended.finals > 1
union all
select 'L4', ready.job, 'waits with attempt ' || ready.attempt || ' of ' || job.max_attempts
    || ', losses ' || ready.losses || ' of ' || job.max_losses
from ready join job on job.id = ready.job
where ready.attempt >= job.max_attempts or ready.losses >= job.max_losses
union all
select 'L4', held.job, 'runs as attempt ' || held.attempt || ' of ' || job.max_attempts
from held join job on job.id = held.job
where held.attempt > job.max_attempts or held.attempt < 1
union all
select 'L2', places.job, 'there is no such job'
from places where not exists (select 1 from job where job.id = places.job)
union all
select 'L5', held.job, 'lease ' || held.lease || ' is not above an earlier one of the job'
from held where exists (select 1 from attempt where attempt.job = held.job and attempt.lease > held.lease)
union all
select 'L6', ready.job, 'waits in another line than its job asked for'
from ready join job on job.id = ready.job
where ready.queue <> job.queue or ready.line <> job.line or ready.priority <> job.priority
union all
select 'L7', attempt.job, 'lease number ' || attempt.lease || ' was never drawn'
from attempt where attempt.lease > (select seq from sqlite_sequence where name = 'lease')
union all
select 'G1', null, 'gate ' || gate.name || ': ' || gate.in_use || ' permits, '
    || (select count(*) from gate_event where gate_event.gate = gate.id) || ' given back, ' || (
        select count(*) from lease, json_each(lease.jobs) as listed
        where lease.gates ->> listed.key = gate.id and not exists (
            select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no))
    || ' live leases'
from gate
where gate.in_use <> (select count(*) from gate_event where gate_event.gate = gate.id) + (
    select count(*) from lease, json_each(lease.jobs) as listed
    where lease.gates ->> listed.key = gate.id and not exists (
        select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no))
union all
select 'L8', null, 'seal ' || seal.no || ' does not follow the seal before it'
from seal left join seal as before on before.no = seal.no - 1
where seal.no > 1 and (before.no is null or before.hash <> seal.prev or before.last >= seal.first)
limit :limit;
