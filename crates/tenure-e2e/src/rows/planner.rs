//! F28: the planner is forced into every plan it knows: a claim takes the right number of jobs under each.
//!
//! `update … where id in (select … limit 1 for update skip locked)` was seen to take 20 of 20 rows under a nested loop. So
//! such a claim is run beside the shipped one, and must take too many somewhere, or the row shows nothing.

use super::session::Session;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F28",
    fault: "hostile planner settings",
    injected: "the shipped claim under all combinations of nine `enable_*` switches in three plan modes, with and without statistics; a naive claim beside it",
    run: |size| Box::pin(run(size)),
};

const SWITCHES: [&str; 9] = [
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_hashagg",
    "enable_material",
    "enable_sort",
    "enable_seqscan",
    "enable_indexscan",
    "enable_tidscan",
];
const MODES: [&str; 3] = ["auto", "force_generic_plan", "force_custom_plan"];
/// Jobs that are due; as many lie in the future.
const DUE: usize = 24;
const FILL: &str = "alter table tenure.ready set (autovacuum_enabled = off); alter table tenure.job set (autovacuum_enabled = off);
    with j as (
      insert into tenure.job (id, created_at, run_at, tenant, queue, priority, kind, payload)
      select tenure.new_id(), now(), now() + case when i % 2 = 1 then interval '1 day' else i % 5 * interval '-1 s' end, 1, 1, i % 4, 'noop', '{}'
      from generate_series(1, 48) i returning id, run_at, priority
    )
    insert into tenure.ready (run_at, job, queue, priority) select run_at, id, 1, priority from j";
const NAIVE: &str = "delete from tenure.ready where job in (
    select job from tenure.ready where queue = 1 and line = '' and run_at <= now()
    order by queue, line, priority, run_at, job limit 1 for update skip locked
  ) returning job";

async fn run(size: Size) -> Report {
    let mut stage = Stage::postgres().await;
    stage.sql(FILL);
    let session = Session::open(&stage.place.text(), "set jit = off").await;
    session.prepare_claim().await;
    // The small run takes every eighth combination, and another one in each mode.
    let step = size.pick(8, 1);
    let (mut combinations, mut wrong, mut naive) = (0, Vec::new(), 0);
    for statistics in [false, true] {
        if statistics {
            session.run("analyze").await;
        }
        for (m, mode) in MODES.iter().enumerate() {
            for bits in (m..1 << SWITCHES.len()).step_by(step) {
                let setting = setting(mode, bits);
                // Every limit from 1 to more than is there comes up under many combinations.
                let limit = combinations % (DUE + 2) + 1;
                let script = format!("begin; {setting}; discard plans; {}; rollback", Session::claim(limit));
                let answers = session.ask(&script).await;
                let claimed = answers[answers.len() - 2].len();
                if claimed != limit.min(DUE) {
                    wrong.push(format!("{claimed} for {limit} under {setting}"));
                }
                let answers = session.ask(&format!("begin; {setting}; {NAIVE}; rollback")).await;
                naive += usize::from(answers[answers.len() - 2].len() > 1);
                combinations += 1;
            }
        }
    }
    session.run("delete from tenure.ready; delete from tenure.job").await;
    let (line, _) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    report.number(format!(
        "{combinations} combinations: as many jobs as asked for in {}, others in {}; the naive claim took too many in {naive}",
        combinations - wrong.len(),
        wrong.len()
    ));
    report.must(wrong.is_empty(), format!("never more than the limit: {:?}", wrong.first()));
    report.line(line);
    report.bite(naive, 1, "combinations under which the naive claim takes too many");
    report
}

fn setting(mode: &str, bits: usize) -> String {
    let off = SWITCHES.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0);
    let switches: String = off.map(|(_, switch)| format!("; set local {switch} = off")).collect();
    format!("set local plan_cache_mode = {mode}{switches}")
}
