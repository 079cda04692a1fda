-- schema: coins that came in, sources of prices, what these said, and what each coin is worth.

create table if not exists coin_intake (
  id           text primary key,
  year         bigint not null check (year between 1 and 9999),
  mintmark     text not null,
  denomination text not null,
  series       text not null,
  title        text not null,
  created_at   timestamptz not null,
  -- Written before a valuation is computed: whoever computes it for one coin waits for the one before.
  valued_at    timestamptz
);

-- How a source does (failures in a row, last success, pause) is known by its gate, `source:<id>`.
create table if not exists coin_source (
  id                    text primary key,
  shape                 text not null check (shape in ('auction', 'market', 'pricelist')),
  base_url              text not null,
  enabled               boolean not null,
  rate_limit_per_minute bigint not null check (rate_limit_per_minute between 1 and 60000)
);

create table if not exists coin_price_point (
  intake_id      text not null references coin_intake (id),
  source_id      text not null references coin_source (id),
  dedupe_key     text not null,
  kind           text not null check (kind in ('sold', 'ask', 'bid')),
  cents          bigint not null check (cents > 0),
  currency       text not null,
  day            text not null,
  title          text not null,
  url            text not null,
  seen_at        timestamptz not null,
  match_strength bigint not null check (match_strength between 0 and 100),
  unique (intake_id, source_id, dedupe_key)
);

create table if not exists coin_valuation (
  intake_id   text not null unique references coin_intake (id),
  cents       bigint not null,
  low_cents   bigint not null,
  high_cents  bigint not null,
  points      bigint not null,
  outliers    bigint not null,
  computed_at timestamptz not null,
  check (low_cents <= cents and cents <= high_cents)
);
