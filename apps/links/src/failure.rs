//! [`record`]: what is written down of an attempt that failed, and the verdict about it.
//!
//! An attempt is written down once: its job and its lease's number are the key. So a domain's 403s in a row are counted by
//! attempts, across processes and restarts.

use tenure::{Ctx, Fail, JobId, StoreError, Tx, row};

use crate::link::LinkId;
use crate::verdict::{Met, Streak, Verdict};

/// An attempt that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    at: At,
    attempt: u32,
    link: LinkId,
    domain: String,
    met: Met,
    why: String,
}

impl Failure {
    /// The attempt at hand.
    pub fn new(ctx: &Ctx, link: LinkId, domain: String, met: Met, why: String) -> Self {
        Self { at: At::of(ctx), attempt: ctx.attempt().into(), link, domain, met, why }
    }
}

/// Which attempt says something.
#[derive(Debug, Clone, Copy)]
pub struct At {
    job: JobId,
    fence: i64,
}

impl At {
    /// The attempt at hand.
    pub fn of(ctx: &Ctx) -> Self {
        Self { job: ctx.job_id(), fence: ctx.fence().0 }
    }
}

/// Writes it down, counts what its domain does, and judges.
pub fn record(tx: &Tx<'_>, failure: &Failure) -> Result<Verdict, Fail> {
    let now = tx.now()?;
    let insert = "insert into link_failure (job, fence, domain, met, at) values ($1, $2, $3, $4, $5) \
                  on conflict (job, fence) do nothing";
    let domain = failure.domain.as_str();
    let is_new = tx.execute(insert, row![failure.at.job, failure.at.fence, domain, failure.met.to_string(), now])? == 1;
    let streak = count(tx, failure, is_new)?;
    let verdict = failure.met.judge(failure.attempt, streak);
    if let Some(reason) = verdict.block.filter(|_| is_new) {
        tx.execute(include_str!("sql/put_candidate.sql"), row![domain, reason.as_str(), now, failure.at.job])?;
    }
    let state = if verdict.is_dead { "doomed" } else { "open" };
    mark(tx, failure.at, &failure.link, state, &failure.why)?;
    Ok(verdict)
}

/// Writes down that a link must not be called at all.
pub fn forbid(tx: &Tx<'_>, at: At, link: &LinkId, why: &str) -> Result<(), Fail> {
    Ok(mark(tx, at, link, "doomed", why)?)
}

/// The streak of its domain, with this attempt in it.
fn count(tx: &Tx<'_>, failure: &Failure, is_new: bool) -> Result<Streak, Fail> {
    let domain = failure.domain.as_str();
    // The row is locked by this, whether it was there or not: who counts at the same time waits.
    let lock = "insert into link_domain (domain, streak) values ($1, 0) \
                on conflict (domain) do update set streak = link_domain.streak returning streak";
    let found = tx.query_first(lock, row![domain])?.ok_or_else(|| Fail::transient("a streak was not answered"))?;
    let before = Streak(found.get("streak")?);
    let after = if is_new { before.after(failure.met) } else { before };
    if after != before {
        tx.execute("update link_domain set streak = $2 where domain = $1", row![domain, after.0])?;
    }
    Ok(after)
}

/// What has ended stays as it is, and so does what a later attempt has said.
fn mark(tx: &Tx<'_>, at: At, link: &LinkId, state: &str, why: &str) -> Result<(), StoreError> {
    let params = row![link.as_str(), state, why, tx.now()?, at.job, at.fence];
    tx.execute(include_str!("sql/mark_link.sql"), params)?;
    Ok(())
}
