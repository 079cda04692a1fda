-- add_run.sql: a new run.
-- Zero rows means that it is there already.
insert into run (
    id, tenant, owner, source, state, sealed, fail_fast, tolerated, consolidate, fan, created_at, deadline,
    deadline_asked)
values (:id, :tenant, :owner, :source, 0, :sealed, :fail_fast, :tolerated, :consolidate, :fan, :now, :deadline,
    :deadline_asked)
on conflict (id) do nothing;
