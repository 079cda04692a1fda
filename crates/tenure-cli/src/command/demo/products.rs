//! `tenure demo coins`: a product of `apps/`, or all of them together, on one file, with the dashboard beside them.
//!
//! A product tells its story by itself and says what it had to show. Here it gets its place (the store, a folder), an
//! audience, and at the end an audit of everything that happened.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::{Check, Env, Product, Show};
use serde_json::{Map, Value, json};
use tenure::Database;
use tenure_core::worker_loop::State;
use tenure_store::audit::verify;
use tenure_store::worker::WorkerRecord;
use tenure_store::{AdminStore, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::dashboard::Dashboard;
use super::stage::{self, TempDir};
use super::styled::Styled;
use crate::command::Answer;
use crate::command::audit::seal;
use crate::failure::{Failure, exit};
use crate::follow::Follow;
use crate::output::Output;
use crate::paint::Paint;

/// All of them together.
const ALL: &str = "all";
/// How long workers may take to end.
const QUIET_IN: Duration = Duration::from_secs(10);
/// More than all products start.
const WORKERS_MAX: u32 = 100;
/// Columns of the names before sentences.
const NAMES: usize = 10;

/// Every product, in the order of the seeds.
fn every() -> Vec<Box<dyn Product>> {
    vec![
        Box::new(coins::story::Demo),
        Box::new(links::story::Demo),
        Box::new(diamonds::story::Demo),
        Box::new(tasks::story::Demo),
        Box::new(passport::story::Demo),
    ]
}

/// What can be asked for: each by its name, and all of them.
pub(super) fn names() -> Vec<&'static str> {
    every().iter().map(|product| product.name()).chain([ALL]).collect()
}

/// What was shown by one product.
struct Shown {
    name: &'static str,
    show: Show,
    took: Duration,
}

/// Shows a product, or all.
pub(super) async fn play(name: &str, once: bool, out: &mut Output) -> Result<Answer, Failure> {
    let mut follow = Follow::begin()?.with_hangup()?;
    let dir = TempDir::new()?;
    let file = stage::store(dir.path())?;
    file.migrate().await?;
    let store: Arc<dyn Store> = Arc::new(file.clone());
    let dashboard = Dashboard::open(&store);
    if let Some(dashboard) = &dashboard {
        tell(out, "demo", &format!("The dashboard is open: {}", dashboard.url))?;
    }
    let wanted: Vec<Box<dyn Product>> =
        every().into_iter().filter(|product| name == ALL || product.name() == name).collect();
    let (heard, mut sentences) = mpsc::unbounded_channel();
    let mut showing = JoinSet::new();
    for product in wanted {
        tell(out, product.name(), product.says())?;
        showing.spawn(show(&*product, file.clone().into(), &dir, heard.clone())?);
    }
    drop(heard);
    let mut shown = Vec::new();
    while !showing.is_empty() {
        tokio::select! {
            () = follow.stopped() => {
                out.line("Stopped before everything was shown; nothing is left behind.");
                return Ok(if once { Answer::Findings } else { Answer::Done });
            }
            Some((name, sentence)) = sentences.recv() => tell(out, name, &sentence)?,
            Some(ended) = showing.join_next() => shown.push(ended.map_err(|error| lost(&error))??),
        }
    }
    while let Ok((name, sentence)) = sentences.try_recv() {
        tell(out, name, &sentence)?;
    }
    shown.sort_by_key(|shown: &Shown| names().iter().position(|name| *name == shown.name));
    if out.is_live() && !once {
        print(&shown, out);
        let open = dashboard.as_ref().map(|dashboard| dashboard.url.as_str()).unwrap_or_default();
        tell(out, "demo", &format!("Ctrl-C ends it; until then it goes on, on {open}"))?;
        follow.stopped().await;
    }
    // Workers and sites first: nobody writes while the record is read.
    let shown: Vec<(&str, Vec<Check>, Duration)> =
        shown.into_iter().map(|Shown { name, show, took }| (name, show.checks, took)).collect();
    until_quiet(&*store).await?;
    if let Some(dashboard) = dashboard {
        dashboard.close().await;
    }
    finish(&*store, shown, once, out).await
}

/// Waits until every worker that was heard of has said its last word, but not for one that cannot.
async fn until_quiet(store: &dyn Store) -> Result<(), Failure> {
    let is_at_work = |worker: &WorkerRecord| worker.beat.as_ref().is_some_and(|beat| beat.state != State::Stopped);
    let since = Instant::now();
    while since.elapsed() < QUIET_IN && store.list_workers(WORKERS_MAX).await?.iter().any(is_at_work) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// One product's show, as a task.
fn show(
    product: &dyn Product,
    database: Database,
    dir: &TempDir,
    heard: mpsc::UnboundedSender<(&'static str, String)>,
) -> Result<impl Future<Output = Result<Shown, Failure>> + Send + use<>, Failure> {
    let (name, began) = (product.name(), Instant::now());
    let dir = dir.path().join(name);
    let no_folder = |error| Failure::new("demo", exit::STORE, "no folder for a product").caused_by(&error);
    std::fs::create_dir(&dir).map_err(no_folder)?;
    // Whoever listened is gone when the demo was stopped.
    let tell = move |sentence: &str| drop(heard.send((name, sentence.to_owned())));
    let showing = product.show(kit::Stage::new(database, dir, Env::of_process(), tell));
    Ok(async move {
        let failed = |error: kit::BoxError| Failure::new("demo", exit::REFUSED, format!("{name}: {error}"));
        Ok(Shown { name, show: showing.await.map_err(failed)?, took: began.elapsed() })
    })
}

/// Audits what happened, and says what was seen.
async fn finish(
    store: &dyn Store,
    shown: Vec<(&str, Vec<Check>, Duration)>,
    once: bool,
    out: &mut Output,
) -> Result<Answer, Failure> {
    seal(store).await?;
    let audit = verify(store, None, |_| ()).await?;
    let violations = store.find_violations(10).await?.len();
    let (rows, seals) = (audit.rows, audit.seals);
    let verified = audit.findings.is_empty() && seals > 0 && violations == 0;
    let holds = verified && shown.iter().all(|(_, checks, _)| checks.iter().all(|check| check.holds));
    if out.is_json() {
        let products: Map<String, Value> = shown.iter().map(|one| (one.0.to_owned(), to_json(one))).collect();
        let audit = json!({ "verified": verified, "rows": rows, "seals": seals, "violations": violations });
        out.json(&json!({ "holds": holds, "products": products, "audit": audit }))?;
    } else {
        if once || !out.is_live() {
            shown.iter().for_each(|(name, checks, took)| print_checks(name, checks, *took, out));
        }
        let record = format!("{rows} rows under {seals} seals: every hash fits, every step is legal");
        print_check(&Check::new("the record of all of it", verified, record), out);
    }
    Ok(if holds { Answer::Done } else { Answer::Findings })
}

fn to_json((_, checks, took): &(&str, Vec<Check>, Duration)) -> Value {
    let holds = checks.iter().all(|check| check.holds);
    // Milliseconds are enough for anybody.
    let seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
    json!({ "holds": holds, "checks": checks, "seconds": seconds })
}

fn print(shown: &[Shown], out: &mut Output) {
    shown.iter().for_each(|Shown { name, show, took }| print_checks(name, &show.checks, *took, out));
}

fn print_checks(name: &str, checks: &[Check], took: Duration, out: &mut Output) {
    let line = Styled::new().paint(name, Paint::Bold).plain(format!(", {:.1} s", took.as_secs_f64()));
    out.line(line.render(usize::MAX, out.color()));
    checks.iter().for_each(|check| print_check(check, out));
}

fn print_check(check: &Check, out: &mut Output) {
    let (mark, paint) = if check.holds { ("✓", Paint::Green) } else { ("✗ not seen:", Paint::Red) };
    let line = Styled::new().plain("  ").paint(mark, paint).plain(" ").plain(&check.name);
    out.line(line.plain("  ").paint(&check.seen, Paint::Dim).render(usize::MAX, out.color()));
}

/// A sentence, as it comes.
fn tell(out: &mut Output, name: &str, sentence: &str) -> Result<(), Failure> {
    if out.is_json() {
        return Ok(());
    }
    let line = Styled::new().paint(name, Paint::Cyan).to(NAMES).plain(sentence).render(usize::MAX, out.color());
    out.line(line);
    out.flush()
}

fn lost(error: &tokio::task::JoinError) -> Failure {
    Failure::new("demo", exit::STORE, "a product was lost on the way").caused_by(error)
}
