-- schema: runs over a supplier's catalogue, its stones as they came, how partitions ended, and the stones we sell.

-- How far a run and its partitions are is known by Tenure; here is what only this product knows of a run.
create table if not exists diamonds_run (
  run_id           text primary key,
  trace_id         text not null,
  -- The supplier's revision that it reads.
  as_of            bigint not null check (as_of >= 0),
  partitions       bigint not null check (partitions > 0),
  stones           bigint not null check (stones >= 0),
  created_at       timestamptz not null,
  -- Whether all its WORK_DONE are written, and none of them can change any more.
  told             boolean not null,
  published_at     timestamptz,
  published_stones bigint
);

-- Who has the catalogue: there is one run at a time. One row, changed only by whoever saw it as it is.
create table if not exists diamonds_claim (
  source        text primary key,
  run_id        text not null,
  -- One more each time it is taken.
  turn          bigint not null check (turn > 0),
  -- Whoever took it is about to open the run, until then; null once that is done.
  pending_until timestamptz
);

-- Stones as they came, of each revision that is being read. What is older than the published one goes with the publication.
create table if not exists diamonds_raw (
  as_of             bigint not null check (as_of >= 0),
  supplier_stone_id text not null,
  run_id            text not null,
  offer_id          text not null,
  -- All that the supplier said of it.
  payload           jsonb not null,
  primary key (as_of, supplier_stone_id)
);

-- WORK_DONE, one for each partition.
create table if not exists diamonds_work_done (
  run_id       text not null,
  partition_id text not null,
  status       text not null check (status in ('completed', 'failed')),
  message      jsonb not null,
  told_at      timestamptz not null,
  unique (run_id, partition_id)
);

create table if not exists diamonds_stone (
  supplier_stone_id text primary key,
  offer_id          text not null,
  origin            text not null,
  shape             text not null,
  carat_points      bigint not null check (carat_points > 0),
  colour            text not null,
  clarity           text not null,
  cut               text not null,
  price_cents       bigint not null check (price_cents > 0),
  retail_cents      bigint not null,
  available         boolean not null,
  changed_at        timestamptz not null,
  run_id            text not null,
  as_of             bigint not null,
  check (retail_cents >= price_cents)
)
