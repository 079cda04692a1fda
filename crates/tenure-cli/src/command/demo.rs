//! `tenure demo`: a small shop on one SQLite file, run by real worker processes, two of which come to harm.
//!
//! # Layout
//! - `stage`: the temporary directory and the store in it
//! - `kinds`, `orders`: what the shop does, and what it has to do
//! - `part`, `crew`: a worker process from inside, and from outside
//! - `story`, `source`, `crash`, `catalogue`, `stale`: what happens, each step waiting for facts
//! - `outlet`, `dashboard`: another tenant, so that there is something to see; and where it is seen
//! - `watch`, `board`: what is known, read from the journal
//! - `screen`, `frame`, `styled`: what is seen meanwhile
//! - `proof`, `summary`: what was seen at the end
//! - `products`: the products of `apps/`, shown instead of the shop

mod board;
mod catalogue;
mod crash;
mod crew;
mod dashboard;
mod frame;
mod kinds;
mod orders;
mod outlet;
mod part;
mod products;
mod proof;
mod screen;
mod source;
mod stage;
mod stale;
mod story;
mod styled;
mod summary;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;

use super::Answer;
use crate::failure::{Failure, exit};
use crate::follow::Follow;
use crate::output::Output;
use board::Board;
use dashboard::Dashboard;
use outlet::Outlet;
use part::PartArgs;
use proof::Proof;
use screen::Screen;
use stage::Stage;
use story::Story;

const EXAMPLES: &str = "\
Examples:
  tenure demo           watch it live; after the story orders keep coming until Ctrl-C
  tenure demo --once    end when everything was shown
  tenure demo --json    the result as one JSON object
  tenure demo coins     one of the products in apps/, with its simulated outside world
  tenure demo all --once --json

What happens: a shop's jobs on one SQLite file in a temporary directory, worked on by several processes of this
program. One is killed with -9 while it runs several jobs, and others finish them. One is frozen past its lease
and woken while another process runs its job, and its late report is refused. Jobs fail and are tried again, fail
for good, die, are canceled, snoozed, delayed, found by their unique key. A source that jobs share goes down: its
breaker opens, and a probe closes it. A catalogue comes in page by page and is published once. At the end the
journal is verified.
Meanwhile the dashboard shows all of it on http://127.0.0.1:7400 (on another port when that one is taken).
Nothing is needed and nothing is kept. Without a terminal it ends by itself, like --once.

Exit codes:
  0  everything was seen
  1  something was not";

/// How long a chapter stays on a terminal at least.
const BREATH: Duration = Duration::from_millis(1_500);

/// See jobs survive killed and frozen workers, live, in a few seconds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// What to show instead of the shop: coins, links, diamonds, tasks, passport, or all of them
    #[arg(value_name = "PRODUCT", hide_possible_values = true)]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(products::names()))]
    product: Option<String>,
    /// End when everything was shown, also on a terminal
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    part: PartArgs,
}

pub(crate) fn run(args: &DemoArgs, out: &mut Output) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    let ran = runtime.block_on(async {
        match (&args.part.part, &args.product) {
            (Some(name), _) => part::run(&args.part, name).await,
            (None, Some(product)) => products::play(product, args.once, out).await,
            (None, None) => play(args.once, out).await,
        }
    });
    // What still runs after an error must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ran
}

async fn play(once: bool, out: &mut Output) -> Result<Answer, Failure> {
    // From the first moment on, so that nothing is left behind by an early Ctrl-C.
    let follow = Follow::begin()?.with_hangup()?;
    let mut audience = Audience { screen: Screen::new(out), board: Board::new(), out, follow };
    let is_live = audience.screen.is_live();
    let board = audience.board.clone();
    let stage = Arc::new(Stage::open().await?);
    let outlet = tokio::select! {
        outlet = Outlet::open(&stage) => outlet?,
        () = audience.watch() => return Ok(stopped(audience, once)),
    };
    let dashboard = Dashboard::open(&stage.store);
    board.open_dashboard(dashboard.as_ref().map(|dashboard| dashboard.url.as_str()));
    // Ends when dropped.
    let mut watching = JoinSet::new();
    watching.spawn(watch::follow(Arc::clone(&stage.store), board.clone()));
    let breath = if is_live { BREATH } else { Duration::ZERO };
    let mut story = Story::begin(Arc::clone(&stage), board.clone(), breath).await?;
    let told = tokio::select! {
        told = story.tell() => told.map(|()| true)?,
        () = audience.watch() => false,
    };
    if !told {
        return Ok(stopped(audience, once));
    }
    if is_live && !once {
        tokio::select! {
            went = story.go_on() => went?,
            () = audience.watch() => {}
        }
    }
    let done = tokio::select! {
        done = story.wind_up() => done?,
        // Once more: somebody does not want to wait for the summary.
        () = audience.watch() => return Ok(if once { Answer::Findings } else { Answer::Done }),
    };
    if let Some(dashboard) = dashboard {
        dashboard.close().await;
    }
    outlet.close().await;
    let took = board.look().began.elapsed();
    let proof = Proof::read(&*stage.store, &stage.file, done).await?;
    let Audience { screen, out, .. } = audience;
    screen.finish(&board, out);
    if out.is_json() {
        out.json(&summary::to_json(&proof, took))?;
    } else {
        summary::print(&proof, took, out);
    }
    Ok(if proof.is_kept() { Answer::Done } else { Answer::Findings })
}

/// Somebody has seen enough before the end.
fn stopped(audience: Audience<'_>, once: bool) -> Answer {
    let Audience { screen, out, .. } = audience;
    drop(screen);
    out.line("Stopped before everything was shown; nothing is left behind.");
    if once { Answer::Findings } else { Answer::Done }
}

/// Whoever looks, and can stop it.
struct Audience<'o> {
    screen: Screen,
    board: Board,
    out: &'o mut Output,
    follow: Follow,
}

impl Audience<'_> {
    /// Shows what happens until somebody stops it, or nobody can see it any more.
    async fn watch(&mut self) {
        tokio::select! {
            () = self.screen.show(&self.board, self.out) => {}
            () = self.follow.stopped() => {}
        }
    }
}
