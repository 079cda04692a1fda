-- layout: the least that these tables can cost on Postgres, as plain SQL: no checks, no history, no client.
-- A turn ends the whole previous lease and claims the next jobs, in one transaction. Our statements are measured beside it.
create schema floor;

create table floor.job (
  id uuid primary key,
  tenant int not null default 1,
  queue int not null,
  kind text not null default 'noop',
  priority smallint not null default 2,
  max_attempts smallint not null default 5,
  payload jsonb not null default '{}',
  created_at timestamptz not null default now()
);

create table floor.ready (
  queue int not null,
  priority smallint not null,
  run_at timestamptz not null,
  job uuid not null,
  attempt smallint not null default 0,
  state smallint not null default 0
);
create index ready_claim on floor.ready (queue, priority, run_at, job);

create table floor.lease (
  no bigint generated always as identity primary key,
  worker int not null,
  claimed_at timestamptz not null default now(),
  expires_at timestamptz not null,
  jobs uuid[] not null,
  attempts smallint[] not null
);

create table floor.attempt (
  job uuid not null,
  lease bigint not null,
  attempt smallint not null,
  how smallint not null,
  ended_at timestamptz not null default now(),
  primary key (job, lease)
);

create table floor.journal (
  id bigint generated always as identity,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default now(),
  worker int,
  event smallint,
  lease bigint,
  jobs uuid[]
);

-- The same ids and payloads as the jobs beside it: how well an array of ids compresses is part of what it costs.
create function floor.fill() returns void language sql as $$
  with stored as (
    insert into floor.job (id, queue, payload) select id, 1, payload from tenure.job
    returning id, queue, priority, created_at
  )
  insert into floor.ready (queue, priority, run_at, job) select queue, priority, created_at, id from stored
$$;

-- New jobs of its own, in one transaction. Ids that grow, as ours do.
create function floor.enqueue(_jobs int, _payload text) returns void language sql as $$
  with stored as (
    insert into floor.job (id, queue, payload)
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7000' || substr(md5(random()::text), 1, 16))::uuid, 1, _payload::jsonb
    from generate_series(1, _jobs)
    returning id, queue, priority, created_at
  )
  insert into floor.ready (queue, priority, run_at, job) select queue, priority, created_at, id from stored
$$;

create function floor.turn(_worker int, _lease bigint, _limit int) returns bigint language plpgsql as $$
declare
  got bigint;
begin
  with gone as (
    delete from floor.lease where no = _lease and worker = _worker returning no, jobs, attempts
  ), ended as (
    insert into floor.attempt (job, lease, attempt, how)
    select held.job, gone.no, held.attempt, 1 from gone, unnest(gone.jobs, gone.attempts) held (job, attempt)
  )
  insert into floor.journal (worker, event, lease, jobs) select _worker, 2, no, jobs from gone;

  with candidate as materialized (
    select ctid as place from floor.ready
    where queue = 1 and priority = 2 and run_at <= statement_timestamp()
    order by queue, priority, run_at, job
    limit _limit for update skip locked
  ), taken as (
    delete from floor.ready using candidate where ready.ctid = candidate.place returning ready.job, ready.attempt
  ), granted as (
    insert into floor.lease (worker, expires_at, jobs, attempts)
    select _worker, now() + interval '60 s', array_agg(job), array_agg((attempt + 1)::smallint) from taken having count(*) > 0
    returning no, jobs
  ), noted as (
    insert into floor.journal (worker, event, lease, jobs) select _worker, 1, no, jobs from granted
  )
  select no into got from granted
  where (select count(payload) from floor.job join taken on taken.job = job.id) >= 0;
  return coalesce(got, 0);
end $$;
