//! Our statements beside the raw floor of the layout, on one server, with commits that wait for the disk.
//!
//! The shipped texts of `complete_jobs` and `claim_jobs` become functions whose parameters are the statements' own, and
//! `pgbench` runs turns of both: complete the whole previous lease, claim the next, in one transaction. What is asserted
//! is a lenient ratio of the best round, so that a busy machine does not fail it; `TENURE_FLOOR_ROUNDS` asks for more.

use std::path::PathBuf;
use std::process::Command;

use tenure_contract::postgres_server::{Options, Postgres, psql};
use tenure_postgres::{PgOptions, PgStore, statement};
use tenure_store::AdminStore;

const LAYOUT: &str = include_str!("../../../tenure-bench/src/floor/layout.sql");
/// Jobs that one claim takes.
const BATCH: u32 = 200;
const CLIENTS: u32 = 4;
/// Jobs that each side drains in a round.
const JOBS: u32 = 60_000;
/// The least that the best round must reach. By processor time alone ours is at about 0.74.
const RATIO_MIN: f64 = 0.7;

#[tokio::test]
async fn floor_ratio() {
    let rounds: u32 = std::env::var("TENURE_FLOOR_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let bench = Bench::start().await;
    let mut best = 0.0_f64;
    // A round under somebody's compiler tells little: look longer before giving up.
    for round in 1..=3 * rounds {
        if round > rounds && best >= RATIO_MIN {
            break;
        }
        bench.fill();
        // Whoever goes first has the colder cache.
        let (floor, ours) = if round % 2 == 0 {
            let floor = bench.drain("floor");
            (floor, bench.drain("ours"))
        } else {
            let ours = bench.drain("ours");
            (bench.drain("floor"), ours)
        };
        let ratio = ours.rate / floor.rate;
        println!(
            "round {round}: floor {:.0}/s and {} WAL bytes a job, ours {:.0}/s and {}: ratio {ratio:.2}",
            floor.rate, floor.wal_bytes, ours.rate, ours.wal_bytes
        );
        best = best.max(ratio);
    }
    println!(
        "best ratio {best:.2}; {JOBS} jobs a round in batches of {BATCH}, {CLIENTS} clients, {}",
        bench.sql("select version()")
    );
    assert!(best >= RATIO_MIN, "ours reaches {best:.2} of the floor, {RATIO_MIN} is expected");
}

/// A private server that has both sides.
struct Bench {
    server: Postgres,
    url: String,
}

/// One side, one round.
struct Drained {
    /// Jobs per second.
    rate: f64,
    wal_bytes: u64,
}

impl Bench {
    async fn start() -> Self {
        let settings = [("shared_buffers", "512MB"), ("max_wal_size", "4GB")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let server = Postgres::start(&Options { fsync: true, settings: settings.to_vec(), ..Options::default() })
            .expect("start a server");
        let url = server.admin_url();
        let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
        store.migrate().await.expect("migrate");
        let bench = Self { server, url };
        bench.sql(LAYOUT);
        bench.sql(&ours());
        bench
    }

    /// Empties both sides and gives them the same new jobs.
    fn fill(&self) {
        self.sql("truncate tenure.job, tenure.ready, tenure.lease, tenure.attempt, floor.job, floor.ready, floor.lease, floor.attempt");
        self.sql(&format!("select ours.fill({})", JOBS / 1000));
        self.sql("select floor.fill()");
        self.sql("vacuum analyze");
        self.sql("checkpoint");
    }

    /// Runs turns of one side until nothing is left.
    fn drain(&self, side: &str) -> Drained {
        let script = self.script(side);
        // The first turn of a client only claims, its last one only completes, and a few may find everything locked.
        let turns = JOBS / BATCH / CLIENTS + 4;
        let wal = self.sql("select pg_current_wal_lsn()");
        let mut pgbench = Command::new(self.server.bin_dir().join("pgbench"));
        pgbench.args([
            "--no-vacuum",
            "--protocol=prepared",
            "--client",
            &CLIENTS.to_string(),
            "--jobs=1",
            "--transactions",
            &turns.to_string(),
        ]);
        pgbench.args(["--define=lease=0", "--file"]).arg(&script).arg(&self.url);
        if side == "ours" {
            // As the store sets them for its short verbs (`pool.rs`).
            pgbench.env("PGOPTIONS", "-c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off");
        }
        let output = pgbench.output().expect("run pgbench");
        let text = String::from_utf8_lossy(&output.stdout);
        let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let tps = tps.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
        let wal_bytes = self.sql(&format!("select ((pg_current_wal_lsn() - '{wal}'::pg_lsn) / {JOBS})::bigint"));
        self.assert_drained(side);
        let seconds = f64::from(turns * CLIENTS) / tps;
        Drained { rate: f64::from(JOBS) / seconds, wal_bytes: wal_bytes.parse().expect("a number") }
    }

    fn assert_drained(&self, side: &str) {
        let schema = if side == "ours" { "tenure" } else { side };
        let done: u32 =
            self.sql(&format!("select count(*) from {schema}.attempt where how = 1")).parse().expect("a number");
        // A lease or two may be left, by a client that found everything locked when it was its turn.
        assert!((JOBS - CLIENTS * BATCH..=JOBS).contains(&done), "{side} completed {done} of {JOBS}");
    }

    fn script(&self, side: &str) -> PathBuf {
        let path = self.server.socket_dir().join(format!("{side}.pgbench"));
        let script = format!("select {side}.turn(:client_id, :lease::bigint, {BATCH}) as lease \\gset\n");
        std::fs::write(&path, script).expect("write a script");
        path
    }

    fn sql(&self, sql: &str) -> String {
        psql(&self.url, sql).expect("run SQL")
    }
}

/// The shipped statements as functions, and a turn that calls them as the client does: it knows the jobs of its lease,
/// has the server make every row of the answer, and keeps a floor.
fn ours() -> String {
    let (claim, complete) = (statement::CLAIM_JOBS.sql, statement::COMPLETE_JOBS.sql);
    format!(
        "create schema ours;
create function ours.claim(int, text, bigint, timestamptz[], uuid[], timestamptz, smallint[], bigint, boolean)
  returns table (canceled boolean, no bigint, lease_ttl_ms int, due timestamptz, job uuid, attempt smallint, losses smallint, run_at timestamptz, created_at timestamptz,
    kind text, payload text, priority smallint, max_attempts smallint, max_losses smallint, backoff text, trace text, tenant text, part text)
  language plpgsql as $f$
#variable_conflict use_column
begin return query
{claim}; end $f$;
create function ours.complete(int, bigint[], bigint[], uuid[], text[], text[], timestamptz)
  returns table (lease bigint, job uuid) language plpgsql as $f$
#variable_conflict use_column
begin return query
{complete}; end $f$;
{TURN}"
    )
}

const TURN: &str = "
create function ours.turn(_worker int, _lease bigint, _limit int) returns bigint language plpgsql as $f$
declare
  z uuid := '00000000-0000-0000-0000-000000000000';
  floor_at timestamptz := nullif(current_setting('ours.floor_at', true), '');
  floor_job uuid := coalesce(nullif(current_setting('ours.floor_job', true), '')::uuid, z);
  jobs uuid[];
  got bigint;
  recent timestamptz;
begin
  select l.jobs into jobs from tenure.lease l where l.no = _lease;
  if found then perform from ours.complete(_worker, array[_lease], array_fill(_lease, array[cardinality(jobs)]), jobs, null, null, null) limit 1; end if;
  -- A function makes all its rows before the first is read. All jobs are of one bulk: they have one run_at, and come in the order of their ids.
  select c.no, c.due - interval '500 ms', c.run_at, c.job into got, recent, floor_at, floor_job
  from ours.claim(_worker, 'default', _limit, array[null, null, floor_at, null], array[z, z, floor_job, z], null, '{0, 1, 2, 3}', 8192, false) c limit 1;
  if floor_at > recent then floor_at := recent; floor_job := z; end if;
  perform set_config('ours.floor_at', floor_at::text, false), set_config('ours.floor_job', floor_job::text, false);
  return coalesce(got, 0);
end $f$;
create function ours.fill(_thousands int) returns void language sql as $f$
  select from generate_series(1, _thousands) g, lateral tenure.enqueue_rows(
    (select array_agg(tenure.new_id()) from generate_series(1, 1000) where g > 0), array_fill('default'::text, array[1000]),
    array_fill('default'::text, array[1000]), array_fill('noop'::text, array[1000]),
    array_fill(jsonb_build_object('p', repeat('x', 100)), array[1000]), array_fill(2::smallint, array[1000]), null, null,
    array_fill(false, array[1000]), array_fill(5::smallint, array[1000]), array_fill(8::smallint, array[1000]), null, null, null, null, null, null, null)
$f$;";
