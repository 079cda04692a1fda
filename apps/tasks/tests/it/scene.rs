//! [`Scene`]: a database, the outside, and a task runner on both, in this process or in one of its own.

use std::process::Command;
use std::time::Duration;

use kit::testing::{Place, Process};
use kit::{BoxError, Running};
use tasks::settings::{Callbacks, this_machine};
use tasks::task::{Digest, Fetch, Report, Status, tenant};
use tasks::traced::Traced;
use tasks::world::api::Told;
use tasks::{Settings, World, worker};
use tenure::webhooks::Secret;
use tenure::{Client, JobId, JobRecord, Summary, Worker};

/// Seals the API's secret in every test.
pub(crate) const KEYS: &str = "test:abababababababababababababababababababababababababababababababab";
/// The loop's wait after an error, where five seconds of it are not what is shown.
pub(crate) const SHORT_WAIT: Duration = Duration::from_millis(100);

/// Where a test plays.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) world: World,
    pub(crate) settings: Settings,
}

impl Scene {
    /// With the seed's lease of a minute, looks in quick succession, and leave to call this machine.
    pub(crate) async fn new(place: Place) -> Self {
        let secret = Secret::generate();
        let world = World::open(&secret).await.unwrap();
        let callbacks = Callbacks { secret, keys: KEYS.parse().unwrap(), timeout: Duration::from_secs(30) };
        let settings = Settings {
            poll: Duration::from_millis(50),
            error_wait: SHORT_WAIT,
            allow: this_machine().unwrap(),
            callbacks: Some(callbacks),
            grace: Duration::ZERO,
            ..Settings::default()
        };
        tasks::worker::set_lease(&place.database, &settings).await.unwrap();
        Self { place, world, settings }
    }

    pub(crate) fn client(&self) -> Client {
        self.place.client().for_tenant(tenant())
    }

    /// A worker by the scene's settings.
    pub(crate) fn worker(&self, name: &str) -> Worker {
        let worker = worker(&self.place.database, &self.settings).unwrap();
        worker.client(self.place.client()).name(name).build().unwrap()
    }

    /// A worker that goes on until the value is dropped or told to stop.
    pub(crate) fn start(&self, name: &str) -> Running {
        Running::start(self.worker(name))
    }

    /// One whose steps are heard.
    pub(crate) fn trace(&self, name: &str) -> Traced {
        let worker = self.worker(name);
        Traced::start(async move || Ok(worker)).unwrap()
    }

    /// One in a process of its own, which tells its steps.
    pub(crate) fn process(&self, name: &str) -> Process {
        let mut command = program(self.place.url(), &["worker", "--states"]);
        command.env("WORKER_ID", name).env("TASKS_LEASE_SECONDS", self.settings.lease.as_secs().to_string());
        if let Some(callbacks) = &self.settings.callbacks {
            command.env("TASKS_API_SECRET", callbacks.secret.text().as_str()).env("TENURE_WEBHOOK_KEYS", KEYS);
        }
        Process::start(command)
    }

    /// Runs all that is due.
    pub(crate) async fn run(&self) -> Summary {
        self.worker("inline").run_until_idle().await.unwrap()
    }

    /// Adds a fetch of a document of the world, whose end is told to its API.
    pub(crate) async fn fetch(&self, name: &str) -> JobId {
        let fetch = Fetch { url: self.world.document(name) };
        self.client().enqueue(fetch).callback_url(self.world.callback()).await.unwrap().job()
    }

    pub(crate) async fn digest(&self, name: &str) -> JobId {
        let digest = Digest { url: self.world.document(name) };
        self.client().enqueue(digest).callback_url(self.world.callback()).await.unwrap().job()
    }

    pub(crate) async fn report(&self) -> JobId {
        self.client().enqueue(Report {}).callback_url(self.world.callback()).await.unwrap().job()
    }

    pub(crate) async fn show(&self, task: JobId) -> JobRecord {
        self.client().show(task).await.unwrap()
    }

    pub(crate) async fn status(&self, task: JobId) -> Status {
        self.show(task).await.summary.state.into()
    }

    /// Waits until a task stands so.
    pub(crate) async fn until(&self, task: JobId, status: Status) -> JobRecord {
        let look = async || {
            let record = self.show(task).await;
            Ok((Status::from(record.summary.state) == status).then_some(record))
        };
        kit::until(&format!("task {task} as {status}"), look).await.unwrap()
    }

    /// Waits until somebody has asked for a document so many times.
    pub(crate) async fn until_asked(&self, name: &str, calls: u64) {
        let look = async || Ok((self.world.library.traffic().of(name).calls >= calls).then_some(()));
        kit::until(&format!("{calls} calls for {name}"), look).await.unwrap();
    }

    /// Waits for the first word to the API.
    pub(crate) async fn until_told(&self) -> Told {
        kit::until("a word to the API", async || Ok(self.world.api.told().into_iter().next())).await.unwrap()
    }
}

/// Looks until something works: for a database that is coming back.
pub(crate) async fn until_ok<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, tenure::StoreError>>,
{
    let look = || {
        let attempt = attempt();
        async { Ok::<_, BoxError>(attempt.await.ok()) }
    };
    kit::until(what, look).await.unwrap()
}

/// The program with a database, in a hurry, and with nothing of our own environment that it would listen to.
pub(crate) fn program(database: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasks"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("TASKS_") || ["WORKER_ID", "TENURE_WEBHOOK_KEYS"].contains(&&*name) {
            command.env_remove(&*name);
        }
    }
    command.args(arguments).env("DATABASE_URL", database).env("TASKS_LOCAL", "true");
    command.env("TASKS_POLL_MS", "100").env("TASKS_RECOVERY_MS", "100").env("TASKS_ERROR_WAIT_MS", "100");
    command
}
