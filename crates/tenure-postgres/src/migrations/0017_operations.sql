-- 0017_operations: one act on many jobs, done in the background by the job of the same id, which it goes with.
create table tenure.operation (
  id uuid primary key,
  tenant int references tenure.tenant (id),                 -- null: everybody's jobs, for operators
  name text not null check (octet_length(name) between 1 and 500),
  act text not null check (act in ('cancel', 'cancel_by_force', 'requeue')),
  state text not null,
  queue text,
  kind text,
  cause text,                                               -- a group of dead letters
  actor text,
  reason text,
  created_at timestamptz not null,
  cursor uuid,
  total bigint check (total >= 0),
  done bigint not null default 0 check (done >= 0),
  refused bigint not null default 0 check (refused >= 0),
  last_refusal text,
  finished_at timestamptz
) with (fillfactor = 50);
create index operation_tenant on tenure.operation (tenant, id);

-- For people.
create view tenure.operations as
select o.id, t.name as tenant, o.name, o.act, o.state, o.queue, o.kind, o.cause, o.total, o.done, o.refused, o.last_refusal, o.created_at, o.finished_at
from tenure.operation o left join tenure.tenant t on t.id = o.tenant;
