//! Those who make it hard: leases that expire early, pruning of what has hardly ended, sealers in pairs, pinned
//! snapshots, paused queues.

use std::sync::Arc;

use tenure_core::seal::Anchor;
use tenure_store::operate::{PauseQueue, PruneJobs};
use tenure_store::{AdminStore, JournalStore, StoreError};

use crate::field::{Field, some_queue};
use crate::producer::word;
use crate::rng::Rng;

/// Rows of our own: effects of users without any unique key, sleeps in the middle of everything, also between a look at a
/// job and what follows from it, and a count of take-overs.
pub(crate) const SETUP: &str = "
    create table effect (job uuid not null, lease bigint not null);
    create sequence takeover;
    create function jitter() returns trigger language plpgsql as $$
    begin
      if random() < 0.02 then perform pg_sleep(random() * 0.004); end if;
      if tg_op = 'UPDATE' then
        if new.digest is null and new.job <> old.job then perform nextval('takeover'); end if;
      end if;
      return new;
    end $$;
    alter function tenure.state_of(uuid) rename to state_now;
    create function tenure.state_of(_job uuid) returns text language plpgsql stable as $$
    declare state text := tenure.state_now(_job); begin
      if random() < 0.05 then perform pg_sleep(random() * 0.004); end if;
      return state;
    end $$;
    create trigger jitter before insert on tenure.job for each row execute function jitter();
    create trigger jitter before insert on tenure.attempt for each row execute function jitter();
    create trigger jitter before insert on tenure.ready for each row execute function jitter();
    create trigger jitter before insert on tenure.lease for each row execute function jitter();
    create trigger jitter before insert or update on tenure.unique_key for each row execute function jitter();
    create trigger z_jitter before insert on tenure.journal for each row execute function jitter();
";

/// Lets leases expire before their time.
pub(crate) async fn expire(field: Arc<Field>, mut rng: Rng) {
    let client = field.client().await;
    let sql = "update tenure.lease set expires_at = clock_timestamp() - interval '1 ms'
        where no in (select no from tenure.lease order by random() limit 2 for no key update skip locked)";
    while !field.is_stopped() {
        let expired = client.execute(sql, &[]).await.expect("expire");
        field.ledger.add("leases made to expire", expired);
        field.pause(rng.millis(20, 120)).await;
    }
}

/// Deletes what ended a few milliseconds ago.
pub(crate) async fn prune(field: Arc<Field>, mut rng: Rng) {
    let store = field.store().await;
    while !field.is_stopped() {
        let limit = u32::try_from(rng.between(1, 40)).expect("small");
        match store.prune_jobs(PruneJobs { older_than: rng.millis(1, 50), dead_too: rng.percent(50), limit }).await {
            Ok(gone) => field.ledger.add("pruned", gone),
            Err(error) => field.refused("prune", &error),
        }
        field.pause(rng.millis(20, 200)).await;
    }
}

/// Seals, and remembers the first seal as an anchor.
pub(crate) async fn seal(field: Arc<Field>, mut rng: Rng) -> Option<Anchor> {
    let store = field.store().await;
    let mut anchor = None;
    while !field.is_stopped() {
        match store.seal_journal().await {
            Ok(Some(seal)) => {
                field.ledger.count("seals");
                if seal.no == 1 {
                    anchor = Some(Anchor { no: 1, rows: seal.rows, hash: seal.hash });
                }
            }
            Ok(None) => {}
            Err(error) => field.refused("seal", &error),
        }
        field.pause(rng.millis(20, 150)).await;
    }
    anchor
}

/// Holds old snapshots.
pub(crate) async fn pin(field: Arc<Field>, mut rng: Rng) {
    let client = field.client().await;
    while !field.is_stopped() {
        client.batch_execute("begin isolation level repeatable read; select 1").await.expect("pin");
        field.pause(rng.millis(200, 3_000)).await;
        client.batch_execute("commit").await.expect("let go");
        field.ledger.count("snapshots pinned");
    }
}

/// Pauses a queue now and then, shortly.
pub(crate) async fn interrupt(field: Arc<Field>, mut rng: Rng) {
    let store = field.store().await;
    while !field.is_stopped() {
        field.pause(rng.millis(200, 1_500)).await;
        let queue = some_queue(&mut rng);
        for paused in [true, false] {
            let asked = store.pause_queue(PauseQueue { queue: queue.clone(), paused, word: word() }).await;
            // A queue exists from its first job on.
            assert!(matches!(asked, Ok(()) | Err(StoreError::NotFound(_))), "pause or resume: {asked:?}");
            field.pause(rng.millis(10, 150)).await;
        }
        field.ledger.count("pauses");
    }
}
