//! A run from its counts to the stones we sell.

use std::collections::BTreeSet;

use diamonds::markup::Markup;
use kit::testing::Place;
use tenure::{JobState, RunState, row};

use crate::bed::{Bed, listed};

kit::on_each_store! { diamonds::TABLES;
    a_catalogue_is_read_page_by_page_and_published_once,
}

/// Shows: S2.01 S2.04 S2.06 S2.08 S2.15 S2.22 S2.28 S2.29 S2.30 S2.35
async fn a_catalogue_is_read_page_by_page_and_published_once(place: Place) {
    let bed = Bed::with(place, 2_000, &[("DIAMONDS_PARTITION_SIZE", "300")]).await;
    let run = bed.schedule().await;
    let partitions = bed.partitions(run).await;
    assert!(partitions.len() > 5 && partitions.len() < 20, "{} partitions", partitions.len());
    assert_eq!(partitions.iter().map(|it| it.expected.unwrap()).sum::<u64>(), 2_000);
    for page in bed.pages().await {
        let item: serde_json::Value = serde_json::from_str(page.payload.as_str()).unwrap();
        assert_eq!((item["offset"].as_u64(), item["limit"].as_u64()), (Some(0), Some(30)));
    }
    bed.work().await;

    let record = bed.run(run).await;
    assert_eq!((record.run.state, record.run.done, record.rows), (RunState::Succeeded, partitions.len() as u64, 2_000));
    assert_eq!(bed.raw().await, listed(&bed.world), "every stone, once, as it was told");
    // One call a page: full ones, and one that is shorter for each partition.
    let pages: u64 = partitions.iter().map(|it| it.expected.unwrap() / 30 + 1).sum();
    assert_eq!((bed.calls(), bed.pages().await.len() as u64), (pages, pages));
    let done = bed.work_done().await;
    assert_eq!(done.len(), partitions.len());
    assert_eq!(done.iter().map(|it| it["recordsProcessed"].as_u64().unwrap()).sum::<u64>(), 2_000);
    assert!(done.iter().all(|it| it["status"] == "completed" && it["traceId"] == "trace-7"), "{done:?}");

    let consolidate = bed.show(record.consolidate.unwrap()).await;
    assert_eq!((consolidate.summary.state, consolidate.attempts.len()), (JobState::Succeeded, 1));
    let told: serde_json::Value = serde_json::from_str(consolidate.payload.as_str()).unwrap();
    assert_eq!((told["runId"].as_str(), told["traceId"].as_str()), (Some(run.to_string().as_str()), Some("trace-7")));
    let (sold, markup) = (listed(&bed.world), Markup::standard());
    let select = "select supplier_stone_id, price_cents, retail_cents from diamonds_stone";
    let rows = bed.place.database.query(select, row![]).await.unwrap();
    let ids: BTreeSet<String> = rows.iter().map(|row| row.get("supplier_stone_id").unwrap()).collect();
    assert_eq!((rows.len(), ids.len()), (2_000, 2_000));
    for row in &rows {
        let stone = &sold[&row.get::<String>("supplier_stone_id").unwrap()];
        assert_eq!(row.get::<u64>("price_cents").unwrap(), stone.price_cents);
        assert_eq!(row.get::<u64>("retail_cents").unwrap(), markup.retail_cents(stone));
    }
}
