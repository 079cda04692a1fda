//! Runs a case on a fresh store and looks at what it left behind.
//!
//! Whatever a case did, three things must hold after it: no invariant is broken, the journal can be sealed, and the
//! sealed journal replays through the lifecycle without a finding.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tenure_store::JournalStore;
use tenure_store::audit;
use tenure_store::clock::ManualClock;
use tokio::runtime::Builder;

use crate::fixture::{Fixture, START};

/// Real time after which a case counts as hanging.
pub const CASE_TIMEOUT: Duration = Duration::from_secs(60);

/// A case at work.
pub type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// A case; it panics when the store is wrong.
pub type CaseFn = fn(Fixture) -> CaseFuture;

/// A clock at the moment where every case begins.
pub fn clock_at_start() -> ManualClock {
    ManualClock::new(START)
}

/// Runs one case as a test: on a runtime of its own with two threads, on the store that `open` makes.
pub fn test<F: Future<Output = Fixture>>(case: &str, open: impl FnOnce(ManualClock) -> F) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let done = runtime.block_on(async { run_case(case, open(clock_at_start()).await).await });
    if let Err(why) = done {
        panic!("{why}");
    }
}

/// Runs one case of [`crate::CASES`]; a panic, a broken invariant or a hang is an error that says so.
pub async fn run_case(case: &str, fixture: Fixture) -> Result<(), String> {
    let (_, run) = crate::CASES.iter().find(|(name, _)| *name == case).ok_or(format!("there is no case {case}"))?;
    let name = fixture.name.clone();
    let failed = |why: String| format!("{case} on {name}: {why}");
    let task = tokio::spawn(run(fixture.clone()));
    let abort = task.abort_handle();
    match tokio::time::timeout(CASE_TIMEOUT, task).await {
        Ok(Ok(())) => check_after(&fixture).await.map_err(failed),
        Ok(Err(panic)) => Err(failed(panic_text(panic))),
        Err(_) => {
            abort.abort();
            Err(failed(format!("no end after {CASE_TIMEOUT:?}")))
        }
    }
}

/// What must hold after every case, and after everything else that was done to a store.
pub async fn check_after(fixture: &Fixture) -> Result<(), String> {
    let store = &fixture.store;
    let violations = store.find_violations(10).await.map_err(|why| format!("find violations: {why}"))?;
    if !violations.is_empty() {
        return Err(format!("invariants are broken: {violations:#?}"));
    }
    store.seal_journal().await.map_err(|why| format!("seal the journal: {why}"))?;
    let journal: &dyn JournalStore = &**store;
    let report = audit::verify(journal, None, |_| {}).await.map_err(|why| format!("verify the journal: {why}"))?;
    if !report.findings.is_empty() || report.tail > 0 {
        return Err(format!("the journal does not hold: {report:#?}"));
    }
    Ok(())
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was stopped".into() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "it panicked".into())
}
