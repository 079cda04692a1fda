//! `tenure server`: the HTTP API, until told to stop.
//!
//! Beside the API runs a worker without kinds of its own: it takes back what dead workers held, fires schedules, counts
//! runs and seals the journal. With it the server is enough where all workers come over HTTP. When an operator stops that
//! worker, the server goes with it.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_server::server::BindError;
use tenure_server::{Auth, Options, Server};
use tenure_store::Store;
use tenure_store::access::KeyFilter;
use tenure_store::record::Sight;
use tenure_worker::{Worker, signal};

use super::{Answer, Session, worker};
use crate::failure::{Failure, exit};
use crate::log;
use crate::settings::WorkerFlags;

/// The queue of the server's own jobs.
const OWN_QUEUE: &str = "tenure";

const EXAMPLES: &str = "\
Examples:
  tenure server                            http://127.0.0.1:7400
  tenure server --listen 0.0.0.0:7400      for other machines; put TLS before it
  tenure keys create --name ops --scopes enqueue,read,operate,admin
  curl -H \"Authorization: Bearer $TENURE_KEY\" http://127.0.0.1:7400/v1/jobs

Every request needs a key, but for /v1/health/…, /v1/problems and /v1/openapi.json. Without keys: tenure dev";

/// Serve the HTTP API until told to stop
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    /// Where it listens [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    settings: WorkerFlags,
}

impl ServerArgs {
    /// What the command line says that settings say, too.
    pub(crate) fn flags(&self) -> WorkerFlags {
        self.settings.with_listen(self.listen.clone())
    }
}

pub(crate) fn run(_: &ServerArgs, session: &mut Session) -> Result<Answer, Failure> {
    serve(session, Auth::Keys, async |store, session| {
        let keys = KeyFilter { sight: Sight::All, ended_too: false, after: None, limit: 1 };
        if store.list_keys(&keys).await?.is_empty() {
            tracing::warn!("there are no keys yet: tenure keys create --name ops --scopes enqueue,read,operate,admin");
        }
        let settings = &session.settings.worker;
        let worker = Worker::builder(store)
            .grace(settings.grace.value)
            .retention(Some(settings.retention.value))
            .queue(OWN_QUEUE, 1);
        Ok(match &settings.id {
            Some(id) => worker.name(id.value.as_str()),
            None => worker,
        }
        .build()?)
    })
}

/// Serves the API beside a worker until told to stop.
pub(super) fn serve(
    session: &mut Session,
    auth: Auth,
    worker: impl AsyncFnOnce(&Arc<dyn Store>, &Session) -> Result<Worker, Failure>,
) -> Result<Answer, Failure> {
    log::start(&session.settings.worker);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    let ran = runtime.block_on(serve_until_told(session, auth, worker));
    // A handler that blocks its thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ran
}

async fn serve_until_told(
    session: &mut Session,
    auth: Auth,
    worker: impl AsyncFnOnce(&Arc<dyn Store>, &Session) -> Result<Worker, Failure>,
) -> Result<Answer, Failure> {
    let unheard =
        |error: std::io::Error| Failure::new("server", exit::STORE, "the server cannot start").caused_by(&error);
    // Before anything else: also a process that starts is told to stop.
    let stop = signal::first_then_exit_on_second().map_err(unheard)?;
    tokio::pin!(stop);
    let store = tokio::select! {
        biased;
        () = &mut stop => return Ok(Answer::Done),
        store = worker::connect(session, false) => store?,
    };
    let options = Options {
        listen: session.settings.worker.listen.value,
        auth,
        grace: session.settings.worker.grace.value,
        ..Options::default()
    };
    let server = Server::bind(&store, options).map_err(|error| match error {
        BindError::Options(invalid) => invalid.into(),
        BindError::Address(address, error) => {
            let message = format!("{address} cannot be listened on");
            let hint = "Is another server running there? --listen says where this one listens; port 0 is any free one.";
            Failure::new("listen", exit::REFUSED, message).caused_by(&error).hint(hint)
        }
    })?;
    let worker = worker(&store, session).await?;
    let url = format!("http://{}", server.address());
    match session.out.is_json() {
        true => session.out.json(&json!({ "url": url, "store": session.settings.location.value.to_string() }))?,
        false => session.out.line(format!("Tenure serves {url}/v1 on {}.", session.settings.location.value)),
    }
    session.out.flush()?;
    let (told, mut stopped) = tokio::sync::watch::channel(false);
    let mut also_stopped = stopped.clone();
    let serving = server.run_until(async move {
        let _told_or_gone = stopped.wait_for(|told| *told).await;
    });
    let working = async {
        let worked = worker.run_until(async move {
            let _told_or_gone = also_stopped.wait_for(|told| *told).await;
        });
        let worked = worked.await;
        // Without it nobody here would take back what dead workers held: the server goes with it.
        told.send_replace(true);
        worked
    };
    let stopping = async {
        stop.await;
        told.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        ended = async { tokio::join!(serving, working) } => ended.1.map_err(unheard).map(|_| Answer::Done),
        () = stopping => Ok(Answer::Done),
    }
}
