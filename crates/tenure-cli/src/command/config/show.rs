//! `tenure config show`: every setting, its value and where it comes from.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::duration;

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::settings::{Origin, Setting, Settings, WorkerFlags};
use crate::table::{Cell, Table};

const EXAMPLES: &str = "\
Examples:
  tenure config show                       every setting and where it comes from
  TENURE_TENANT=acme tenure config show    the environment wins over tenure.toml
  tenure --data-dir ./data config show     a flag wins over both

tenure.toml knows these keys, all of them text, and the tables gates and schedules:
  database  = \"postgres://localhost/app\"   or an SQLite file, relative to tenure.toml
  data_dir  = \"data\"                       used where no database is named
  pooler    = \"transaction\"                the database is behind PgBouncer with pool_mode = transaction
  direct_database = \"postgres://db/app\"   the same database without the pooler, so that workers are woken
  tenant    = \"acme\"                       for whom jobs are enqueued, whose jobs are shown
  actor     = \"ops\"                        who appears in the journal
  worker_id = \"mail-1\"                     a worker's name
  log       = \"json\"                       or human
  log_level = \"info\"                       off, error, warn, info, debug or trace
  retention = \"7d\"                         how long ended jobs are kept
  grace     = \"30s\"                        how long running jobs may take to end
  listen    = \"127.0.0.1:7400\"             where tenure server listens
  webhook_keys  = \"1:…\"                   what seals the secrets of endpoints: tenure webhooks key
  webhook_allow = \"10.0.0.0/8\"            addresses that webhooks may reach although they are not public
  webhook_http  = \"true\"                  whether they may be sent by http://
  webhook_ports = \"443,8443\"              or any
  http_allow = \"api.example.com\"          hosts that jobs of kind http may call; without it the kind is off
  http_ports = \"80,443\"                  or any
A broker that wakes workers sooner than they poll is a table:
  [rabbitmq]
  url         = \"amqps://tenure:secret@broker/jobs\"   or amqp://
  exchange    = \"tenure\"           declared: topic, durable
  routing_key = \"jobs.trigger\"
  queue       = \"wakes\"            shared by processes; each has its own where none is named
  ca          = \"ca.pem\"           who may sign the broker's certificate, relative to tenure.toml
  publish     = true               tenure server says that a job was stored
  required    = true               /v1/health/ready is 503 while the broker is away
Who is told what a worker or a server does is a table, too:
  [telemetry]
  otlp_endpoint = \"http://127.0.0.1:4318\"   a collector of traces, by OTLP over HTTP
  service_name  = \"tenure\"                  how it is called there
  sample_ratio  = \"0.1\"                     how many of the traces that begin here are recorded
  sentry_dsn    = \"https://KEY@sentry/1\"    told of jobs that failed for good and of panics
Each has a variable, TENURE_TENANT and so on; the database is TENURE_DATABASE_URL, TENURE_DATABASE_FILE or
DATABASE_URL, the one without the pooler TENURE_DIRECT_DATABASE_URL, the worker's name TENURE_WORKER_ID or
WORKER_ID, the broker TENURE_RABBITMQ_URL and so on, the collector TENURE_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_ENDPOINT, Sentry TENURE_SENTRY_DSN or SENTRY_DSN.
Passwords are never shown.";

/// Show every setting and where it comes from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub(super) worker: WorkerFlags,
}

/// A setting as it is shown; `None` where nobody said anything and there is no default.
struct Row {
    name: &'static str,
    value: Option<String>,
    origin: String,
}

pub(super) fn run(session: &mut Session) -> Result<Answer, Failure> {
    let rows = rows(&session.settings);
    let file = session.settings.file.as_ref().map(|path| path.display().to_string());
    if session.out.is_json() {
        let entry = |row: Row| (row.name.to_owned(), json!({ "value": row.value, "from": row.origin }));
        let settings: serde_json::Map<_, _> = rows.into_iter().map(entry).collect();
        session.out.json(&json!({ "file": file, "settings": settings }))?;
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for row in rows {
        let value = row.value.map_or_else(|| Cell::dim("-"), Cell::from);
        table.row(vec![row.name.into(), value, Cell::dim(row.origin)]);
    }
    session.out.table(&table);
    if file.is_none() {
        session.out.line("\nNo tenure.toml in this directory.");
    }
    Ok(Answer::Done)
}

fn rows(settings: &Settings) -> [Row; 28] {
    let (worker, webhooks, rabbitmq) = (&settings.worker, &settings.webhooks, &settings.rabbitmq);
    let telemetry = &settings.telemetry;
    let tenant = optional("tenant", settings.tenant.as_ref(), ToString::to_string);
    let mut actor = optional("actor", settings.actor.as_ref(), Clone::clone);
    // Where nobody says who acts, it is the user.
    actor.value = actor.value.or_else(|| settings.actor(None));
    [
        said("database", &settings.location, ToString::to_string),
        said("pooler", &settings.postgres.pooler, |pooler| pooler.as_str().to_owned()),
        optional("direct_database", settings.postgres.direct_database.as_ref(), ToString::to_string),
        tenant,
        actor,
        optional("worker_id", worker.id.as_ref(), ToString::to_string),
        said("log", &worker.log, |log| log.as_str().to_owned()),
        said("log_level", &worker.log_level, |level| level.as_str().to_owned()),
        said("retention", &worker.retention, format),
        said("grace", &worker.grace, format),
        said("listen", &worker.listen, ToString::to_string),
        optional("webhook_keys", webhooks.keys.as_ref(), |_| "set".to_owned()),
        optional("webhook_allow", webhooks.allow.as_ref(), |ranges| joined(ranges)),
        optional("webhook_http", webhooks.http.as_ref(), ToString::to_string),
        optional("webhook_ports", webhooks.ports.as_ref(), |ports| shown_ports(ports)),
        optional("http_allow", settings.http.allow.as_ref(), |hosts| joined(hosts)),
        optional("http_ports", settings.http.ports.as_ref(), |ports| shown_ports(ports)),
        optional("rabbitmq.url", rabbitmq.url.as_ref(), ToString::to_string),
        said("rabbitmq.exchange", &rabbitmq.exchange, Clone::clone),
        said("rabbitmq.routing_key", &rabbitmq.routing_key, Clone::clone),
        optional("rabbitmq.queue", rabbitmq.queue.as_ref(), Clone::clone),
        optional("rabbitmq.ca", rabbitmq.ca.as_ref(), |path| path.display().to_string()),
        said("rabbitmq.publish", &rabbitmq.publish, ToString::to_string),
        said("rabbitmq.required", &rabbitmq.required, ToString::to_string),
        optional("telemetry.otlp_endpoint", telemetry.otlp_endpoint.as_ref(), ToString::to_string),
        said("telemetry.service_name", &telemetry.service_name, Clone::clone),
        said("telemetry.sample_ratio", &telemetry.sample_ratio, ToString::to_string),
        optional("telemetry.sentry_dsn", telemetry.sentry_dsn.as_ref(), ToString::to_string),
    ]
}

fn said<T>(name: &'static str, setting: &Setting<T>, show: impl FnOnce(&T) -> String) -> Row {
    Row { name, value: Some(show(&setting.value)), origin: setting.origin.to_string() }
}

fn optional<T>(name: &'static str, setting: Option<&Setting<T>>, show: impl FnOnce(&T) -> String) -> Row {
    let nobody = Row { name, value: None, origin: Origin::Default.to_string() };
    setting.map_or(nobody, |setting| said(name, setting, show))
}

fn shown_ports(ports: &[u16]) -> String {
    if ports.is_empty() { "any".to_owned() } else { joined(ports) }
}

fn joined<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn format(duration: &Duration) -> String {
    duration::format(*duration)
}
