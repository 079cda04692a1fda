//! The story, chapter by chapter. Nothing in it is timed: each step waits until the store shows the fact it needs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::{JobId, LeaseNo, State};
use tenure_store::StoreError;
use tenure_store::operate::{CancelJob, Word};
use tenure_store::record::{JobFilter, JobRecord, Sight};
use tenure_worker::{Client, Summary};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

use super::board::{Board, Mood};
use super::catalogue::Catalogue;
use super::crash::Killed;
use super::crew::{CAN_FREEZE, Crew};
use super::orders::{Cast, Producer};
use super::part;
use super::stage::{EXPORTS, IMAGES, REPORTS, SHOP, Stage};
use super::stale::Frozen;
use crate::failure::{Failure, exit};

/// Everything must have happened within this, on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// Pause between two looks at the store.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(30);
/// Orders that come in while the story is told, and the pause between two of them.
const ORDERS: u32 = 24;
const ORDER_EVERY: Duration = Duration::from_millis(320);

pub(super) const WORKER_1: &str = "worker-1";
pub(super) const WORKER_2: &str = "worker-2";
pub(super) const WORKER_3: &str = "worker-3";
pub(super) const WORKER_4: &str = "worker-4";
pub(super) const WORKER_5: &str = "worker-5";

/// A demo that is being played.
pub(super) struct Story {
    pub(super) stage: Arc<Stage>,
    pub(super) board: Board,
    pub(super) crew: Crew,
    own: OwnWorker,
    orders: JoinHandle<Result<(), Failure>>,
    pub(super) cast: Cast,
    /// How long a chapter stays on the screen at least: people read, programs do not.
    breath: Duration,
    pub(super) killed: Option<Killed>,
    pub(super) frozen: Option<Frozen>,
    /// Jobs that asked a source which was down.
    pub(super) asked: Vec<JobId>,
    pub(super) catalogue: Option<Catalogue>,
    deadline: Instant,
}

/// What was done, for the proof to check.
pub(super) struct Done {
    pub(super) cast: Cast,
    pub(super) killed: Option<Killed>,
    pub(super) frozen: Option<Frozen>,
    pub(super) asked: Vec<JobId>,
    pub(super) catalogue: Option<Catalogue>,
}

/// The demo's own worker.
struct OwnWorker {
    stop: oneshot::Sender<()>,
    ran: JoinHandle<std::io::Result<Summary>>,
}

impl Story {
    /// Stores the backlog, then starts the first worker: what was enqueued last and is urgent runs first.
    pub(super) async fn begin(stage: Arc<Stage>, board: Board, breath: Duration) -> Result<Self, Failure> {
        let producer = Producer::new(Client::new(&stage.store), board.clone());
        board.say("A small shop opens on one SQLite file; its backlog is stored, an urgent stock.alert last");
        let cast = producer.backlog().await?;
        let crew = Crew::new(stage.dir.path())?;
        let own = OwnWorker::start(&stage)?;
        board.hire(WORKER_1, std::process::id(), "this process");
        // As long as the story takes, or nearly: a shop that stands still is no sight.
        let order_every = ORDER_EVERY + breath / 8;
        let orders = tokio::spawn(async move {
            for n in 0..ORDERS {
                producer.order(n).await?;
                tokio::time::sleep(order_every).await;
            }
            Ok(())
        });
        let deadline = Instant::now() + DEADLINE;
        Ok(Self {
            stage,
            board,
            crew,
            own,
            orders,
            cast,
            breath,
            killed: None,
            frozen: None,
            asked: Vec::new(),
            catalogue: None,
            deadline,
        })
    }

    /// Tells it to the end. The workers go on.
    pub(super) async fn tell(&mut self) -> Result<(), Failure> {
        self.two_processes().await?;
        self.two_cancels().await?;
        self.a_source_goes_down().await?;
        self.a_crash().await?;
        self.a_catalogue_comes_in().await?;
        if CAN_FREEZE {
            self.a_stale_worker().await?;
        } else {
            self.board.say("Here a process cannot be frozen and woken: the stale worker is left out");
            self.stage.open_gate(REPORTS)?;
        }
        self.everything_ends().await
    }

    /// Two more workers, each a process of its own.
    async fn two_processes(&mut self) -> Result<(), Failure> {
        let second = self.crew.start(WORKER_2, &[(EXPORTS, 4), (IMAGES, 2)])?;
        self.board.hire(WORKER_2, second, "");
        let third = self.crew.start(WORKER_3, &[(REPORTS, 1)])?;
        self.board.hire(WORKER_3, third, "");
        self.board.say(format!("Orders come in; {WORKER_2} (pid {second}) and {WORKER_3} (pid {third}) are started"));
        self.until("worker-3 runs its report", async |story| story.running_by(WORKER_3, 1).await).await?;
        self.breathe().await;
        Ok(())
    }

    /// One job that waits is canceled at once, one that runs is asked to stop.
    async fn two_cancels(&mut self) -> Result<(), Failure> {
        let Cast { queued_newsletter, running_newsletter, .. } = self.cast;
        self.board.say("Two newsletters are canceled: one that waits ends at once, one that runs is asked to stop");
        self.cancel(queued_newsletter).await?;
        self.until("the newsletter runs", async |story| story.held(running_newsletter).await).await?;
        self.cancel(running_newsletter).await?;
        self.until("the running newsletter is canceled", async |story| {
            let job = story.show(running_newsletter).await?;
            Ok((job.summary.state == State::Canceled).then_some(()))
        })
        .await?;
        self.breathe().await;
        Ok(())
    }

    async fn everything_ends(&mut self) -> Result<(), Failure> {
        self.board.say("The last orders are worked on");
        (&mut self.orders).await.map_err(|error| lost_task(&error))??;
        self.until("every job has ended", async |story| Ok((story.board.unfinished() == 0).then_some(()))).await
    }

    /// Orders without end, until somebody has seen enough.
    pub(super) async fn go_on(&mut self) -> Result<(), Failure> {
        self.board.say("Everything was shown. Orders keep coming; Ctrl-C ends the demo");
        let producer = Producer::new(Client::new(&self.stage.store), self.board.clone());
        for n in ORDERS.. {
            producer.order(n).await?;
            self.crew.check()?;
            tokio::time::sleep(ORDER_EVERY * 2).await;
        }
        Ok(())
    }

    /// Stops every worker; what runs may end.
    pub(super) async fn wind_up(self) -> Result<Done, Failure> {
        self.board.say("The shop closes: the workers stop");
        self.orders.abort();
        self.crew.stop().await;
        // Nobody listens when it has ended by itself.
        let _ = self.own.stop.send(());
        self.own.ran.await.map_err(|error| lost_task(&error))?.map_err(|error| no_worker(&error))?;
        for member in &mut self.board.look().workers {
            member.mood = if member.mood == Mood::Running { Mood::Stopped } else { member.mood };
        }
        let Self { cast, killed, frozen, asked, catalogue, .. } = self;
        Ok(Done { cast, killed, frozen, asked, catalogue })
    }

    /// Waits for a fact. What it waits for is what an error says did not happen.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        look: impl AsyncFn(&Self) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            if let Some(seen) = look(self).await? {
                return Ok(seen);
            }
            self.crew.check()?;
            if Instant::now() > self.deadline {
                let message = format!("after {} s this had not happened: {what}", DEADLINE.as_secs());
                let hint = "Is this machine very busy? Nothing is left behind: try again.";
                return Err(Failure::new("demo", exit::REFUSED, message).hint(hint));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The jobs that the store shows as running in the hands of this worker, once there are so many.
    pub(super) async fn running_by(&self, worker: &str, at_least: usize) -> Result<Option<Vec<JobId>>, Failure> {
        let filter = JobFilter { state: Some(State::Running), limit: 1_000, ..JobFilter::default() };
        let jobs = passing(self.stage.store.list_jobs(&filter).await)?.unwrap_or_default();
        let jobs = jobs.into_iter().filter(|job| job.locked_by.as_deref() == Some(worker));
        let jobs: Vec<JobId> = jobs.map(|job| job.id).collect();
        Ok((jobs.len() >= at_least).then_some(jobs))
    }

    /// The lease that holds a job, once one does.
    async fn held(&self, job: JobId) -> Result<Option<LeaseNo>, Failure> {
        Ok(self.show(job).await?.lease)
    }

    pub(super) async fn show(&self, job: JobId) -> Result<JobRecord, Failure> {
        loop {
            match passing(self.stage.store.show_job(&Sight::All, job).await)? {
                Some(record) => return Ok(record),
                // Over the whole story's time somebody else will say what is wrong.
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    async fn cancel(&self, job: JobId) -> Result<(), Failure> {
        let word = Word { actor: Some("operator".into()), reason: Some("a typo in the subject".into()) };
        self.stage.store.cancel_job(CancelJob { sight: Sight::All, job, force: false, word }).await?;
        Ok(())
    }

    pub(super) fn pid(&self, name: &str) -> u32 {
        self.board.look().workers.iter().find(|member| member.name == name).map_or(0, |member| member.pid)
    }

    /// Time to read.
    pub(super) async fn breathe(&self) {
        tokio::time::sleep(self.breath).await;
    }
}

impl OwnWorker {
    fn start(stage: &Stage) -> Result<Self, Failure> {
        let worker = part::worker(&stage.file, WORKER_1, &[(SHOP, 4), (IMAGES, 1)], stage.dir.path().to_owned())?;
        let (stop, stopped) = oneshot::channel();
        let ran = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        Ok(Self { stop, ran })
    }
}

/// A store that is away for a moment has shown nothing.
fn passing<T>(answer: Result<T, StoreError>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_passing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn lost_task(error: &JoinError) -> Failure {
    Failure::new("demo", exit::STORE, "a part of the demo broke").caused_by(error)
}

fn no_worker(error: &std::io::Error) -> Failure {
    Failure::new("worker", exit::STORE, "the worker cannot start").caused_by(error)
}
