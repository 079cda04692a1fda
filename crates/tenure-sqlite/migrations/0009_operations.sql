-- 0009_operations.sql: one act on many jobs, done in the background by the job of the same id, which it goes with.
create table operation (
    id blob not null primary key check (length(id) = 16),
    -- Null: everybody's jobs, for operators.
    tenant integer references tenant (id),
    name text not null check (length(cast(name as blob)) between 1 and 500),
    act text not null check (act in ('cancel', 'cancel_by_force', 'requeue')),
    state text not null,
    queue text,
    kind text,
    cause text,
    actor text,
    reason text,
    created_at integer not null,
    cursor blob,
    total integer check (total >= 0),
    done integer not null default 0 check (done >= 0),
    refused integer not null default 0 check (refused >= 0),
    last_refusal text,
    finished_at integer
) strict, without rowid;
create index operation_tenant on operation (tenant, id);
