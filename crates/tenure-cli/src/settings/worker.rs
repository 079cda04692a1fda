//! How a worker of this machine runs: its name, its log, how long it keeps ended jobs and how long it may take to stop.
//!
//! Every command checks them, not only the worker: a typing error in a file that many commands read is found by the
//! first of them.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use tenure_core::name::WorkerName;
use tenure_core::{Invalid, duration};

use super::file::SettingsFile;
use super::{HttpFlags, Lookup, Origin, Setting, variable};
use crate::failure::Failure;

/// How long ended jobs are kept where nobody says otherwise.
const RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 86_400);
/// Shorter than this and a job might be gone before anybody could look at it.
const RETENTION_MIN: Duration = Duration::from_secs(1);
/// How long running jobs may take to end where nobody says otherwise.
const GRACE_DEFAULT: Duration = Duration::from_secs(30);
/// As long as the longest lease: what takes longer is lost anyway.
const GRACE_MAX: Duration = Duration::from_secs(86_400);

/// Flags that say the same as the settings, and win over them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WorkerFlags {
    /// The worker's name, in leases and in the journal
    #[arg(long, value_name = "NAME", help_heading = "Worker options")]
    worker_id: Option<String>,
    /// How it logs: human or json [default: human]
    #[arg(long, value_name = "FORMAT", help_heading = "Worker options")]
    log: Option<String>,
    /// How much it logs: off, error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Worker options")]
    log_level: Option<String>,
    /// How long ended jobs are kept [default: 7d]
    #[arg(long, value_name = "DURATION", help_heading = "Worker options")]
    retention: Option<String>,
    /// How long running jobs may take to end when it is told to stop [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = "Worker options")]
    grace: Option<String>,
    /// Where the server listens, said by its own commands.
    #[arg(skip)]
    listen: Option<String>,
    /// What jobs of kind `http` may call: flags of the commands that run them.
    #[arg(skip)]
    pub(super) http: HttpFlags,
}

impl WorkerFlags {
    /// The same, and where a server listens.
    pub(crate) fn with_listen(&self, listen: Option<String>) -> Self {
        Self { listen, ..self.clone() }
    }

    /// The same, and what jobs of kind `http` may call.
    pub(crate) fn with_http(&self, http: HttpFlags) -> Self {
        Self { http, ..self.clone() }
    }
}

/// What a worker needs to know, checked.
#[derive(Debug)]
pub(crate) struct WorkerSettings {
    /// Its name; a worker without one makes one up.
    pub(crate) id: Option<Setting<WorkerName>>,
    pub(crate) log: Setting<LogFormat>,
    pub(crate) log_level: Setting<LogLevel>,
    /// How long ended jobs are kept.
    pub(crate) retention: Setting<Duration>,
    /// How long running jobs may take to end.
    pub(crate) grace: Setting<Duration>,
    /// Where a server of this machine listens.
    pub(crate) listen: Setting<SocketAddr>,
}

/// Who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogFormat {
    /// A person.
    #[default]
    Human,
    /// A program: one JSON object a line.
    Json,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl WorkerSettings {
    pub(super) fn resolve(flags: &WorkerFlags, env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let find = |flag: (&Option<String>, &'static str), names: &[&'static str], key: &str| {
            if let Some(value) = flag.0.clone() {
                return Ok(Some(Setting { value, origin: Origin::Flag(flag.1) }));
            }
            for name in names {
                if let said @ Some(_) = variable(name, env)? {
                    return Ok(said);
                }
            }
            Ok::<_, Failure>(file.and_then(|file| file.get(key)))
        };
        // The plain name is what process managers and container platforms set.
        let id = find((&flags.worker_id, "--worker-id"), &["TENURE_WORKER_ID", "WORKER_ID"], "worker_id")?;
        let log = find((&flags.log, "--log"), &["TENURE_LOG"], "log")?;
        let log_level = find((&flags.log_level, "--log-level"), &["TENURE_LOG_LEVEL"], "log_level")?;
        let retention = find((&flags.retention, "--retention"), &["TENURE_RETENTION"], "retention")?;
        let listen = find((&flags.listen, "--listen"), &["TENURE_LISTEN"], "listen")?;
        let grace = find((&flags.grace, "--grace"), &["TENURE_GRACE"], "grace")?;
        Ok(Self {
            id: id.map(|said| said.check(WorkerName::new)).transpose()?,
            log: or_default(log, LogFormat::default(), |text| LogFormat::parse(&text))?,
            log_level: or_default(log_level, LogLevel::default(), |text| LogLevel::parse(&text))?,
            retention: or_default(retention, RETENTION_DEFAULT, |text| read_retention(&text))?,
            listen: or_default(listen, tenure_server::Options::default().listen, |text| read_listen(&text))?,
            grace: or_default(grace, GRACE_DEFAULT, |text| read_grace(&text))?,
        })
    }
}

fn or_default<T>(
    said: Option<Setting<String>>,
    default: T,
    read: impl FnOnce(String) -> Result<T, Invalid>,
) -> Result<Setting<T>, Failure> {
    said.map_or(Ok(Setting { value: default, origin: Origin::Default }), |said| said.check(read))
}

fn read_retention(text: &str) -> Result<Duration, Invalid> {
    let retention = duration::parse("retention", text)?;
    if retention < RETENTION_MIN {
        return Err(Invalid::new("retention", text, "ended jobs are kept for at least 1s, such as 7d"));
    }
    Ok(retention)
}

fn read_listen(text: &str) -> Result<SocketAddr, Invalid> {
    let limit = "it is an address and a port, such as 127.0.0.1:7400 or [::1]:7400; port 0 is any free one";
    text.parse().map_err(|_| Invalid::new("listen", text, limit))
}

fn read_grace(text: &str) -> Result<Duration, Invalid> {
    let grace = duration::parse("grace", text)?;
    if grace > GRACE_MAX {
        return Err(Invalid::new("grace", text, "it is 0s to 1d, such as 30s"));
    }
    Ok(grace)
}

impl LogFormat {
    const ALL: [Self; 2] = [Self::Human, Self::Json];

    fn parse(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|format| format.as_str() == text);
        known.ok_or_else(|| Invalid::new("log", text, "it is human or json"))
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

impl LogLevel {
    const ALL: [Self; 6] = [Self::Off, Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    fn parse(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known.ok_or_else(|| Invalid::new("log level", text, "it is off, error, warn, info, debug or trace"))
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
