//! Runs, as a [`Client`] makes them: many jobs with one goal, and the one that waits for all of them.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use tenure_core::{Invalid, NewJob, RunId};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::run::{
    AddToRun, Added, CancelRun, Members, NewPartition, NewRun as Request, PartitionFilter, PartitionRecord, RunRecord,
    SealRun,
};

use crate::client::Client;
use crate::enqueue::{Enqueue, EnqueueMany};
use crate::random;

/// A run on its way into the store: say what it has, then await its id. What was said wrongly is refused then, naming the
/// field, and nothing is stored.
///
/// ```
/// # use tenure_worker::{Client, Job};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Stones { min: u32, max: u32 }
/// # impl Job for Stones { const KIND: &'static str = "stones"; }
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Publish;
/// # impl Job for Publish { const KIND: &'static str = "publish"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = tenure_sqlite::SqliteStore::in_memory(Default::default())?;
/// # tenure_store::AdminStore::migrate(&store).await?;
/// # let client = Client::new(&store);
/// let run = client
///     .new_run()
///     .source("catalogue")
///     .partition("0-999", client.enqueue(Stones { min: 0, max: 999 }), 30)
///     .partition("1000-1999", client.enqueue(Stones { min: 1_000, max: 1_999 }), 30)
///     .consolidate(client.enqueue(Publish)) // once, when all of them are done
///     .await?;
/// # assert_eq!(client.show_run(run).await?.run.total, 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is stored before this is awaited"]
pub struct NewRun<'c> {
    client: &'c Client,
    request: Result<Request, Invalid>,
}

impl<'c> NewRun<'c> {
    fn new(client: &'c Client) -> Self {
        let id = RunId::from_uuid(*random::job_id(client.clock()).as_uuid());
        let request = Request { tenant: client.tenant().clone(), ..Request::new(id) };
        Self { client, request: Ok(request) }
    }

    /// An id of the caller's own making (a uuid v7 of today): a run that is created twice is one.
    pub fn id(self, id: RunId) -> Self {
        self.change(|run| run.id = id)
    }

    /// What it is fed from.
    pub fn source(self, source: impl Into<String>) -> Self {
        self.change(|run| run.source = Some(source.into()))
    }

    /// Who asked for it.
    pub fn owner(self, owner: impl Into<String>) -> Self {
        self.change(|run| run.owner = Some(owner.into()))
    }

    /// A stream of pages of so many rows each. `first` is the job of its first page, those of later ones are made after it;
    /// its handler takes a [`Page`](crate::Page).
    pub fn partition(self, name: &str, first: Enqueue<'_>, limit: u32) -> Self {
        let first = first.into_job();
        self.try_change(|run| {
            run.members.partitions.push(partition(name, first?, limit)?);
            Ok(())
        })
    }

    /// How many rows the partition that was named last will have, if somebody knows. Only shown.
    pub fn expected(self, rows: u64) -> Self {
        self.change(|run| {
            if let Some(last) = run.members.partitions.last_mut() {
                last.expected = Some(rows);
            }
        })
    }

    /// A job of its own.
    pub fn item(self, item: Enqueue<'_>) -> Self {
        let item = item.into_job();
        self.try_change(|run| {
            run.members.items.push(item?);
            Ok(())
        })
    }

    /// Many of them.
    pub fn items(self, items: EnqueueMany<'_>) -> Self {
        let items = items.into_jobs();
        self.try_change(|run| {
            run.members.items.extend(items?);
            Ok(())
        })
    }

    /// The job that runs when all the others are done: once, and not at all when too many are missing.
    pub fn consolidate(self, job: Enqueue<'_>) -> Self {
        let job = job.into_job();
        self.try_change(|run| {
            run.consolidate = Some(job?);
            Ok(())
        })
    }

    /// More will come, by [`Client::add_to_run`], until it is [sealed](Client::seal_run). It has a day for that unless it is
    /// told another deadline.
    pub fn open(self) -> Self {
        self.change(|run| run.sealed = false)
    }

    /// The first member too many that is missing ends the others. Otherwise they go on, and the run fails at its end.
    pub fn fail_fast(self) -> Self {
        self.change(|run| run.fail_fast = true)
    }

    /// So many members may be missing in a run that ends well; none unless set.
    pub fn tolerate(self, missing: u32) -> Self {
        self.change(|run| run.tolerated = missing)
    }

    /// After this it has failed, and what is left of it is canceled.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.change(|run| run.deadline = Some(deadline))
    }

    fn change(self, change: impl FnOnce(&mut Request)) -> Self {
        self.try_change(|run| {
            change(run);
            Ok(())
        })
    }

    fn try_change(mut self, change: impl FnOnce(&mut Request) -> Result<(), Invalid>) -> Self {
        if let Ok(run) = &mut self.request
            && let Err(refused) = change(run)
        {
            self.request = Err(refused);
        }
        self
    }
}

impl<'c> IntoFuture for NewRun<'c> {
    type Output = Result<RunId, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.request?;
            let id = request.id;
            self.client.store().create_run(request).await?;
            Ok(id)
        })
    }
}

/// Members on their way into an open run, all or none.
#[must_use = "nothing is stored before this is awaited"]
pub struct AddTo<'c> {
    client: &'c Client,
    run: RunId,
    members: Result<Members, Invalid>,
}

impl AddTo<'_> {
    /// A stream of pages, as in [`NewRun::partition`].
    pub fn partition(self, name: &str, first: Enqueue<'_>, limit: u32) -> Self {
        let first = first.into_job();
        self.try_change(|members| {
            members.partitions.push(partition(name, first?, limit)?);
            Ok(())
        })
    }

    /// A job of its own.
    pub fn item(self, item: Enqueue<'_>) -> Self {
        let item = item.into_job();
        self.try_change(|members| {
            members.items.push(item?);
            Ok(())
        })
    }

    /// Many of them.
    pub fn items(self, items: EnqueueMany<'_>) -> Self {
        let items = items.into_jobs();
        self.try_change(|members| {
            members.items.extend(items?);
            Ok(())
        })
    }

    fn try_change(mut self, change: impl FnOnce(&mut Members) -> Result<(), Invalid>) -> Self {
        if let Ok(members) = &mut self.members
            && let Err(refused) = change(members)
        {
            self.members = Err(refused);
        }
        self
    }
}

impl<'c> IntoFuture for AddTo<'c> {
    type Output = Result<Added, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (sight, run, members) = (self.client.sight(), self.run, self.members?);
            self.client.store().add_to_run(AddToRun { sight, run, members }).await
        })
    }
}

impl Client {
    /// Many jobs with one goal, created when awaited.
    pub fn new_run(&self) -> NewRun<'_> {
        NewRun::new(self)
    }

    /// More members of an open run, stored when awaited.
    pub fn add_to_run(&self, run: RunId) -> AddTo<'_> {
        AddTo { client: self, run, members: Ok(Members::default()) }
    }

    /// Says that an open run has all its members. A repetition changes nothing.
    pub async fn seal_run(&self, run: RunId) -> Result<(), StoreError> {
        self.seal(run, None).await
    }

    /// The same with the job that runs when all of them are done.
    pub async fn seal_run_with(&self, run: RunId, consolidate: Enqueue<'_>) -> Result<(), StoreError> {
        self.seal(run, Some(consolidate.into_job()?)).await
    }

    async fn seal(&self, run: RunId, consolidate: Option<NewJob>) -> Result<(), StoreError> {
        let request = SealRun { sight: self.sight(), run, consolidate, word: Word::default() };
        self.store().seal_run(request).await
    }

    /// One run. What its jobs said last may not be counted yet.
    pub async fn show_run(&self, run: RunId) -> Result<RunRecord, StoreError> {
        self.store().show_run(&self.sight(), run).await
    }

    /// The partitions of a run by name, the first thousand of them.
    pub async fn partitions_of(&self, run: RunId) -> Result<Vec<PartitionRecord>, StoreError> {
        let limit = tenure_store::operate::BATCH_MAX;
        let filter = PartitionFilter { sight: self.sight(), run: Some(run), limit, ..PartitionFilter::default() };
        self.store().list_partitions(&filter).await
    }

    /// Ends a run with all its jobs; answers whether it was not canceled before.
    pub async fn cancel_run(&self, run: RunId) -> Result<bool, StoreError> {
        self.store().cancel_run(CancelRun { sight: self.sight(), run, word: Word::default() }).await
    }
}

fn partition(name: &str, job: NewJob, limit: u32) -> Result<NewPartition, Invalid> {
    Ok(NewPartition { name: name.parse()?, job, offset: 0, limit, expected: None })
}
