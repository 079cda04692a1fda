//! [`Schedule`]: when a job is asked for again and again, and what a [`Client`] does with one.

use std::time::Duration;

use tenure_core::cron::Missed;
use tenure_core::{Backoff, GateName, Invalid, Priority, QueueName, ScheduleName, Timestamp, Timing};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::schedule::{
    FireRecord, PauseSchedule, RemoveSchedule, ScheduleFilter, ScheduleRecord, ScheduleSet, SetSchedule, Template,
};

use crate::client::Client;
use crate::job::{Job, to_new_job};
use crate::random;

/// When to ask for a job: a name, a cron expression, and whatever differs from the defaults. What was said wrongly is
/// refused when it is [set](Client::set_schedule), naming the field, and nothing is stored.
///
/// ```
/// # use tenure_worker::{Client, Job, Schedule};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Report { full: bool }
/// # impl Job for Report { const KIND: &'static str = "report"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = tenure_sqlite::SqliteStore::in_memory(Default::default())?;
/// # tenure_store::AdminStore::migrate(&store).await?;
/// # let client = Client::new(&store);
/// let nightly = Schedule::new("nightly", "0 0 3 * * *").zone("Europe/Berlin").make_up_missed();
/// client.set_schedule(nightly, Report { full: true }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is stored before it is given to `Client::set_schedule`"]
pub struct Schedule(Result<Draft, Invalid>);

#[derive(Debug, Clone)]
struct Draft {
    name: ScheduleName,
    timing: Timing,
    queue: Option<QueueName>,
    priority: Option<Priority>,
    gate: Option<GateName>,
    max_attempts: Option<u16>,
    backoff: Option<Backoff>,
}

impl Schedule {
    /// A schedule of this name that fires by a cron expression of five fields, or of six with seconds first, in UTC.
    pub fn new(name: &str, cron: &str) -> Self {
        let draft = || {
            Ok(Draft {
                name: name.parse()?,
                timing: Timing::new(cron.parse()?),
                queue: None,
                priority: None,
                gate: None,
                max_attempts: None,
                backoff: None,
            })
        };
        Self(draft())
    }

    /// Whose clock its times are read from: an IANA name such as `Europe/Berlin`.
    pub fn zone(self, zone: &str) -> Self {
        self.change(|draft| zone.parse().map(|zone| draft.timing.zone = zone))
    }

    /// Of the fires that nobody was there for, the latest is made up, once. Otherwise they are dropped.
    pub fn make_up_missed(self) -> Self {
        self.set(|draft| draft.timing.missed = Missed::Once)
    }

    /// A fire is missed when it is longer ago than this; a minute unless set.
    pub fn grace(self, grace: Duration) -> Self {
        self.set(|draft| draft.timing.grace = grace)
    }

    /// Another queue than its job's.
    pub fn queue(self, queue: &str) -> Self {
        self.change(|draft| queue.parse().map(|queue| draft.queue = Some(queue)))
    }

    /// How urgent its jobs are.
    pub fn priority(self, priority: Priority) -> Self {
        self.set(|draft| draft.priority = Some(priority))
    }

    /// The shared resource its jobs pass. One that lets a single job in keeps them from overlapping.
    pub fn gate(self, gate: &str) -> Self {
        self.change(|draft| gate.parse().map(|gate| draft.gate = Some(gate)))
    }

    /// Attempts of each job before a transient error is final.
    pub fn max_attempts(self, max: u16) -> Self {
        self.set(|draft| draft.max_attempts = Some(max))
    }

    /// When to try again.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.set(|draft| draft.backoff = Some(backoff))
    }

    fn set(self, set: impl FnOnce(&mut Draft)) -> Self {
        self.change(|draft| {
            set(draft);
            Ok(())
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Draft) -> Result<(), Invalid>) -> Self {
        if let Ok(draft) = &mut self.0
            && let Err(refused) = change(draft)
        {
            self.0 = Err(refused);
        }
        self
    }
}

impl Client {
    /// Makes a schedule that asks for `job` at each of its fire times, or changes it. The same again changes nothing, so
    /// every process may say so when it starts. A new timing begins now.
    pub async fn set_schedule<J: Job>(&self, schedule: Schedule, job: J) -> Result<ScheduleSet, StoreError> {
        let draft = schedule.0?;
        let mut template = Template::of(to_new_job(random::job_id_at(Timestamp::EPOCH), &job)?);
        template.gate = draft.gate;
        if let Some(queue) = draft.queue {
            template.queue = queue;
        }
        if let Some(priority) = draft.priority {
            template.priority = priority;
        }
        if let Some(max) = draft.max_attempts {
            let spare = template.rules.max_losses.saturating_sub(template.rules.max_attempts);
            (template.rules.max_attempts, template.rules.max_losses) = (max, max.saturating_add(spare));
        }
        if let Some(backoff) = draft.backoff {
            template.rules.backoff = backoff;
        }
        let (tenant, name, timing) = (self.tenant().clone(), draft.name, draft.timing);
        self.store().set_schedule(SetSchedule { tenant, name, timing, template, word: Word::default() }).await
    }

    /// Lets a schedule fire nothing until it is resumed.
    pub async fn pause_schedule(&self, name: &str) -> Result<(), StoreError> {
        self.switch_schedule(name, true).await
    }

    /// Lets a paused schedule go on from now; what it would have fired meanwhile is not made up.
    pub async fn resume_schedule(&self, name: &str) -> Result<(), StoreError> {
        self.switch_schedule(name, false).await
    }

    async fn switch_schedule(&self, name: &str, paused: bool) -> Result<(), StoreError> {
        let (tenant, name) = (self.tenant().clone(), name.parse()?);
        self.store().pause_schedule(PauseSchedule { tenant, name, paused, word: Word::default() }).await
    }

    /// Removes a schedule; the jobs it asked for stay.
    pub async fn remove_schedule(&self, name: &str) -> Result<(), StoreError> {
        let (tenant, name) = (self.tenant().clone(), name.parse()?);
        self.store().remove_schedule(RemoveSchedule { tenant, name, word: Word::default() }).await
    }

    /// This tenant's schedules by name, the first thousand of them.
    pub async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        let limit = tenure_store::operate::BATCH_MAX;
        self.store().list_schedules(&ScheduleFilter { sight: self.sight(), after: None, limit }).await
    }

    /// One schedule with its last fires, the newest first.
    pub async fn show_schedule(&self, name: &str) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        self.store().show_schedule(self.tenant(), &name.parse()?).await
    }
}
