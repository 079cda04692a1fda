//! Limits of a tenant that are too high to be reached by calls. The others are cases of `tenure-contract`.

use tenure_core::RunId;
use tenure_store::run::{NewRun, OPEN_RUNS_MAX};
use tenure_store::{RunStore, StoreError};

use crate::fixture::{Fixture, new_job};

#[tokio::test]
async fn a_tenant_has_ten_thousand_open_runs_at_most() {
    let fixture = Fixture::memory().await;
    fixture.enqueue(1).await;
    let write = |sql: String| {
        fixture.store.transaction(move |tx| tx.connection().execute_batch(&sql).map_err(StoreError::unavailable))
    };
    write(format!(
        "with recursive n (n) as (select 2 union all select n + 1 from n where n < {OPEN_RUNS_MAX})
         insert into run (id, tenant, state, sealed, fail_fast, tolerated, fan, created_at, deadline_asked)
         select randomblob(16), (select id from tenant where name = 'default'), 0, 1, 0, 0, 0, 0, 0 from n"
    ))
    .await
    .unwrap();
    let empty = || NewRun::new(RunId::from_uuid(*new_job(fixture.clock.now()).id.as_uuid()));
    fixture.store.create_run(empty()).await.unwrap();
    match fixture.store.create_run(empty()).await {
        Err(StoreError::Limit(text)) => assert_eq!(
            text,
            "open runs of tenant `default`: 10000 is the limit; \
             come again when some have ended, or cancel one with `tenure runs cancel RUN`"
        ),
        other => panic!("{other:?}"),
    }
    let of_another = NewRun { tenant: "acme".parse().unwrap(), ..empty() };
    fixture.store.create_run(of_another).await.unwrap();
    write("update run set state = 4, finished_at = 0 where id = (select id from run limit 1)".to_owned())
        .await
        .unwrap();
    fixture.store.create_run(empty()).await.unwrap();
}
