//! Operations: one act on many jobs, and how far it is.

use std::time::Duration;

use tenure_core::webhook::OWN_QUEUE;
use tenure_core::{QueueName, State, TenantName};
use tenure_store::StoreError;
use tenure_store::lease::ClaimJobs;
use tenure_store::operate::{PruneJobs, Word};
use tenure_store::operation::{
    Act, NewOperation, OPERATION_KIND, OperationFilter, OperationRecord, Progress, SaveOperation,
};
use tenure_store::record::Sight;

use crate::fixture::{Fixture, success};

fn new(t: &Fixture, tenant: Option<&str>) -> NewOperation {
    NewOperation {
        id: t.new_id(),
        tenant: tenant.map(|name| name.parse::<TenantName>().expect("a name")),
        name: "revive what timed out".into(),
        act: Act::Requeue,
        state: State::Dead,
        queue: Some(QueueName::default()),
        kind: Some("noop".parse().expect("a name")),
        group: Some("4f1c2a9e".into()),
        word: Word { actor: Some("ann".into()), reason: Some("fixed".into()) },
    }
}

async fn listed(t: &Fixture, filter: OperationFilter) -> Vec<OperationRecord> {
    t.store.list_operations(&filter).await.expect("list")
}

fn seen(sight: Sight) -> OperationFilter {
    OperationFilter { sight, before: None, limit: 10 }
}

/// Every member; the job that does it; and the reply that was lost is answered again.
pub async fn an_operation_begins_with_the_job_that_does_it(t: Fixture) {
    let asked = new(&t, Some("acme"));
    let made = t.store.create_operation(asked.clone()).await.expect("create");
    assert_eq!(made, OperationRecord::begun(asked.clone(), t.clock.now()));
    t.advance(Duration::from_secs(1));
    assert_eq!(t.store.create_operation(asked.clone()).await.expect("again"), made);
    assert_eq!(t.store.show_operation(&Sight::All, asked.id).await.expect("show"), made);
    let taken =
        t.store.create_operation(NewOperation { act: Act::Cancel, state: State::Queued, group: None, ..asked }).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let job = t.show(made.id).await.summary;
    assert_eq!((job.kind.as_str(), job.queue.as_str(), job.tenant.as_str()), (OPERATION_KIND, OWN_QUEUE, "acme"));
    assert_eq!(job.gate.expect("a gate").as_str(), format!("{OPERATION_KIND}/acme"));
    for (act, state) in [(Act::Requeue, State::Queued), (Act::Cancel, State::Dead), (Act::Cancel, State::Succeeded)] {
        let refused = t.store.create_operation(NewOperation { act, state, group: None, ..new(&t, None) }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{act:?} {state:?}: {refused:?}");
    }
}

/// A tenant sees its own, not another's and not the operators'.
pub async fn operations_are_listed_and_a_tenant_sees_its_own(t: Fixture) {
    let mut made = Vec::new();
    for tenant in [None, Some("acme"), Some("bolt"), Some("acme")] {
        made.push(t.store.create_operation(new(&t, tenant)).await.expect("create"));
        t.advance(Duration::from_secs(1));
    }
    let acme = Sight::Tenant("acme".parse().expect("a name"));
    assert_eq!(listed(&t, seen(acme.clone())).await, [made[3].clone(), made[1].clone()]);
    assert_eq!(listed(&t, seen(Sight::All)).await.len(), 4);
    let page = OperationFilter { before: Some(made[2].id), limit: 1, ..seen(Sight::All) };
    assert_eq!(listed(&t, page).await, [made[1].clone()]);
    for hidden in [&made[0], &made[2]] {
        let missing = t.store.show_operation(&acme, hidden.id).await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))), "{missing:?}");
    }
}

/// Whoever is behind changes nothing, nor does anybody once it is finished; it goes with its job.
pub async fn how_far_an_operation_is_only_grows(t: Fixture) {
    let made = t.store.create_operation(new(&t, None)).await.expect("create");
    let at = |done, refused| Progress {
        cursor: Some(made.id),
        total: Some(9),
        done,
        refused,
        last_refusal: Some("it runs".into()),
    };
    for (done, refused, finished, is_news) in [
        (0, 0, false, true),
        (3, 1, false, true),
        (2, 1, false, false),
        (3, 1, false, true),
        (8, 1, true, true),
        (9, 9, true, false),
    ] {
        let save = SaveOperation { id: made.id, progress: at(done, refused), finished };
        assert_eq!(t.store.save_operation(save).await.expect("save"), is_news, "{done} {refused}");
    }
    let record = t.store.show_operation(&Sight::All, made.id).await.expect("show");
    assert_eq!((record.progress, record.finished_at), (at(8, 1), Some(t.clock.now())));
    let unknown = SaveOperation { id: t.new_id(), progress: at(1, 0), finished: false };
    assert!(matches!(t.store.save_operation(unknown).await, Err(StoreError::NotFound(_))));

    let worker = t.worker("w").await;
    let claim = ClaimJobs::new(worker, QueueName::new(OWN_QUEUE).expect("a name"), 1);
    let lease = t.store.claim_jobs(claim).await.expect("claim").expect("its job").lease;
    t.end(worker, lease, made.id, success()).await;
    t.store.drop_leases(worker, vec![lease]).await.expect("drop");
    t.advance(Duration::from_secs(60));
    let prune = PruneJobs { older_than: Duration::from_secs(1), dead_too: false, limit: 10 };
    assert_eq!(t.store.prune_jobs(prune).await.expect("prune"), 1);
    assert_eq!(listed(&t, seen(Sight::All)).await, []);
}
