-- 0014_usage: what handlers said that they used. An ending only inserts; who folds adds up. A sum reads both.
create table tenure.usage_event (
  id bigint generated always as identity (cache 1) primary key,
  at timestamptz not null,
  tenant int not null,
  kind text not null,
  usage jsonb not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create table tenure.usage_total (
  day date not null,                                -- by UTC
  tenant int not null,
  kind text collate "C" not null check (length(kind) between 1 and 100),
  name text collate "C" not null check (length(name) <= 100),
  amount double precision not null,
  attempts bigint not null check (attempts > 0),
  primary key (day, tenant, kind, name)
) with (fillfactor = 70);

-- One folds at a time: its lock keeps two from waiting for each other's sums.
create table tenure.usage_fold (
  folds boolean primary key check (folds)
);
insert into tenure.usage_fold (folds) values (true);

-- The figures of usage records that are not added up yet. A figure that `tenure.check_usage` refuses was written past the
-- verbs: it is left out, so that one record cannot stop the totals of all tenants.
create view tenure.usage_unfolded as
select e.id, (e.at at time zone 'UTC')::date as day, e.tenant, e.kind, left(u.key, 100) as name,
  round(f.amount, 30)::double precision as amount
from tenure.usage_event e
cross join lateral jsonb_each(case when jsonb_typeof(e.usage) = 'object' then e.usage else '{}' end) u
cross join lateral (
  select case when jsonb_typeof(u.value) = 'number' then u.value::numeric end as amount offset 0
) f
where f.amount between 0 and 1e15;

-- For people: what was used, by day, tenant, kind and name.
create view tenure.usages as
select u.day, t.name as tenant, u.kind, u.name, sum(u.amount) as amount, sum(u.attempts)::bigint as attempts
from (
  select day, tenant, kind, name, amount, attempts from tenure.usage_total
  union all
  select day, tenant, kind, name, amount, 1 from tenure.usage_unfolded
) u
join tenure.tenant t on t.id = u.tenant
group by u.day, t.name, u.kind, u.name;

-- Adds up a batch; answers how many records there were.
create function tenure.fold_usage(_limit int) returns bigint language plpgsql as $$
declare
  batch bigint[];
begin
  perform from tenure.usage_fold for update skip locked;
  if not found then return 0; end if;
  batch := array(select id from tenure.usage_event order by id limit _limit);
  insert into tenure.usage_total as t (day, tenant, kind, name, amount, attempts)
    select u.day, u.tenant, u.kind, u.name, sum(u.amount), count(*) from tenure.usage_unfolded u where u.id = any (batch)
    group by u.day, u.tenant, u.kind, u.name order by u.day, u.tenant, u.kind, u.name
    on conflict (day, tenant, kind, name) do update set amount = t.amount + excluded.amount, attempts = t.attempts + excluded.attempts;
  delete from tenure.usage_event where id = any (batch);
  return cardinality(batch);
end $$;
