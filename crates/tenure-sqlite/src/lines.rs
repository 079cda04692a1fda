//! The lines of a queue: which have something in them, and what each may give to a claim.

use std::time::Instant;

use rusqlite::named_params;
use tenure_core::gate::{Admit, GateRule};
use tenure_core::name::{GateName, QueueName};
use tenure_core::turns::Share;
use tenure_core::{Invalid, LeaseNo, Line, Priority, WorkerId};
use tenure_store::lease::ClaimJobs;
use tenure_store::lines::{LOOK_LINES_MAX, Lines, Served};

use crate::fault::{Result, corrupt};
use crate::gate::{self, OpenGate};
use crate::gate_rule::find_rule;
use crate::tx::Tx;

const HAS_DUE: &str = include_str!("sql/has_due.sql");
const NEXT_LINE: &str = include_str!("sql/next_line.sql");
const SET_LINED: &str = include_str!("sql/set_lined.sql");
const HAS_WEIGHTS: &str = include_str!("sql/has_weights.sql");
const TENANT_NAME: &str = include_str!("sql/tenant_name.sql");

/// One line's part in a claim: its share, its gate, and how much the gate allows.
pub(crate) struct Part {
    pub(crate) served: Served,
    pub(crate) gate: Option<OpenGate>,
    /// At most so many jobs.
    pub(crate) most: u32,
}

/// The claim of a queue with lines.
pub(crate) struct Round<'a> {
    pub(crate) lines: &'a Lines,
    pub(crate) name: &'a QueueName,
    pub(crate) queue: i64,
    pub(crate) by: WorkerId,
    looked: bool,
    /// When it began, as the book counts.
    began: u64,
}

impl<'a> Round<'a> {
    pub(crate) fn new(lines: &'a Lines, request: &'a ClaimJobs, queue: i64) -> Self {
        Self { lines, name: &request.queue, queue, by: request.worker, looked: false, began: lines.now() }
    }

    /// Divides what is left of a claim among the lines whose turn it is, under their gates' rules. Nothing when no line
    /// has more.
    pub(crate) fn divide(&mut self, tx: &Tx<'_>, left: u32) -> Result<Vec<Part>> {
        if left > 0 && !self.looked && self.lines.look_due(self.name) {
            self.look(tx)?;
        }
        let mut shares = self.lines.share(self.name, left, self.began);
        // What the known lines cannot give, others may have.
        if left > 0 && shares.is_empty() && !self.looked {
            self.look(tx)?;
            shares = self.lines.share(self.name, left, self.began);
        }
        shares.into_iter().map(|share| Part::open(tx, share, self.by)).collect()
    }

    fn look(&mut self, tx: &Tx<'_>) -> Result<()> {
        self.looked = true;
        let (began, after) = (Instant::now(), self.lines.look_after(self.name));
        let (found, stopped) = find_due(tx, self.queue, after.as_ref(), LOOK_LINES_MAX)?;
        let weighted = tx.one(HAS_WEIGHTS, &[], |_| Ok(()))?.is_some();
        let weigh = |line: Line| Ok((line.clone(), if weighted { weight(tx, &line)? } else { 1 }));
        let found = found.into_iter().map(weigh).collect::<Result<_>>()?;
        self.lines.learn(self.name, after.as_ref(), found, stopped, began.elapsed());
        Ok(())
    }
}

impl Part {
    fn open(tx: &Tx<'_>, share: Share, by: WorkerId) -> Result<Self> {
        let unreadable = |refused: Invalid| corrupt(format!("a line leads through no gate: {refused}"));
        let gate = share.line.gate().map(GateName::new).transpose().map_err(unreadable)?;
        let gate = gate.map(|gate| gate::open(tx, &gate, Some(by))).transpose()?;
        let mut part = Self { most: share.jobs, served: Served { share, took: 0, closed: None }, gate };
        part.ask(tx);
        Ok(part)
    }

    /// What the gate allows.
    fn ask(&mut self, tx: &Tx<'_>) {
        let Some(open) = &self.gate else { return };
        match open.gate.admit(&open.rule, tx.now) {
            Admit::Open(most) => self.most = self.served.share.jobs.min(most),
            Admit::Closed { until, .. } => {
                self.most = 0;
                self.served.closed = Some(until.map(|until| until.since(tx.now)));
            }
        }
    }

    /// So many jobs of it were found, and so many of those are taken under `lease`.
    pub(crate) fn take(&mut self, tx: &Tx<'_>, found: u32, jobs: u32, lease: LeaseNo) -> Result<()> {
        self.served.took = found;
        let most = self.most;
        let Some(open) = self.gate.as_mut().filter(|_| jobs > 0) else { return Ok(()) };
        open.gate.take(&open.rule, jobs, lease, tx.now);
        open.save(tx)?;
        if found == most && most < self.served.share.jobs {
            self.ask(tx);
        }
        Ok(())
    }
}

/// A queue has more lines than one from now on.
pub(crate) fn set_lined(tx: &Tx<'_>, queue: i64) -> Result<()> {
    tx.execute(SET_LINED, named_params! { ":queue": queue }).map(|_| ())
}

/// Lines behind `after` that have something due, of the first `most`; and where it stopped, if there may be more.
pub(crate) fn find_due(
    tx: &Tx<'_>,
    queue: i64,
    after: Option<&Line>,
    most: usize,
) -> Result<(Vec<Line>, Option<Line>)> {
    let (mut found, mut looked) = (Vec::new(), 1);
    // The line of jobs without a gate has no text and sorts before all others.
    let first = Line::new(None, None);
    if after.is_none() && has_due(tx, queue, &first)? {
        found.push(first.clone());
    }
    let mut at = after.cloned().unwrap_or(first);
    while looked < most
        && let Some(line) = next(tx, queue, &at)?
    {
        looked += 1;
        if has_due(tx, queue, &line)? {
            found.push(line.clone());
        }
        at = line;
    }
    Ok((found, (looked == most).then_some(at)))
}

fn has_due(tx: &Tx<'_>, queue: i64, line: &Line) -> Result<bool> {
    for priority in Priority::ALL {
        let params = named_params! {
            ":queue": queue, ":line": line.as_str(), ":priority": priority.get(), ":now": tx.now.as_micros(),
        };
        if tx.one(HAS_DUE, params, |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn next(tx: &Tx<'_>, queue: i64, after: &Line) -> Result<Option<Line>> {
    let params = named_params! { ":queue": queue, ":after": after.as_str() };
    tx.one(NEXT_LINE, params, |row| Ok(Line::from_store(&row.get::<_, String>(0)?)))
}

/// The share of a line: its gate's, or what a rule for `tenant:<name>` says of a tenant's own.
fn weight(tx: &Tx<'_>, line: &Line) -> Result<u32> {
    let name = match (line.gate(), line.as_str().parse::<i64>()) {
        (Some(gate), _) => Some(gate.to_owned()),
        (None, Ok(tenant)) => tx.one(TENANT_NAME, named_params! { ":tenant": tenant }, |row| {
            Ok(format!("tenant:{}", row.get::<_, String>(0)?))
        })?,
        (None, Err(_)) => None,
    };
    let rule = match name.and_then(|name| name.parse::<GateName>().ok()) {
        Some(gate) => find_rule(tx, &gate)?.map(|(_, rule)| rule),
        None => None,
    };
    Ok(rule.unwrap_or_else(GateRule::default).weight)
}
