//! The task runner in some ten seconds: a worker that died, tasks that are done and tasks that are not, an API that is
//! unwell for a moment, and a record that is whole.
//!
//! A lease lasts four seconds here instead of a minute; everything else is as it always is. That the database goes away
//! is not told: others may be shown on it at the same time. The tests take it away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kit::{BoxError, Check, Env, Product, Show, Showing, Stage};
use tenure::core::How;
use tenure::core::name::WorkerName;
use tenure::store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};
use tenure::webhooks::{MasterKeys, Secret};
use tenure::{Client, JobId, JobRecord, QueueName, StoreError, row};
use tokio::task::JoinSet;

use crate::callbacks::{connect, courier, disconnect, run_until};
use crate::path::merged;
use crate::settings::{Callbacks, Settings, this_machine};
use crate::state::{STEPS, Step, is_added, is_listed};
use crate::task::{Digest, Fetch, QUEUE, Report, Status, client};
use crate::traced::Traced;
use crate::usage::Usage;
use crate::worker::{set_lease, worker};
use crate::world::{Library, World};
use crate::{TABLES, audit};

/// A story that is not told by then will never be.
const PATIENCE: Duration = Duration::from_secs(120);
/// Documents that are fetched, by their number of words.
const WORDS: [usize; 8] = [120, 700, 40, 2_500, 1, 960, 333, 64];

/// Kinds of steps that workers take whatever else happens: to their first look, to a task, and through both reports.
const KINDS_MIN: usize = 8;

/// Shows the task runner.
pub struct Demo;

impl Product for Demo {
    fn name(&self) -> &'static str {
        "tasks"
    }

    fn says(&self) -> &'static str {
        "a task runner whose worker loop is seen at work: usage, callbacks, recovery, audit"
    }

    fn show(&self, stage: Stage) -> Showing {
        Box::pin(async move { tokio::time::timeout(PATIENCE, Story::begin(stage).await?.tell()).await? })
    }
}

/// What a story is told with.
struct Story {
    stage: Stage,
    settings: Settings,
    world: World,
    client: Client,
    /// What goes on in this runtime.
    going_on: JoinSet<Result<(), BoxError>>,
    checks: Vec<Check>,
}

impl Story {
    async fn begin(stage: Stage) -> Result<Self, BoxError> {
        let callbacks =
            Callbacks { secret: Secret::generate(), keys: keys(&stage.env)?, timeout: Duration::from_secs(10) };
        let settings = Settings {
            lease: Duration::from_secs(4),
            renew: Duration::from_secs(1),
            poll: Duration::from_millis(100),
            recovery: Duration::from_millis(200),
            grace: Duration::from_secs(1),
            allow: this_machine()?,
            callbacks: Some(callbacks.clone()),
            ..Settings::default()
        };
        let world = World::open(&callbacks.secret).await?;
        stage.database.make_tables(TABLES).await?;
        set_lease(&stage.database, &settings).await?;
        let client = client(&stage.database);
        disconnect(&**client.store()).await?;
        connect(&**client.store(), &settings, &callbacks).await?;
        let courier = courier(&stage.database, &settings, &callbacks)?.name("tasks.callbacks").build()?;
        let (mut going_on, database) = (JoinSet::new(), stage.database.clone());
        going_on.spawn(async move { run_until(&database, courier, std::future::pending).await });
        Ok(Self { stage, settings, world, client, going_on, checks: Vec::new() })
    }

    async fn tell(mut self) -> Result<Show, BoxError> {
        let victims = self.dies_with_a_task().await?;
        self.world.api.be_unwell(1);
        self.stage.tell("The API that wants to know how tasks end is unwell: it will answer the next call with a 500.");
        let anna = self.start("anna")?;
        let (done, missing) = self.work().await?;
        self.recovers(&victims).await?;
        let ben = self.start("ben")?;
        let report = self.reports().await?;
        self.is_told(&done, &missing, &report).await?;
        self.took_only_listed_steps(&[&anna, &ben]);
        self.is_whole().await?;
        let Self { world, going_on, checks, .. } = self;
        Ok(Show { checks, going_on: Box::new((world, going_on, anna, ben)) })
    }

    fn start(&self, name: &str) -> Result<Traced, BoxError> {
        let worker = worker(&self.stage.database, &self.settings)?.name(name).build()?;
        self.stage.tell(format!("Worker {name} starts: Startup, Connecting, Recovery, Polling …"));
        Ok(Traced::start(async move || Ok(worker))?)
    }

    /// A worker claims a task and is never heard of again: what a SIGKILL leaves behind.
    async fn dies_with_a_task(&self) -> Result<Victim, BoxError> {
        let task = self.fetch("words-77").await?;
        let store = Arc::clone(self.client.store());
        let worker = store.register_worker(&WorkerName::new("carl")?).await?;
        let claim = ClaimJobs::new(worker, QueueName::new(QUEUE)?, 1);
        let claimed = store.claim_jobs(claim).await?.ok_or("nothing was due")?;
        self.stage.tell(format!("Worker carl claims task {} under fence {} and dies.", short(task), claimed.lease));
        Ok(Victim { task, claimed, worker })
    }

    /// Fetches and digests documents, and one that is not there.
    async fn work(&mut self) -> Result<(Vec<JobId>, JobId), BoxError> {
        let mut done = Vec::new();
        for words in WORDS {
            done.push(self.fetch(&format!("words-{words}")).await?);
        }
        let missing = self.fetch("missing").await?;
        for task in &done {
            self.until(*task, Status::Done).await?;
        }
        for words in WORDS {
            let digest = Digest { url: self.world.document(&format!("words-{words}")) };
            done.push(self.client.enqueue(digest).callback_url(self.world.callback()).await?.job());
        }
        for task in &done {
            self.until(*task, Status::Done).await?;
        }
        let failed = self.until(missing, Status::Error).await?;
        let error = failed.summary.error.map(|error| error.as_str().to_owned()).unwrap_or_default();
        let calls = self.world.library.traffic().of("missing").calls;
        self.stage.tell("A document is not there: its task is an error at once, and never tried again.");
        self.checks.push(Check::new(
            "an error is recorded, final, and not tried again",
            (failed.attempts.len(), calls) == (1, 1) && error.contains("http_404"),
            format!("{} try, {calls} call, {error}", failed.attempts.len()),
        ));
        let bytes: u64 = WORDS.iter().map(|words| Library::words(*words).len() as u64).sum();
        let used = self.used(&done).await?;
        self.stage.tell(format!(
            "{} documents were fetched and digested: {} bytes, {} units, {} ms.",
            WORDS.len(),
            used.bytes,
            used.units,
            used.ms
        ));
        self.checks.push(Check::equal(
            "the library knows what tasks used: a document is paid for when it is fetched and when it is digested",
            &(2 * bytes),
            &used.bytes,
        ));
        Ok((done, missing))
    }

    /// Another one has taken the dead worker's task back, and the dead one's late word changes nothing.
    async fn recovers(&mut self, victim: &Victim) -> Result<(), BoxError> {
        let record = self.until(victim.task, Status::Done).await?;
        let hows: Vec<&str> = record.attempts.iter().map(|attempt| attempt.how.as_str()).collect();
        let fence = record.attempts.last().map(|attempt| attempt.lease);
        let heir = record.attempts.last().and_then(|attempt| attempt.worker.clone()).unwrap_or_default();
        self.stage.tell(format!("The lease of carl expired: {heir} took task {} back and did it.", short(victim.task)));
        self.checks.push(Check::new(
            "a dead worker's task is done by another, under a later fence",
            hows == ["lost", "succeeded"] && fence > Some(victim.claimed.lease),
            format!("{hows:?}, fence {} then {fence:?}", victim.claimed.lease),
        ));
        let ending = Ending::Succeeded { result: None, usage: None };
        let (lease, jobs) = (victim.claimed.lease, vec![EndJob::new(victim.task, ending)]);
        let late = self.client.store().end_jobs(EndJobs { worker: victim.worker, lease, jobs }).await?;
        let rows = self.results(victim.task).await?;
        self.stage.tell("Carl wakes up and says that it is done: refused.");
        self.checks.push(Check::new(
            "what the dead worker says too late is refused, and there is one result",
            late == [Ended::LeaseLost { how: Some(How::Lost) }] && rows == 1,
            format!("{late:?}, {rows} result"),
        ));
        Ok(())
    }

    async fn reports(&mut self) -> Result<JobId, BoxError> {
        let task = self.client.enqueue(Report {}).callback_url(self.world.callback()).await?.job();
        let record = self.until(task, Status::Done).await?;
        let attempt = record.attempts.last().ok_or("it has no attempt")?;
        let usage = attempt.usage.as_ref().map(|usage| usage.as_str().to_owned()).unwrap_or_default();
        let result = attempt.result.as_ref().map(|result| result.as_str().to_owned()).unwrap_or_default();
        self.stage.tell(format!("A report sums them up: {result}"));
        let whole = result.contains("task.fetch") && result.contains("task.digest") && usage.contains("units");
        self.checks.push(Check::new("a report sums what the others used, and says what it used itself", whole, usage));
        Ok(task)
    }

    async fn is_told(&mut self, done: &[JobId], missing: &JobId, report: &JobId) -> Result<(), BoxError> {
        let good: BTreeSet<String> = done.iter().chain([report]).map(ToString::to_string).collect();
        let all = good.len() + 1;
        let is_ours = |task: &str| good.contains(task) || task == missing.to_string();
        let told = kit::until("the API is told of every end", async || {
            let ours: Vec<_> = self.world.api.told().into_iter().filter(|told| is_ours(&told.task)).collect();
            Ok((ours.len() >= all).then_some(ours))
        })
        .await?;
        let once = told.len() == all && told.iter().all(|told| told.times == 1);
        let right = told.iter().all(|told| (told.event_type == "job.succeeded") == good.contains(&told.task));
        let failure = told.iter().filter(|told| told.event_type == "job.failed").count();
        self.stage.tell("The API is well again, and has been told of every end, the one that it had turned away too.");
        self.checks.push(Check::new(
            "the API was told of each success and of the failure, once each",
            once && right && failure == 1,
            format!("{} told of {all}, {failure} failure", told.len()),
        ));
        let calls = |became: &str| self.world.api.traffic().of(became).calls;
        let (unwell, forged) = (calls("unwell"), calls("not genuine"));
        self.checks.push(Check::new(
            "the word that it turned away with a 500 was told again, and every word was signed",
            (unwell, forged) == (1, 0),
            format!("{unwell} turned away, {forged} not genuine"),
        ));
        Ok(())
    }

    /// What the workers went through is what the seed lists.
    fn took_only_listed_steps(&mut self, workers: &[&Traced]) {
        let mut seen: BTreeSet<Step> = BTreeSet::new();
        let mut steps = 0;
        for worker in workers {
            let path = merged(&worker.steps().heard());
            steps += path.len();
            seen.extend(path);
        }
        let unlisted: Vec<&Step> = seen.iter().filter(|step| !is_listed(**step) && !is_added(**step)).collect();
        let listed = STEPS.iter().filter(|step| seen.contains(step)).count();
        self.stage
            .tell(format!("The two workers took {steps} steps of {listed} kinds, each of them one of the seed's."));
        // Whether it rests depends on who else is busy, and the database was never away: tests provoke those.
        self.checks.push(Check::new(
            "every step of the loops is in the seed's list, from the start to the reports of success and of failure",
            unlisted.is_empty() && listed >= KINDS_MIN,
            format!("{listed} of {} kinds, {} unlisted", STEPS.len(), unlisted.len()),
        ));
    }

    async fn is_whole(&mut self) -> Result<(), BoxError> {
        let found = audit(&**self.client.store()).await?;
        let first = found.findings.first().map(ToString::to_string).unwrap_or_default();
        self.stage.tell(format!(
            "The record is checked by replay: {} tasks, {} changes, each with its entry.",
            found.tasks, found.entries
        ));
        self.checks.push(Check::new(
            "every change to running, done or error has its entry, and they lead to where tasks stand",
            found.is_whole() && found.entries > 0,
            format!("{} entries, {} findings {first}", found.entries, found.findings.len()),
        ));
        Ok(())
    }

    async fn fetch(&self, name: &str) -> Result<JobId, StoreError> {
        let fetch = Fetch { url: self.world.document(name) };
        Ok(self.client.enqueue(fetch).callback_url(self.world.callback()).await?.job())
    }

    /// What these tasks used together.
    async fn used(&self, tasks: &[JobId]) -> Result<Usage, BoxError> {
        let mut sum = Usage::default();
        for task in tasks {
            for attempt in self.client.show(*task).await?.attempts {
                if let Some(usage) = attempt.usage {
                    sum += serde_json::from_str(usage.as_str())?;
                }
            }
        }
        Ok(sum)
    }

    async fn results(&self, task: JobId) -> Result<usize, StoreError> {
        Ok(self.stage.database.query("select job from task_result where job = $1", row![task]).await?.len())
    }

    /// Waits until a task stands so.
    async fn until(&self, task: JobId, status: Status) -> Result<JobRecord, BoxError> {
        kit::until(&format!("task {task} as {status}"), async || match self.client.show(task).await {
            Ok(record) if Status::from(record.summary.state) == status => Ok(Some(record)),
            Err(error) if !error.is_passing() => Err(error.into()),
            _ => Ok(None),
        })
        .await
    }
}

/// What a dead worker held.
struct Victim {
    task: JobId,
    claimed: Claimed,
    worker: tenure::core::WorkerId,
}

/// The keys of whoever else delivers on this database, or some of our own.
fn keys(env: &Env) -> Result<MasterKeys, BoxError> {
    let text = match env.text("TENURE_WEBHOOK_KEYS") {
        Some(keys) => keys,
        None => format!("demo:{}", Secret::generate().text().trim_start_matches("whsec_")),
    };
    text.parse().map_err(|refused| format!("TENURE_WEBHOOK_KEYS: {refused}").into())
}

/// The last part of an id: enough to tell a few apart.
fn short(task: JobId) -> String {
    task.to_string().rsplit('-').next().unwrap_or_default().to_owned()
}
