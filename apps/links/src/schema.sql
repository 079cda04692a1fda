-- schema: imports of bookmarks, the links they name, where these stand, and what is known of them and of their domains.

-- State, times and progress of an import are those of the run of the same id. Here is what a run does not have.
create table if not exists link_import (
  id          text primary key,
  user_name   text not null,
  source_type text not null check (source_type = 'chrome_html'),
  total_items bigint not null check (total_items >= 0),
  skipped     bigint not null check (skipped >= 0),
  unreadable  bigint not null check (unreadable >= 0),
  created_at  timestamptz not null,
  -- When links were last counted as processed.
  settled_at  timestamptz,
  canceled_at timestamptz
);
create index if not exists link_import_user on link_import (user_name, id);

-- One row per canonical link, for ever, whoever imported it. Its job is the only one it ever has.
create table if not exists link_canonical (
  id            text primary key,
  url           text not null unique,
  domain        text not null,
  job           text not null unique,
  -- open: its job is on its way · reviving: its job has ended badly and is to be requeued · doomed: its last attempt has
  -- failed, and its job will say so · enriched, dead: how it ended
  state         text not null default 'open' check (state in ('open', 'reviving', 'doomed', 'enriched', 'dead')),
  title         text,
  description   text,
  canonical_url text,
  language      text,
  redirects_to  text,
  enriched_at   timestamptz,
  last_error    text,
  failed_at     timestamptz,
  -- Its job is put aside, because nobody waits for it.
  aside_at      timestamptz,
  check ((state = 'enriched') = (enriched_at is not null))
);

-- What an import waits for: each of its links once, in however many folders it stands.
create table if not exists link_item (
  import  text not null references link_import (id),
  link    text not null references link_canonical (id),
  outcome text check (outcome in ('enriched', 'dead')),
  primary key (import, link)
);
create index if not exists link_item_open on link_item (import) where outcome is null;
create index if not exists link_item_link on link_item (link) where outcome is null;

-- Where a link stands: as often as the user put it somewhere.
create table if not exists link_placement (
  import   text not null references link_import (id),
  position bigint not null,
  folder   jsonb not null,
  title    text not null,
  added_at timestamptz,
  link     text not null references link_canonical (id),
  primary key (import, position)
);

-- How often a domain has answered 403 in a row.
create table if not exists link_domain (
  domain text primary key,
  streak bigint not null check (streak >= 0)
);

-- Attempts that failed, each once.
create table if not exists link_failure (
  job    text not null,
  fence  bigint not null,
  domain text not null,
  met    text not null,
  at     timestamptz not null,
  primary key (job, fence)
);
create index if not exists link_failure_at on link_failure (at, domain);

create table if not exists link_block_candidate (
  domain     text not null,
  reason     text not null check (reason in ('robots', 'captcha', 'forbidden')),
  count      bigint not null check (count > 0),
  first_seen timestamptz not null,
  last_seen  timestamptz not null,
  last_job   text not null,
  primary key (domain, reason),
  check (first_seen <= last_seen)
);
