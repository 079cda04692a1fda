//! The Postgres store under attack: everything at once, at random, held against a ledger that the actors keep.
//!
//! `TENURE_ATTACK_SECONDS` (30) and `TENURE_ATTACK_SEED` choose a run. A seed repeats the actors' choices, not the
//! server's timing. Mutants of our own SQL, each caught by a named case, are in `mutants`; `TENURE_ATTACK_MUTANT` runs
//! the random attack on one of them, to see whether it notices as well.

#[path = "../it/database.rs"]
#[expect(dead_code, reason = "shared with the contract suite's binary, which uses more of it")]
mod database;

mod chaos;
mod check;
mod drain;
mod duel;
mod field;
mod gate_cases;
mod key_cases;
mod lease_cases;
mod ledger;
mod mutants;
mod producer;
mod rng;
mod stage;
mod user;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tenure_contract::postgres_server::{psql, shared_admin_url};
use tenure_core::GateRule;
use tenure_core::seal::Anchor;
use tenure_store::gate::SetRule;
use tenure_store::operate::{SetQueue, Word};
use tenure_store::{AdminStore, GateStore};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::field::{Field, queues};
use crate::mutants::Cut;
use crate::rng::Rng;
use crate::worker::Worker;

/// What must have happened, or the run proves nothing.
const BITES: &[&str] = &[
    "attempts",
    "stale reports refused",
    "refusals on record",
    "repeated reports answered",
    "replies lost",
    "complete_in commits",
    "complete_in rollbacks",
    "stale complete_in refused",
    "savepoints rolled back",
    "prepared and committed",
    "prepared and rolled back",
    "serialization failures",
    "force cancels",
    "force cancels in a transaction",
    "canceled by a claim",
    "requeued",
    "requeued in a transaction",
    "takeovers",
    "duels won by a requeue",
    "duels won by an enqueue",
    "found",
    "reclaimed",
    "released unknown",
    "renewed",
    "late commits found",
    "opened",
    "pruned",
    "pauses",
    "seals",
    "snapshots pinned",
    "checks",
    "gated",
    "full gates",
];

/// Jobs at once through each gate.
const GATE_LIMIT: u32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack() {
    let seed = variable("TENURE_ATTACK_SEED").unwrap_or(11);
    let seconds = variable("TENURE_ATTACK_SECONDS").unwrap_or(30);
    let database = Database::new().await;
    // Noticed before a short verb's lock timeout of a second hides it.
    database.sql(&format!("alter database {} set deadlock_timeout = '100ms'", database.name));
    database.sql(chaos::SETUP);
    let cut = std::env::var("TENURE_ATTACK_MUTANT").ok().map(|name| Cut::named(&name));
    if let Some(cut) = cut {
        cut.apply(&field::connect(&database.url).await).await;
    }
    let field = Arc::new(Field::new(&database.url, seed, cut.and_then(Cut::statement)));
    let (store, client) = (field.store().await, field.client().await);
    for queue in queues() {
        store.set_queue(SetQueue::new(queue, Duration::from_secs(1))).await.expect("set a queue");
    }
    let rule = GateRule { concurrency: Some(GATE_LIMIT), ..GateRule::default() };
    let pattern = "g:*".parse().expect("a pattern");
    store.set_rule(SetRule { pattern, rule: Some(rule), word: Word::default() }).await.expect("set a rule");
    let mut workers = Vec::new();
    for n in 0..6 {
        workers.push(Worker::new(&field, n).await);
    }
    let anchor = fight(&field, &workers, Duration::from_secs(seconds)).await;
    let mut rng = Rng::new(seed, 999);
    drain::drain(&field, &workers, &client, &mut rng).await;
    check::settle(&field, &store, &client, anchor.as_ref()).await;
    let takeovers = client.query_one("select last_value from takeover where is_called", &[]).await;
    let takeovers: i64 = takeovers.map_or(0, |row| row.get(0));
    field.ledger.add("takeovers", takeovers.unsigned_abs());
    drop((store, client, workers));
    let deadlocks = deadlocks(&database).await;
    let pages = field.ledger.pages();
    println!("seed {seed}, {seconds} s\n{pages}");
    assert!(pages.faults.is_empty(), "seed {seed}: {:#?}", pages.faults);
    assert!(deadlocks <= deadlocks_max(seconds), "seed {seed}: the server broke {deadlocks} deadlocks");
    drop(pages);
    let toothless: Vec<_> = BITES.iter().filter(|what| field.ledger.tally(what) == 0).collect();
    assert!(toothless.is_empty(), "seed {seed}: the run is void, these never happened: {toothless:?}");
}

/// Lets all actors loose; answers the first seal.
async fn fight(field: &Arc<Field>, workers: &[Arc<Worker>], time: Duration) -> Option<Anchor> {
    let mut actors = JoinSet::new();
    let mut n = 0;
    let mut rng = || {
        n += 1;
        Rng::new(field.seed, n)
    };
    for worker in workers {
        actors.spawn(worker::work(field.clone(), worker.clone(), rng()));
    }
    for i in 0..2 {
        actors.spawn(worker::renew(field.clone(), workers.to_vec(), rng()));
        actors.spawn(worker::reclaim(field.clone(), workers[i].clone(), rng()));
        actors.spawn(producer::operate(field.clone(), rng()));
        actors.spawn(duel::duel(field.clone(), i as u64, rng()));
    }
    for i in 0..6 {
        actors.spawn(user::transact(field.clone(), i, rng()));
    }
    for _ in 0..3 {
        actors.spawn(producer::produce(field.clone(), rng()));
    }
    actors.spawn(chaos::expire(field.clone(), rng()));
    actors.spawn(chaos::prune(field.clone(), rng()));
    actors.spawn(chaos::pin(field.clone(), rng()));
    actors.spawn(chaos::interrupt(field.clone(), rng()));
    actors.spawn(check::watch(field.clone()));
    let mut sealers = JoinSet::new();
    sealers.spawn(chaos::seal(field.clone(), rng()));
    sealers.spawn(chaos::seal(field.clone(), rng()));
    while field.age() < time && field.ledger.pages().faults.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    field.stop();
    while let Some(ended) = actors.join_next().await {
        ended.expect("an actor ends by itself");
    }
    sealers.join_all().await.into_iter().flatten().next()
}

/// How many deadlocks PostgreSQL itself may cause in so many seconds of attack.
///
/// Two reports of one grant at the same moment: both lock the lease `for key share`, one inserts the attempt, the other one
/// waits for it. The first one then locks the lease `for update skip locked` and deletes it. `heap_lock_tuple` (PostgreSQL 15)
/// looks at the tuple, lets go of the page, and grants `for key share` without another look at a lock that came between, so the
/// second report may still get its lock after the first one's `for update`, and the delete waits for it. The window is a few
/// instructions; six workers that repeat their reports without pause meet it once in some minutes. The victim's
/// transaction is rolled back whole and its report is repeated. A wrong order of locks in a statement causes five to seven in
/// 30 s (seen with the mutants of `mutants.rs`), and has cases of its own (`lease_cases.rs`, `key_cases.rs`).
fn deadlocks_max(seconds: u64) -> u64 {
    2 + seconds / 60
}

/// How many deadlocks the server broke. A session hands its counts over when it ends.
async fn deadlocks(database: &Database) -> u64 {
    let admin = shared_admin_url();
    let ask = |sql: String| psql(admin, &sql).expect("ask").parse::<u64>().expect("a number");
    while ask(format!("select count(*) from pg_stat_activity where datname = '{}'", database.name)) > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ask(format!("select deadlocks from pg_stat_database where datname = '{}'", database.name))
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}
