-- add_operation.sql: an operation begins.
insert into operation (id, tenant, name, act, state, queue, kind, cause, actor, reason, created_at)
values (:id, :tenant, :name, :act, :state, :queue, :kind, :cause, :actor, :reason, :now);
