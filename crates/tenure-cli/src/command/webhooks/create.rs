//! `tenure webhooks create`.

use clap::Args;
use tenure_core::Events;
use tenure_core::name::TenantName;
use tenure_store::StoreError;
use tenure_webhooks::{EndpointError, Prefix, Secret, Wish};

use super::{endpoints, refused, show_new};
use crate::args::{WordArgs, limit, tenant};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks create --url https://example.com/hook --tenant acme
  tenure webhooks create --url https://example.com/hook --events 'job.*,run.ended' --header-prefix X-Acme-
  tenure webhooks create --callbacks --tenant acme       signs what jobs with a callback_url are told
  SECRET=$(tenure webhooks create --url https://example.com/hook --json | jq -r .secret)

Events: job.claimed, job.succeeded, job.retry, job.failed, job.dead, job.canceled, job.snoozed, job.released, job.lost,
job.cancel_requested, job.requeued, job.opened, run.created, run.sealed, run.ended, run.reopened, run.canceled,
webhook.disabled; job.*, run.* or * for all of them. How jobs ended, if left out.";

/// Make an endpoint; its secret is shown once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CreateArgs {
    /// Where to, https:// unless webhook_http is set
    #[arg(long, value_name = "URL", required_unless_present = "callbacks", conflicts_with = "callbacks")]
    url: Option<String>,
    /// Sign what jobs with a callback_url are told; a tenant has one of these
    #[arg(long)]
    callbacks: bool,
    /// What it is told, with commas between
    #[arg(long, value_name = "EVENTS", value_parser = events)]
    events: Option<Events>,
    /// How its own headers begin [default: X-Tenure-]
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    header_prefix: Option<Prefix>,
    /// A secret that the receiver has already, whsec_…; a new one is made otherwise
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    secret: Option<Secret>,
    /// Whose jobs it is told of; tenant `default` if left out
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<TenantName>,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: CreateArgs, session: &mut Session) -> Result<Answer, Failure> {
    let settings = session.settings.tenant.as_ref().map(|tenant| tenant.value.clone());
    let tenant = args.tenant.or(settings).unwrap_or_default();
    let wish = Wish {
        tenant: tenant.clone(),
        url: args.url,
        events: args.events.unwrap_or_default(),
        prefix: args.header_prefix.unwrap_or_default(),
        secret: args.secret,
        word: session.word(args.word),
    };
    let made = endpoints(session)?.create(&*session.store_to_add().await?, wish).await;
    let (record, secret) = made.map_err(|error| match error {
        EndpointError::Store(error @ StoreError::NotFound(_)) => {
            Failure::from(error).hint(format!("Make it first: tenure tenants create {tenant}"))
        }
        error => refused(error),
    })?;
    show_new(&record, &secret, session)?;
    Ok(Answer::Done)
}

pub(super) fn events(text: &str) -> Result<Events, String> {
    text.parse().map_err(limit)
}

pub(super) fn prefix(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(limit)
}

pub(super) fn secret(text: &str) -> Result<Secret, String> {
    text.parse().map_err(limit)
}
