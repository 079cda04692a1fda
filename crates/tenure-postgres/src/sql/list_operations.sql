-- list_operations.sql: operations, newest first, a page or one. Zero rows: there are none, or none in sight.
--   $1 tenant or null for all, $2 one id, $3 before this id, $4 limit
select o.id, t.name as tenant, o.name, o.act, o.state, o.queue, o.kind, o.cause, o.actor, o.reason, o.created_at, o.cursor, o.total, o.done, o.refused, o.last_refusal, o.finished_at
from tenure.operation o
left join tenure.tenant t on t.id = o.tenant
where ($1::text is null or t.name = $1) and ($2::uuid is null or o.id = $2) and ($3::uuid is null or o.id < $3)
order by o.id desc
limit $4::bigint
