-- list_operations.sql: operations, newest first, a page or one.
-- Zero rows means that there are none, or none in sight.
select operation.id, tenant.name, operation.name, operation.act, operation.state, operation.queue, operation.kind,
    operation.cause, operation.actor, operation.reason, operation.created_at, operation.cursor, operation.total,
    operation.done, operation.refused, operation.last_refusal, operation.finished_at
from operation
left join tenant on tenant.id = operation.tenant
where (:sight is null or tenant.name = :sight)
  and (:id is null or operation.id = :id)
  and (:before is null or operation.id < :before)
order by operation.id desc
limit :limit;
