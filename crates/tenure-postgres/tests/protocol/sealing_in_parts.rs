//! Sealing in parts: a large act is sealed a few thousand rows at a time, each part one transaction, and no row is read
//! again and again.

use std::collections::HashMap;

use tenure_core::seal::Seal;
use tenure_store::JournalStore;
use tenure_store::audit;
use tenure_store::journal::{FULL_SEAL_ROWS, JournalPage};
use tokio_postgres::Client;

use crate::scene::{Scene, number, run, soon, until_gone};

/// Most rows of one seal on Postgres.
const SEAL_ROWS_MAX: i64 = 5_000;
/// The backends of the store.
const OURS: &str = "from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and application_name like 'tenure%'";

fn rows(count: u32) -> String {
    format!("insert into tenure.journal (at, event, jobs) select now(), 6, '{{}}' from generate_series(1, {count})")
}

/// Seals until nothing is left.
async fn seal_all(scene: &Scene) -> Vec<Seal> {
    let mut seals = Vec::new();
    while let Some(seal) = scene.store.seal_journal().await.expect("seal") {
        seals.push(seal);
    }
    seals
}

/// Every row of the journal is under exactly one seal, reading in pages that are smaller than a part.
async fn assert_each_row_sealed_once(scene: &Scene, client: &Client) {
    let mut times: HashMap<i64, u32> = HashMap::new();
    for seal in scene.store.list_seals(0, 10_000).await.expect("list seals") {
        let mut page = JournalPage { seal: Some(seal.no), after: 0, limit: 700 };
        loop {
            let rows = scene.store.read_journal(page).await.expect("read the journal");
            let Some(last) = rows.last() else { break };
            page.after = last.id;
            rows.iter().for_each(|row| *times.entry(row.id).or_default() += 1);
        }
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times != 1).take(5).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let all = number(client, "select count(*) from tenure.journal").await;
    assert_eq!(i64::try_from(times.len()).expect("not that many"), all, "every row is under a seal");
}

/// Index entries of the journal that were read since the database was made. Backends publish their counters when they end.
async fn entries_read(client: &Client) -> i64 {
    let pids = client.query(&format!("select pid, pg_terminate_backend(pid) {OURS}"), &[]).await.expect("terminate");
    for row in &pids {
        until_gone(client, i64::from(row.get::<_, i32>(0))).await;
    }
    let read = "select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = 'tenure' and relname = 'journal'";
    number(client, &format!("select coalesce(({read}), 0)::bigint")).await
}

/// More rows than a seal covers.
#[tokio::test]
async fn a_large_act_is_sealed_in_parts_that_hold_each_row_once() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, &rows(12_000)).await;
    let seals = seal_all(&scene).await;
    let counts: Vec<i64> = seals.iter().map(|seal| seal.rows).collect();
    assert_eq!(counts, [SEAL_ROWS_MAX, SEAL_ROWS_MAX, 2_000]);
    assert_each_row_sealed_once(&scene, &client).await;
    scene.assert_sound().await;
}

/// One transaction writes 50,000 rows while others write and a sealer seals. The sealer passes the rows once while they
/// are invisible, and reads them once when they are visible. Red when each page reads the window from its beginning.
#[tokio::test]
async fn sealing_a_large_act_reads_each_row_at_most_twice() {
    let scene = Scene::new().await;
    let (bulk, other) = (scene.client().await, scene.client().await);
    let before = entries_read(&other).await;
    run(&bulk, "begin").await;
    for _ in 0..10 {
        run(&bulk, &rows(5_000)).await;
        run(&other, &rows(10)).await;
        seal_all(&scene).await;
    }
    run(&bulk, "commit").await;
    let seals = seal_all(&scene).await;
    assert_eq!(seals.len(), 10, "{seals:#?}");
    let read = entries_read(&other).await - before;
    println!("{read} index entries read for 50,100 rows");
    // Besides the rows: one look for each transaction that was in flight, for each page.
    assert!(read <= 2 * 50_100 + 1_000, "{read} index entries read for 50,100 rows");
    assert_each_row_sealed_once(&scene, &other).await;
    scene.assert_sound().await;
}

/// Two large transactions whose ids alternate, both late, beside young rows: parts keep the order of ids.
#[tokio::test]
async fn late_rows_of_several_transactions_are_merged_in_the_order_of_their_ids() {
    let scene = Scene::new().await;
    let (one, two, other) = (scene.client().await, scene.client().await, scene.client().await);
    run(&one, "begin").await;
    run(&two, "begin").await;
    for _ in 0..4 {
        run(&one, &rows(1_500)).await;
        run(&two, &rows(1_500)).await;
        run(&other, &rows(3)).await;
    }
    seal_all(&scene).await;
    run(&one, "commit").await;
    run(&two, "commit").await;
    run(&other, &rows(4_000)).await;
    let first = scene.store.seal_journal().await.expect("seal").expect("rows wait");
    assert_eq!(first.rows, SEAL_ROWS_MAX);
    // Unfinished: what is not sealed yet is the tail, late and young rows alike.
    let report = audit::verify(&scene.store, None, |_| {}).await.expect("verify");
    assert_eq!((report.rows, report.tail, report.findings.len()), (5_012, 11_000, 0), "{report:#?}");
    // New rows do not get in between.
    run(&other, &rows(10)).await;
    let rest = seal_all(&scene).await;
    assert_eq!(rest.iter().map(|seal| seal.rows).sum::<i64>(), 11_010);
    assert_eq!(rest[0].rows + rest[1].rows, 7_000, "late rows first, by the snapshot they were found with: {rest:#?}");
    assert_each_row_sealed_once(&scene, &other).await;
    scene.assert_sound().await;
}

/// The sealer's connection is ended again and again, at a different moment each time; the next one continues.
#[tokio::test]
async fn a_killed_sealer_loses_one_part_at_most() {
    let scene = Scene::new().await;
    let (bulk, look) = (scene.client().await, scene.client().await);
    run(&bulk, "begin").await;
    run(&bulk, &rows(30_000)).await;
    run(&look, &rows(5)).await;
    seal_all(&scene).await;
    run(&bulk, "commit").await;
    let waits = "from pg_locks l join pg_database d on d.oid = l.database where d.datname = current_database() and l.locktype = 'relation'
        and l.relation = 'tenure.journal'::regclass and l.pid <> pg_backend_pid()";
    let (mut killed, mut sealed) = (0, 0);
    for round in 0..40 {
        let store = scene.store.clone();
        let sealing = tokio::spawn(async move { store.seal_journal().await });
        // Every round waits for a different number of looks at a sealer that has begun to read.
        for _ in 0..=(round % 5) {
            let _begun = number(&look, &format!("select count(*) {waits}")).await;
        }
        run(&look, &format!("select pg_terminate_backend(l.pid) {waits}")).await;
        match soon("seal", sealing).await.expect("no panic") {
            Ok(Some(seal)) => {
                sealed += seal.rows;
                assert!(seal.rows <= SEAL_ROWS_MAX, "{seal:?}");
            }
            Ok(None) => {}
            Err(error) => {
                assert!(error.is_passing(), "{error}");
                killed += 1;
            }
        }
    }
    assert!(killed > 0, "no sealer was killed in the middle");
    // A connection that was ended a moment ago may still be in the pool: the store reports it once and opens another.
    let mut ended_late = 0;
    loop {
        match scene.store.seal_journal().await {
            Ok(Some(seal)) => sealed += seal.rows,
            Ok(None) => break,
            Err(error) => {
                ended_late += 1;
                assert!(error.is_passing() && ended_late <= 5, "{error}");
            }
        }
    }
    assert!(sealed <= 30_000, "{sealed} rows sealed of 30,000");
    assert_each_row_sealed_once(&scene, &look).await;
    scene.assert_sound().await;
}

/// Random rows by random transactions that end in a random order, sealed at random moments.
#[tokio::test]
async fn rows_of_many_open_transactions_are_sealed_once_each_whatever_the_order() {
    let scene = Scene::new().await;
    let mut seed = 20_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push((scene.client().await, false));
    }
    let (mut unfinished, mut empty) = (0, 0);
    for _ in 0..300 {
        let chosen = usize::try_from(random(8)).expect("small");
        let (client, is_open) = &mut open[chosen];
        match (random(4), *is_open) {
            (0, true) => {
                run(client, if random(5) == 0 { "rollback" } else { "commit" }).await;
                *is_open = false;
            }
            (1, _) => {
                if let Some(seal) = scene.store.seal_journal().await.expect("seal") {
                    unfinished += i64::from(seal.rows >= FULL_SEAL_ROWS);
                    empty += i64::from(seal.rows == 0);
                }
            }
            (_, was_open) => {
                let count = if random(10) == 0 { 3_000 } else { 1 + u32::try_from(random(40)).expect("small") };
                run(client, &format!("{}{}", if was_open { "" } else { "begin; " }, rows(count))).await;
                *is_open = true;
            }
        }
    }
    for (client, is_open) in &open {
        if *is_open {
            run(client, "commit").await;
        }
    }
    seal_all(&scene).await;
    assert!(unfinished > 0 && empty > 0, "{unfinished} full seals, {empty} empty ones");
    assert_each_row_sealed_once(&scene, &open[0].0).await;
    scene.assert_sound().await;
}
