//! `tenure server`: the HTTP API, until told to stop.
//!
//! Beside the API runs a worker of the server's own: it takes back what dead workers held, fires schedules, counts runs,
//! seals the journal, and sends webhooks. With it the server is enough where all workers come over HTTP. When an operator
//! stops that worker, the server goes with it.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::webhook::{DELIVERY_KIND, OWN_QUEUE};
use tenure_server::operation::operate;
use tenure_server::server::BindError;
use tenure_server::{Auth, Options, Server};
use tenure_store::Store;
use tenure_store::access::KeyFilter;
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;
use tenure_store::operation::OPERATION_KIND;
use tenure_store::record::{SecondWall, Sight};
use tenure_webhooks::{Deliverer, Endpoints, SendOptions, Sender, SystemResolver, Teller, deliver};
use tenure_worker::{Observer, Worker, signal};

use super::worker::Around;
use super::{Answer, Session, worker};
use crate::failure::{Failure, exit};
use crate::settings::WorkerFlags;
use crate::{broker, log, open_files};

/// Jobs of the server's own that run at once: nearly all of them wait for a receiver.
const OWN_SLOTS: u32 = 64;
/// The server's own kinds, and how many jobs of each run at once for one tenant: receivers that are slow, or operations
/// on millions of jobs, do not keep the others waiting.
const AT_ONCE: [(&str, u32); 2] = [(DELIVERY_KIND, 8), (OPERATION_KIND, 2)];
/// Rules that are looked through.
const RULES_MAX: u32 = 1_000;

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
    serve(session, Auth::Keys, async |store, _, _| {
        let keys = KeyFilter { sight: Sight::All, ended_too: false, after: None, limit: 1 };
        if store.list_keys(&keys).await?.is_empty() {
            tracing::warn!("there are no keys yet: tenure keys create --name ops --scopes enqueue,read,operate,admin");
        }
        Ok(None)
    })
}

/// The worker of the server's own: its duties, the jobs that send webhooks, and those that act on many.
fn own_worker(
    store: &Arc<dyn Store>,
    session: &Session,
    deliverer: Deliverer,
    observer: Option<Arc<dyn Observer>>,
) -> Result<Worker, Failure> {
    let settings = &session.settings.worker;
    let mut worker = Worker::builder(store)
        .grace(settings.grace.value)
        .retention(Some(settings.retention.value))
        .queue(OWN_QUEUE, OWN_SLOTS)
        .state(deliverer)
        .handle(deliver)
        .handle(operate);
    if let Some(observer) = observer {
        worker = worker.observer(observer);
    }
    Ok(match &settings.id {
        Some(id) => worker.name(id.value.as_str()),
        None => worker,
    }
    .build()?)
}

/// Does only so much at once for each tenant, unless an operator says otherwise.
async fn rule_own_gates(store: &Arc<dyn Store>) -> Result<(), Failure> {
    let known = store.list_rules(RULES_MAX).await?;
    for (kind, at_once) in AT_ONCE {
        let pattern: Pattern = format!("{kind}/*").parse()?;
        if known.iter().all(|(known, _)| *known != pattern) {
            let rule = GateRule { concurrency: Some(at_once), ..GateRule::default() };
            let word = Word { actor: Some("server".into()), reason: None };
            store.set_rule(SetRule { pattern, rule: Some(rule), word }).await?;
        }
    }
    Ok(())
}

/// Serves the API beside a worker until told to stop.
pub(super) fn serve(
    session: &mut Session,
    auth: Auth,
    worker: impl AsyncFnOnce(&Arc<dyn Store>, &Session, Around) -> Result<Option<Worker>, Failure>,
) -> Result<Answer, Failure> {
    let telemetry = log::start(&session.settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    let ran = runtime.block_on(serve_until_told(session, auth, telemetry.observer(), worker));
    // A handler that blocks its thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    telemetry.close();
    ran
}

async fn serve_until_told(
    session: &mut Session,
    auth: Auth,
    observer: Option<Arc<dyn Observer>>,
    worker: impl AsyncFnOnce(&Arc<dyn Store>, &Session, Around) -> Result<Option<Worker>, Failure>,
) -> Result<Answer, Failure> {
    let unheard =
        |error: std::io::Error| Failure::new("server", exit::STORE, "the server cannot start").caused_by(&error);
    // Before anything else: also a process that starts is told to stop.
    let stop = signal::first_then_exit_on_second().map_err(unheard)?;
    tokio::pin!(stop);
    let broker = broker::start(&session.settings.rabbitmq)?;
    let waker = broker.as_ref().map(|broker| broker.waker());
    let store = tokio::select! {
        biased;
        () = &mut stop => return Ok(Answer::Done),
        store = worker::connect(session, false) => store?,
    };
    match store.second_wall() {
        SecondWall::Stands => tracing::info!("the second wall stands: what a tenant asks for runs as tenure_api"),
        SecondWall::Missing(why) => tracing::warn!(why, "there is no second wall between tenants"),
        SecondWall::None => {}
    }
    let webhooks = &session.settings.webhooks;
    let guard = match auth {
        Auth::Keys => webhooks.guard(),
        Auth::Open => webhooks.guard_for_trying_out()?,
    };
    let keys = webhooks.keys(&session.settings.location.value)?;
    let options = Options {
        listen: session.settings.worker.listen.value,
        auth,
        grace: session.settings.worker.grace.value,
        webhooks: Endpoints::new(guard.clone(), keys.clone()),
        connections_max: open_files::connections_max(),
        waker: waker.clone(),
        waker_required: session.settings.rabbitmq.required.value,
        ..Options::default()
    };
    let server = Server::bind(&store, options)
        .map_err(|error| match error {
            BindError::Options(invalid) => invalid.into(),
            BindError::Address(address, error) => {
                let message = format!("{address} cannot be listened on");
                let hint =
                    "Is another server running there? --listen says where this one listens; port 0 is any free one.";
                Failure::new("listen", exit::REFUSED, message).caused_by(&error).hint(hint)
            }
        })?
        .with_pages(tenure_dashboard::router);
    let sender = Sender::new(guard, SystemResolver, SendOptions::default())?;
    let deliverer = Deliverer::new(Arc::clone(&store), sender, keys);
    let own = own_worker(&store, session, deliverer, observer.clone())?;
    rule_own_gates(&store).await?;
    let worker = worker(&store, session, Around { waker, observer }).await?;
    let url = format!("http://{}", server.address());
    match session.out.is_json() {
        true => session.out.json(&json!({ "url": url, "store": session.settings.location.value.to_string() }))?,
        false => session.out.line(format!(
            "Tenure serves {url} on {}: the dashboard, and the API under /v1.",
            session.settings.location.value
        )),
    }
    session.out.flush()?;
    let (told, stopped) = tokio::sync::watch::channel(false);
    let until_told = || {
        let mut stopped = stopped.clone();
        async move {
            let _told_or_gone = stopped.wait_for(|told| *told).await;
        }
    };
    let serving = server.run_until(until_told());
    let telling = Teller::new(Arc::clone(&store)).run_until(until_told());
    // Without one of them something here would not be done any more: the server goes with it.
    let working = async {
        let worked = own.run_until(until_told()).await;
        told.send_replace(true);
        worked
    };
    let also_working = async {
        let Some(worker) = worker else { return Ok(()) };
        let worked = worker.run_until(until_told()).await;
        told.send_replace(true);
        worked.map(|_| ())
    };
    let stopping = async {
        stop.await;
        told.send_replace(true);
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        biased;
        ended = async { tokio::join!(serving, telling, working, also_working) } => {
            ended.2.and(ended.3).map_err(unheard).map(|()| Answer::Done)
        }
        () = stopping => Ok(Answer::Done),
    };
    if let Some(broker) = broker {
        broker.close().await;
    }
    served
}
