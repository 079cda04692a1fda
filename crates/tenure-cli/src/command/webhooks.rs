//! `tenure webhooks`: who is told what happened, and what came of it.

mod change;
mod create;
mod deliveries;
mod key;
mod list;
mod listen;
mod resend;

use clap::{Args, Subcommand};
use tenure_core::EndpointId;
use tenure_server::wire::webhook::{EndpointDocument, EndpointLine};
use tenure_store::webhook::EndpointRecord;
use tenure_webhooks::{EndpointError, Endpoints, Secret};

use super::{Answer, Session};
use crate::args::limit;
use crate::failure::{Failure, exit};

const EXAMPLES: &str = "\
Examples:
  tenure webhooks create --url https://example.com/hook --tenant acme --events job.succeeded,job.dead
  tenure webhooks ping 01933c5e-7b5a-7000-8000-000000000001
  tenure webhooks deliveries --state failed
  tenure webhooks resend --endpoint 01933c5e-7b5a-7000-8000-000000000001 --since 2026-11-15T09:00:00Z
  tenure webhooks rotate 01933c5e-7b5a-7000-8000-000000000001 --overlap 1d
  tenure webhooks listen --secret whsec_…           a receiver to try things out with

Deliveries are sent by tenure server (or tenure dev). Each is signed, tried five times, and kept in a log.";

/// Make webhook endpoints, see what was delivered, send again
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WebhooksArgs {
    #[command(subcommand)]
    what: WebhooksCommand,
}

#[derive(Debug, Subcommand)]
enum WebhooksCommand {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Set(change::SetArgs),
    Enable(change::EnableArgs),
    Disable(change::DisableArgs),
    Rotate(change::RotateArgs),
    Ping(change::PingArgs),
    Remove(change::RemoveArgs),
    Deliveries(deliveries::DeliveriesArgs),
    Show(deliveries::ShowArgs),
    Resend(resend::ResendArgs),
    Listen(listen::ListenArgs),
    Key(key::KeyArgs),
}

pub(crate) async fn run(args: WebhooksArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        WebhooksCommand::Create(args) => create::run(args, session).await,
        WebhooksCommand::List(args) => list::run(args, session).await,
        WebhooksCommand::Set(args) => change::set(args, session).await,
        WebhooksCommand::Enable(args) => change::enable(args, session).await,
        WebhooksCommand::Disable(args) => change::disable(args, session).await,
        WebhooksCommand::Rotate(args) => change::rotate(args, session).await,
        WebhooksCommand::Ping(args) => change::ping(args, session).await,
        WebhooksCommand::Remove(args) => change::remove(args, session).await,
        WebhooksCommand::Deliveries(args) => deliveries::run(args, session).await,
        WebhooksCommand::Show(args) => deliveries::show(args, session).await,
        WebhooksCommand::Resend(args) => resend::run(args, session).await,
        WebhooksCommand::Listen(args) => listen::run(args, session).await,
        WebhooksCommand::Key(args) => key::run(&args, session),
    }
}

/// What makes endpoints here.
fn endpoints(session: &Session) -> Result<Endpoints, Failure> {
    let settings = &session.settings;
    Ok(Endpoints::new(settings.webhooks.guard(), settings.webhooks.keys(&settings.location.value)?))
}

fn refused(error: EndpointError) -> Failure {
    match error {
        EndpointError::Store(error) => error.into(),
        EndpointError::Refused(why) => Failure::new("url", exit::USAGE, why.to_string()).hint(
            "To reach a machine of your own, say so: webhook_allow = \"10.0.0.0/8\", webhook_http, webhook_ports (tenure config show --help).",
        ),
        error => Failure::new("webhooks_off", exit::USAGE, error.to_string()),
    }
}

/// Shows an endpoint whose secret is new, this once.
fn show_new(record: &EndpointRecord, secret: &Secret, session: &mut Session) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.json(&EndpointDocument::new(record, secret));
    }
    session.out.line(secret.text().as_str());
    session.out.line("");
    session.out.line(format!("Endpoint {} of tenant {} is told {}.", record.id, record.tenant, record.events));
    session.out.line("Its secret is shown this once: give it to the receiver, who checks signatures with it.");
    Ok(())
}

/// Says what became of an endpoint.
fn show_changed(record: &EndpointRecord, what: &str, session: &mut Session) -> Result<Answer, Failure> {
    match session.out.is_json() {
        true => session.out.json(&EndpointLine::from(record))?,
        false => session.out.line(format!("Endpoint {} {what}.", record.id)),
    }
    Ok(Answer::Done)
}

fn endpoint_id(text: &str) -> Result<EndpointId, String> {
    text.parse().map_err(limit)
}
