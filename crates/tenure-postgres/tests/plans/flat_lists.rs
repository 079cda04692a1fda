//! A page of a list costs the page, beside a million finished jobs.

use tenure_postgres::statement::{self, Statement};

use crate::database::Database;
use crate::explain::Cost;
use crate::flat::fill;
use crate::session::{LONG, Session};

/// Jobs on a page.
const PAGE: u64 = 20;
/// Somewhere among the finished jobs.
const MIDDLE: &str = "'01900000-0000-7000-8000-000000080000'";

#[tokio::test]
async fn flat_lists_beside_a_full_house() {
    let database = Database::new().await;
    fill(&database);
    database.sql("analyze");
    let session = Session::open(&database, LONG).await;
    for mode in ["auto", "force_generic_plan", "force_custom_plan"] {
        session.run(&format!("set plan_cache_mode = {mode}; deallocate all")).await;
        // Any job, newest first and from the middle; succeeded ones from there; queued; dead, likewise.
        let pages =
            |before: &str, more: &str| format!("(null, 'default', null, {before}, {PAGE}, null, null, null, {more})");
        // And created in some time, of which the ids tell where it is.
        let within = "'01900000-0000-7000-8000-000000010000', now() - interval '1 day', now() + interval '1 day'";
        let within = format!("(null, 'default', null, {MIDDLE}, {PAGE}, {within}, false)");
        let calls = [pages("null", "false"), pages(MIDDLE, "false"), pages(MIDDLE, "true"), within];
        page(&session, statement::LIST_JOBS, &calls).await;
        page(&session, statement::LIST_READY, &[pages("null", "0::smallint")]).await;
        page(&session, statement::LIST_UNSUCCESSFUL, &[pages("null", "4::smallint"), pages(MIDDLE, "4::smallint")])
            .await;
    }
}

/// Asks often enough that `auto` has made up its mind, then measures.
async fn page(session: &Session, statement: Statement, calls: &[String]) {
    session.prepare(statement).await;
    for parameters in calls {
        let call = format!("{}{parameters}", statement.name);
        for _ in 0..6 {
            session.run(&format!("execute {call}")).await;
        }
        let cost = Cost::of(session, &call).await;
        println!("{call}: {cost:?}");
        assert_eq!(cost.answered, PAGE, "{call}: {cost:?}");
        // A row of the page is met in at most three tables, and a few are met in vain.
        assert!(cost.visited <= 4 * PAGE, "{call}: {cost:?}");
        assert!(cost.buffers <= 500, "{call}: {cost:?}");
        assert!(!cost.has_seq_scan(), "{call}: {cost:?}");
    }
}
