//! What is asked of schedules and told about them.
//!
//! ```text
//!   every worker, about once a second                        the store, one transaction
//!   due_schedules ──► decide: Timing::due(last, now) ──► fire_schedules ─► version still the one that was read?
//!        ▲  tenants     the fire, and when to look again        │  a batch    yes: last, look_at, fire row, job
//!        │  in turn                                             │             no:  nothing; another worker was faster
//!        └──────────────────────────────────────────────────────┘
//! ```
//! The times are computed here and nowhere else: no store reads a cron expression. What a store has to promise is S1 of
//! docs/ARCHITECTURE.md, and two things in it do so, each alone: the version moves by compare-and-set in the transaction
//! that stores the job, and (schedule, fire time) is a primary key.

use std::time::Duration;

use tenure_core::apply::Rules;
use tenure_core::name::{GateName, KindName, QueueName, ScheduleName, TenantName};
use tenure_core::new_job::Due;
use tenure_core::{Invalid, JobId, Json, NewJob, Priority, State, Timestamp, Timing};

use crate::error::StoreError;
use crate::operate::{BATCH_MAX, Word};
use crate::record::Sight;

/// Most schedules of one tenant.
pub const SCHEDULES_MAX: u32 = 1_000;
/// Fires that are kept of each schedule.
pub const FIRES_KEPT: u32 = 100;
/// Largest payload of a schedule, in bytes of JSON. Lists and the scheduler read the payloads of all their rows.
pub const SCHEDULE_PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Longest grace: after so long nobody waits for a fire any more.
pub const GRACE_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Due schedules that a store ranks by tenant in one look, the longest due first. With more than these due at once, the
/// tenants among the longest due take turns. The bound keeps one look cheap after a long outage.
pub const DUE_RANKED_MAX: u32 = 10_000;

/// A schedule is looked at at least so often, however rarely it fires: a new release may know other rules of its zone.
const LOOK_AGAIN: Duration = Duration::from_secs(86_400);
/// And one that cannot be read or stored so often: somebody may have mended it.
const MENDED: Duration = Duration::from_secs(60);
/// One whose queue is full so often: well within the grace of a fire.
const ROOM: Duration = Duration::from_secs(5);

/// A schedule's number, never given out again: another schedule of the same name has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduleId(pub i64);

/// Make a schedule or change it. It begins now: a new timing makes nothing up for the past.
#[derive(Debug, Clone)]
pub struct SetSchedule {
    /// Whose it is, and whose its jobs are.
    pub tenant: TenantName,
    /// Its name among its tenant's.
    pub name: ScheduleName,
    /// When it fires.
    pub timing: Timing,
    /// What each fire asks for.
    pub template: Template,
    /// Who and why.
    pub word: Word,
}

/// What each fire of a schedule asks for: a [`NewJob`] without what is a fire's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Where its jobs wait.
    pub queue: QueueName,
    /// What they ask for.
    pub kind: KindName,
    /// What their handler gets.
    pub payload: Json,
    /// How urgent they are.
    pub priority: Priority,
    /// The shared resource they pass, if any. One that lets a single job in keeps them from overlapping.
    pub gate: Option<GateName>,
    /// Limits and retry policy.
    pub rules: Rules,
}

/// What [`SetSchedule`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleSet {
    /// There was none of this name.
    Created,
    /// It is another one now.
    Changed,
    /// It was the same before: nothing is written.
    Same,
}

/// Pause a schedule, or resume it. Resumed, it goes on from now: what it would have fired meanwhile is not made up.
#[derive(Debug, Clone)]
pub struct PauseSchedule {
    /// Whose.
    pub tenant: TenantName,
    /// Which.
    pub name: ScheduleName,
    /// Pause, or resume.
    pub paused: bool,
    /// Who and why.
    pub word: Word,
}

/// Remove a schedule and its history. Jobs that it asked for stay.
#[derive(Debug, Clone)]
pub struct RemoveSchedule {
    /// Whose.
    pub tenant: TenantName,
    /// Which.
    pub name: ScheduleName,
    /// Who and why.
    pub word: Word,
}

/// Move a schedule on, as it was [decided](ScheduleRecord::decide).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireSchedule {
    /// Which.
    pub schedule: ScheduleId,
    /// As it was read: nothing happens when it is another one meanwhile.
    pub version: i64,
    /// The fire to store a job for; `None` when there is none.
    pub fire_at: Option<Timestamp>,
    /// The job's id, made by the caller, so that a repeated request is the same fire.
    pub job: JobId,
    /// There is nothing to do before this.
    pub look_at: Timestamp,
}

/// What [`FireSchedule`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// The job is stored; also when this very request had stored it before.
    Stored(JobId),
    /// There was nothing to fire, and it is looked at again later.
    Passed,
    /// No job is stored: another process was faster or is firing this schedule now, or it was changed, paused or removed,
    /// or this fire time has its job.
    Lost,
}

/// The answer to one [`FireSchedule`] of a batch: what it did, or why it was refused. A refused fire changes nothing.
pub type FireResult = Result<Fired, StoreError>;

/// What is due, and when there may be more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DueSchedules {
    /// To be decided now: tenants in turn, the longest due of each first.
    pub due: Vec<ScheduleRecord>,
    /// How long until another one has to be looked at; `None` when there is none.
    pub next_in: Option<Duration>,
}

/// One schedule as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRecord {
    /// Its number.
    pub id: ScheduleId,
    /// Grows with everything that happens to it.
    pub version: i64,
    /// Whose it is.
    pub tenant: TenantName,
    /// Its name.
    pub name: ScheduleName,
    /// When it fires; or why what is stored cannot be read. One bad row does not hide the others.
    pub timing: Result<Timing, Invalid>,
    /// What each fire asks for.
    pub template: Template,
    /// Whether it fires nothing.
    pub paused: bool,
    /// Why somebody paused it.
    pub pause_reason: Option<String>,
    /// Its last fire, or when it was made, changed or resumed.
    pub last: Timestamp,
    /// The store's clock.
    pub now: Timestamp,
}

/// One fire of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FireRecord {
    /// When it was due.
    pub fire_at: Timestamp,
    /// The job it asked for.
    pub job: JobId,
    /// Where that stands; `None` when it was pruned.
    pub state: Option<State>,
}

/// Which schedules to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Whose.
    pub sight: Sight,
    /// Only those after this one: the last of the page before.
    pub after: Option<(TenantName, ScheduleName)>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

impl Default for ScheduleFilter {
    fn default() -> Self {
        Self { sight: Sight::All, after: None, limit: 100 }
    }
}

impl ScheduleFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

impl DueSchedules {
    /// Refuses a batch that is empty or too large.
    pub fn check_limit(limit: u32) -> Result<(), Invalid> {
        crate::operate::check_batch(limit)
    }
}

impl FireSchedule {
    /// Refuses a batch that is too large and a batch that names a schedule twice: its second fire would be decided by
    /// what the first one changes.
    pub fn check_batch(batch: &[Self]) -> Result<(), Invalid> {
        if batch.len() > BATCH_MAX as usize {
            return Err(Invalid::new("fires", batch.len(), format!("at most {BATCH_MAX} in one call")));
        }
        let mut schedules: Vec<ScheduleId> = batch.iter().map(|fire| fire.schedule).collect();
        schedules.sort_unstable();
        match schedules.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(Invalid::new("fires", twice[0].0, "a schedule is in a batch once at most")),
            None => Ok(()),
        }
    }
}

impl Template {
    /// A job of `kind` with every default.
    pub fn new(kind: KindName, payload: Json) -> Self {
        Self::of(NewJob::new(JobId::from_parts(Timestamp::EPOCH, [0; 10]), kind, payload))
    }

    /// What is the same for every fire.
    pub fn of(job: NewJob) -> Self {
        let NewJob { queue, kind, payload, priority, gate, rules, .. } = job;
        Self { queue, kind, payload, priority, gate, rules }
    }

    /// The job of one fire.
    pub fn job(&self, id: JobId, tenant: TenantName, fire_at: Timestamp) -> NewJob {
        let Self { queue, kind, payload, priority, gate, rules } = self.clone();
        let due = Due::At(fire_at);
        NewJob { tenant, queue, priority, gate, rules, due, ..NewJob::new(id, kind, payload) }
    }
}

impl SetSchedule {
    /// The refusal of a tenant's schedule beyond [`SCHEDULES_MAX`].
    pub fn beyond_limit(&self) -> StoreError {
        let way_out = "remove one with `tenure schedules remove NAME`";
        StoreError::limit("schedules", &self.tenant, SCHEDULES_MAX, way_out)
    }

    /// Refuses a job that no enqueue would take, a payload that is too large for lists, and a grace that is none.
    pub fn check(&self) -> Result<(), Invalid> {
        self.template.payload.check_bytes("payload", SCHEDULE_PAYLOAD_BYTES_MAX)?;
        let id = JobId::from_parts(Timestamp::EPOCH, [0; 10]);
        self.template.job(id, self.tenant.clone(), Timestamp::EPOCH).check(Timestamp::EPOCH)?;
        if self.timing.grace > GRACE_MAX {
            let value = tenure_core::duration::format(self.timing.grace);
            return Err(Invalid::new("grace", value, "it is at most 365d"));
        }
        self.word.check()
    }
}

impl ScheduleRecord {
    /// The fire to come, which may be due; `None` when it is paused, cannot be read, or fires no more.
    pub fn next(&self) -> Option<Timestamp> {
        let timing = self.timing.as_ref().ok().filter(|_| !self.paused)?;
        let due = timing.due(self.last, self.now);
        due.fire.or(due.next)
    }

    /// What to do with it now; `job` is the id of the job, if one is to be stored.
    pub fn decide(&self, job: JobId) -> FireSchedule {
        let Ok(timing) = &self.timing else { return self.put_off(job) };
        let due = timing.due(self.last, self.now);
        let often = self.now.plus(LOOK_AGAIN);
        let look_at = due.next.map_or(often, |next| next.min(often));
        FireSchedule { schedule: self.id, version: self.version, fire_at: due.fire, job, look_at }
    }

    /// Nothing now, because it cannot be read or its job cannot be stored: it must not be in the way of the others.
    pub fn put_off(&self, job: JobId) -> FireSchedule {
        self.look_in(MENDED, job)
    }

    /// Nothing now, because its queue is full.
    pub fn wait_for_room(&self, job: JobId) -> FireSchedule {
        self.look_in(ROOM, job)
    }

    fn look_in(&self, time: Duration, job: JobId) -> FireSchedule {
        let look_at = self.now.plus(time);
        FireSchedule { schedule: self.id, version: self.version, fire_at: None, job, look_at }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::cron::Missed;

    use super::*;

    fn id() -> JobId {
        JobId::from_parts(Timestamp::EPOCH, [1; 10])
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse("at", &format!("2026-01-{text}Z")).expect("a moment")
    }

    fn record(cron: &str, last: &str, now: &str) -> ScheduleRecord {
        ScheduleRecord {
            id: ScheduleId(7),
            version: 3,
            tenant: TenantName::default(),
            name: ScheduleName::new("nightly").expect("a name"),
            timing: cron.parse().map(Timing::new),
            template: Template::new(KindName::new("noop").expect("a name"), Json::null()),
            paused: false,
            pause_reason: None,
            last: at(last),
            now: at(now),
        }
    }

    #[test]
    fn a_fire_is_decided_with_the_moment_to_look_again() {
        let due = record("0 3 * * *", "01T03:00:00", "02T03:00:10");
        let decided = due.decide(id());
        assert_eq!((decided.schedule, decided.version), (ScheduleId(7), 3));
        assert_eq!((decided.fire_at, decided.look_at), (Some(at("02T03:00:00")), at("03T03:00:00")));
        assert_eq!(due.next(), Some(at("02T03:00:00")), "it is due, and the next one all the same");
    }

    #[test]
    fn what_fires_rarely_is_looked_at_every_day() {
        let decided = record("0 3 31 * *", "01T03:00:00", "02T00:00:00").decide(id());
        assert_eq!((decided.fire_at, decided.look_at), (None, at("03T00:00:00")));
    }

    #[test]
    fn what_was_missed_is_passed_over_or_made_up() {
        let mut slept = record("0 3 * * *", "01T03:00:00", "05T09:00:00");
        assert_eq!(slept.decide(id()).fire_at, None);
        slept.timing = slept.timing.map(|timing| Timing { missed: Missed::Once, ..timing });
        assert_eq!(slept.decide(id()).fire_at, Some(at("05T03:00:00")));
    }

    #[test]
    fn what_cannot_be_read_fires_nothing_and_is_looked_at_again() {
        let unreadable = record("every day", "01T03:00:00", "02T03:00:10");
        let decided = unreadable.decide(id());
        assert_eq!((decided.fire_at, decided.look_at), (None, at("02T03:01:10")));
        assert_eq!(unreadable.next(), None);
    }

    #[test]
    fn a_paused_schedule_has_no_fire_to_come() {
        let paused = ScheduleRecord { paused: true, ..record("0 3 * * *", "01T03:00:00", "02T00:00:00") };
        assert_eq!(paused.next(), None);
    }

    #[test]
    fn a_batch_has_each_schedule_once_and_is_bounded() {
        let fire = |schedule| FireSchedule {
            schedule: ScheduleId(schedule),
            version: 1,
            fire_at: None,
            job: id(),
            look_at: at("01T00:00:00"),
        };
        let batch = |of: std::ops::Range<i64>| of.map(fire).collect::<Vec<_>>();
        assert!(FireSchedule::check_batch(&[]).is_ok());
        assert!(FireSchedule::check_batch(&batch(0..1_000)).is_ok());
        assert!(FireSchedule::check_batch(&batch(0..1_001)).is_err());
        assert!(FireSchedule::check_batch(&[fire(1), fire(2), fire(1)]).is_err());
    }

    #[test]
    fn a_template_is_a_job_without_what_is_a_fires_own() {
        let template = record("0 3 * * *", "01T03:00:00", "02T00:00:00").template;
        let tenant = TenantName::new("acme").expect("a name");
        let job = template.job(id(), tenant.clone(), at("02T03:00:00"));
        assert_eq!((job.id, &job.tenant, job.due), (id(), &tenant, Due::At(at("02T03:00:00"))));
        assert_eq!(Template::of(job), template);
    }
}
