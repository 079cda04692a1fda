//! `tenure webhooks set`, `enable`, `disable`, `rotate`, `ping` and `remove`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::{EndpointId, Events};
use tenure_store::webhook::{ChangeEndpoint, OperateEndpoint};
use tenure_webhooks::Prefix;
use tenure_webhooks::endpoints::OVERLAP;

use super::create::{events, prefix};
use super::{endpoint_id, endpoints, refused, show_changed, show_new};
use crate::args::{TenantArg, WordArgs, limit};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const SET: &str = "\
Examples:
  tenure webhooks set 01933c5e-7b5a-7000-8000-000000000001 --events '*'
  tenure webhooks set 01933c5e-7b5a-7000-8000-000000000001 --url https://example.org/hook";
const ENABLE: &str = "\
Examples:
  tenure webhooks enable 01933c5e-7b5a-7000-8000-000000000001

It is told what happens from now on. What failed before: tenure webhooks resend";
const DISABLE: &str = "\
Examples:
  tenure webhooks disable 01933c5e-7b5a-7000-8000-000000000001 --reason 'they are moving'";
const ROTATE: &str = "\
Examples:
  tenure webhooks rotate 01933c5e-7b5a-7000-8000-000000000001
  tenure webhooks rotate 01933c5e-7b5a-7000-8000-000000000001 --overlap 0s   the old one leaked";
const PING: &str = "\
Examples:
  tenure webhooks ping 01933c5e-7b5a-7000-8000-000000000001";
const REMOVE: &str = "\
Examples:
  tenure webhooks remove 01933c5e-7b5a-7000-8000-000000000001 --reason 'they left'";

/// Which endpoint, who and why.
#[derive(Debug, Args)]
struct Which {
    /// ENDPOINT in tenure webhooks list
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_id)]
    endpoint: EndpointId,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    word: WordArgs,
}

/// Change where an endpoint leads, what it is told, or its headers
#[derive(Debug, Args)]
#[command(after_help = SET)]
pub(super) struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// Where to
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// What it is told, with commas between
    #[arg(long, value_name = "EVENTS", value_parser = events)]
    events: Option<Events>,
    /// How its own headers begin
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    header_prefix: Option<Prefix>,
}

/// Let an endpoint be told again
#[derive(Debug, Args)]
#[command(after_help = ENABLE)]
pub(super) struct EnableArgs {
    #[command(flatten)]
    which: Which,
}

/// Let an endpoint be told nothing
#[derive(Debug, Args)]
#[command(after_help = DISABLE)]
pub(super) struct DisableArgs {
    #[command(flatten)]
    which: Which,
}

/// Give an endpoint another secret; it is shown once
#[derive(Debug, Args)]
#[command(after_help = ROTATE)]
pub(super) struct RotateArgs {
    #[command(flatten)]
    which: Which,
    /// How long both secrets sign [default: 1d]
    #[arg(long, value_name = "DURATION", value_parser = time)]
    overlap: Option<Duration>,
}

/// Send an endpoint the event webhook.pinged
#[derive(Debug, Args)]
#[command(after_help = PING)]
pub(super) struct PingArgs {
    #[command(flatten)]
    which: Which,
}

/// Remove an endpoint and its deliveries
#[derive(Debug, Args)]
#[command(after_help = REMOVE)]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    which: Which,
}

impl Which {
    fn change(self, session: &Session) -> ChangeEndpoint {
        ChangeEndpoint::new(session.sight(self.tenant), self.endpoint, session.word(self.word))
    }

    fn operate(self, session: &Session) -> OperateEndpoint {
        let (sight, word) = (session.sight(self.tenant), session.word(self.word));
        OperateEndpoint { sight, endpoint: self.endpoint, word }
    }
}

pub(super) async fn set(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    if let Some(url) = &args.url {
        endpoints(session)?.check_url(url).map_err(|why| refused(why.into()))?;
    }
    let change = ChangeEndpoint {
        url: args.url,
        events: args.events,
        prefix: args.header_prefix.map(|prefix| prefix.to_string()),
        ..args.which.change(session)
    };
    let record = session.store().await?.change_endpoint(change).await?;
    show_changed(&record, &format!("is told {}", record.events), session)
}

pub(super) async fn enable(args: EnableArgs, session: &mut Session) -> Result<Answer, Failure> {
    let change = ChangeEndpoint { enabled: Some(true), ..args.which.change(session) };
    let record = session.store().await?.change_endpoint(change).await?;
    show_changed(&record, "is enabled", session)
}

pub(super) async fn disable(args: DisableArgs, session: &mut Session) -> Result<Answer, Failure> {
    let change = ChangeEndpoint { enabled: Some(false), ..args.which.change(session) };
    let record = session.store().await?.change_endpoint(change).await?;
    show_changed(&record, "is disabled", session)
}

pub(super) async fn rotate(args: RotateArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (maker, overlap) = (endpoints(session)?, args.overlap.unwrap_or(OVERLAP));
    let OperateEndpoint { sight, endpoint, word } = args.which.operate(session);
    let store = session.store().await?;
    let (record, secret) = maker.rotate(&*store, sight, endpoint, overlap, word).await.map_err(refused)?;
    show_new(&record, &secret, session)?;
    Ok(Answer::Done)
}

pub(super) async fn ping(args: PingArgs, session: &mut Session) -> Result<Answer, Failure> {
    let request = args.which.operate(session);
    let endpoint = request.endpoint;
    session.store().await?.ping_endpoint(request).await?;
    match session.out.is_json() {
        true => session.out.json(&json!({ "id": endpoint.to_string(), "pinged": true }))?,
        false => session.out.line(format!(
            "Endpoint {endpoint} is pinged by the next server that looks; see: tenure webhooks deliveries --endpoint {endpoint}"
        )),
    }
    Ok(Answer::Done)
}

pub(super) async fn remove(args: RemoveArgs, session: &mut Session) -> Result<Answer, Failure> {
    let request = args.which.operate(session);
    let endpoint = request.endpoint;
    session.store().await?.remove_endpoint(request).await?;
    match session.out.is_json() {
        true => session.out.json(&json!({ "id": endpoint.to_string(), "removed": true }))?,
        false => session.out.line(format!("Endpoint {endpoint} is removed, and its deliveries with it.")),
    }
    Ok(Answer::Done)
}

fn time(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("overlap", text).map_err(limit)
}
