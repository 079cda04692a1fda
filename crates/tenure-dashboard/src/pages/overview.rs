//! The overview: is everything well, and if not, where to look.
//!
//! Charts come from rollups, live counts from queues, and each panel leads to the page that has all of it. Nothing here
//! counts jobs that have ended.

mod figures;

use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::gate::{Admit, Why};
use tenure_core::{State as JobState, Timestamp};
use tenure_server::dead::Group;
use tenure_store::gate::{GateFilter, GateRecord};
use tenure_store::record::QueueRecord;
use tenure_store::run::{RunFilter, RunRecord};
use tenure_store::worker::{Standing, WorkerRecord};

use super::Shown;
use super::queues::is_unserved;
use super::runs::ended;
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};
use figures::Charts;

/// Lines of a panel.
const LINES: usize = 5;
/// Gates that are looked through for closed ones.
const GATES_MAX: u32 = 500;
/// Registered workers that are read, the last seen first.
const WORKERS_MAX: u32 = 1_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    within: String,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    within: Within,
    charts: Charts,
    tiles: Vec<Tile>,
    queues: Vec<QueueRecord>,
    runs: Vec<RunRecord>,
    dead: Vec<Group>,
    /// Operators see what is shared.
    shared: Option<Shared>,
}

/// What all tenants share.
struct Shared {
    workers: Vec<(WorkerRecord, Standing)>,
    closed: Vec<GateRecord>,
    health: Vec<Health>,
}

/// One line about how we do.
struct Health {
    is_good: bool,
    text: String,
    href: &'static str,
}

/// Jobs in one state.
struct Tile {
    state: &'static str,
    count: u64,
    about: String,
}

/// The time that charts show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Hour,
    Day,
    Week,
}

impl Within {
    const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    const fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    const fn time(self) -> Duration {
        match self {
            Self::Hour => Duration::from_secs(3_600),
            Self::Day => Duration::from_secs(86_400),
            Self::Week => Duration::from_secs(7 * 86_400),
        }
    }
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let within = Within::ALL.into_iter().find(|within| within.word() == asked.within).unwrap_or(Within::Hour);
    let sight = visit.sight(&None)?;
    let charts = Charts::read(desk.store(), &sight, within, visit.now).await?;
    let is_operator = visit.person.caller.tenant.is_none();
    let queues = if is_operator { desk.queues().await? } else { Vec::new() };
    let runs = RunFilter { sight: sight.clone(), open: true, limit: LINES as u32, ..RunFilter::default() };
    let runs = desk.store().list_runs(&runs).await?;
    let mut dead = desk.dead(&sight).await?.groups;
    dead.truncate(LINES);
    let shared = if is_operator { Some(shared(&desk, &visit, &queues).await?) } else { None };
    let tiles = tiles(&queues, &charts, within, is_operator);
    let frame = visit.frame("Overview", "overview");
    Ok(visit.show(&Overview { frame, within, charts, tiles, queues, runs, dead, shared }))
}

fn tiles(queues: &[QueueRecord], charts: &Charts, within: Within, is_operator: bool) -> Vec<Tile> {
    let sum = |count: fn(&QueueRecord) -> u64| queues.iter().map(count).sum::<u64>();
    let all = &charts.all;
    let lately = format!("in {}", within.word());
    let tile = |state: JobState, count, about: &str| Tile { state: state.as_str(), count, about: about.to_owned() };
    let mut tiles = Vec::new();
    if is_operator {
        let oldest = queues.iter().filter_map(|queue| queue.oldest_due).min();
        let oldest = oldest.map_or("now".to_owned(), |at| format!("oldest due {}", bits::span(&charts.now.since(at))));
        let pending = sum(|queue| queue.due + queue.scheduled);
        let (waiting, retryable) = (sum(|queue| queue.waiting), sum(|queue| queue.retryable));
        tiles.push(tile(JobState::Waiting, waiting, "to be opened"));
        tiles.push(tile(JobState::Queued, pending.saturating_sub(waiting + retryable), &oldest));
        tiles.push(tile(JobState::Retryable, retryable, "to be tried again"));
        tiles.push(tile(JobState::Running, sum(|queue| queue.running), "now"));
    }
    tiles.push(tile(JobState::Succeeded, all.succeeded, &lately));
    tiles.push(tile(JobState::Failed, all.failed, &lately));
    tiles.push(tile(JobState::Dead, all.dead, &lately));
    tiles.push(tile(JobState::Canceled, all.canceled, &lately));
    tiles
}

async fn shared(desk: &Desk, visit: &Visit, queues: &[QueueRecord]) -> Result<Shared, crate::frame::Trouble> {
    let workers = desk.store().list_workers(WORKERS_MAX).await?;
    let workers: Vec<_> = workers
        .into_iter()
        .map(|worker| {
            let standing = Standing::of(&worker, visit.now);
            (worker, standing)
        })
        .filter(|(_, standing)| standing.is_there())
        .collect();
    let gates = desk.store().list_gates(&GateFilter { limit: GATES_MAX, ..GateFilter::default() }).await?;
    let is_all = gates.len() < GATES_MAX as usize;
    let is_closed = |gate: &GateRecord| {
        matches!(gate.admit, Admit::Closed { why: Why::Open | Why::Probing | Why::Paused | Why::Held, .. })
    };
    let closed: Vec<GateRecord> = gates.into_iter().filter(is_closed).collect();
    let health = health(&workers, &closed, is_all, queues, visit);
    Ok(Shared { workers, closed, health })
}

fn health(
    workers: &[(WorkerRecord, Standing)],
    closed: &[GateRecord],
    is_all: bool,
    queues: &[QueueRecord],
    visit: &Visit,
) -> Vec<Health> {
    let line = |is_good, text: String, href| Health { is_good, text, href };
    let paused: Vec<&str> = queues.iter().filter(|queue| queue.paused).map(|queue| queue.name.as_str()).collect();
    let breakers = closed.iter().filter(|gate| gate.gate.open_until.is_some()).count();
    let late = queues.iter().filter(|queue| !queue.paused).filter_map(|queue| queue.oldest_due).min();
    let late = late.map(|at| visit.now.since(at)).unwrap_or_default();
    let unserved: Vec<&QueueRecord> =
        queues.iter().filter(|queue| is_unserved(queue, workers.iter().map(|(worker, _)| worker), visit.now)).collect();
    let served = line(unserved.is_empty(), "Every queue with due jobs has a worker".to_owned(), "/queues");
    let mut lines: Vec<Health> = unserved.iter().take(LINES).map(|queue| unserved_line(queue, visit.now)).collect();
    match unserved.len().saturating_sub(LINES) {
        0 if lines.is_empty() => lines.push(served),
        0 => {}
        more => lines.push(line(false, format!("{} more without a worker", bits::many(more, "queue")), "/queues")),
    }
    lines.extend([
        line(
            !workers.is_empty(),
            if workers.is_empty() {
                "No worker is there".to_owned()
            } else {
                format!("{} there", bits::many(workers.len(), "worker"))
            },
            "/workers",
        ),
        line(
            breakers == 0,
            if breakers == 0 {
                if is_all { "Every breaker is closed" } else { "No breaker of the first 500 gates is open" }.to_owned()
            } else {
                format!("{} open", bits::many(breakers, "breaker"))
            },
            "/gates",
        ),
        line(
            paused.is_empty(),
            if paused.is_empty() { "No queue is paused".to_owned() } else { format!("Paused: {}", paused.join(", ")) },
            "/queues",
        ),
        line(
            late < Duration::from_secs(60),
            if late.is_zero() {
                "Nothing is late".to_owned()
            } else {
                format!("The longest wait is {}", bits::span(&late))
            },
            "/queues",
        ),
    ]);
    lines
}

fn unserved_line(queue: &QueueRecord, now: Timestamp) -> Health {
    let oldest = queue.oldest_due.map(|due| format!(", the oldest for {}", bits::span(&now.since(due))));
    let text = format!(
        "No worker serves queue {}: {} due{}",
        queue.name,
        bits::many(queue.due, "job"),
        oldest.unwrap_or_default()
    );
    Health { is_good: false, text, href: "/queues" }
}

impl Overview {
    fn tabs(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        Within::ALL
            .into_iter()
            .map(|within| (within.word(), format!("/?within={}", within.word()), within == self.within))
    }

    fn now(&self, gate: &GateRecord) -> Markup {
        bits::gate_now(gate)
    }

    /// The queues that have most to do.
    fn busy(&self) -> Vec<&QueueRecord> {
        let mut queues: Vec<&QueueRecord> = self.queues.iter().collect();
        queues.sort_by_key(|queue| std::cmp::Reverse(queue.due + queue.running + queue.scheduled));
        queues.truncate(LINES + 1);
        queues
    }
}
