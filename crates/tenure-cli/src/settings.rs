//! Settings in one precedence: flag > environment > `tenure.toml` > default.
//!
//! Each value keeps where it came from, so that a refusal names the flag, the variable or the line of the file, and
//! `tenure config show` can show it. `database` and `data_dir` answer the same question, so the first *source* that says
//! either wins (`--data-dir` beats `DATABASE_URL`); inside one source `database` wins. An empty variable is an unset one.
//!
//! - [`mod@file`]: `tenure.toml`, checked key by key
//! - [`gates`], [`schedules`]: its tables of gates and schedules
//! - [`rabbitmq`]: a broker that wakes workers; [`telemetry`]: who is told what they do
//! - [`database_file`]: a file that holds the URL of a database
//! - [`location`]: what `database` and `data_dir` may say; [`pooler`]: what stands in front of a Postgres server
//! - [`worker`]: how a worker of this machine runs; [`webhooks`]: whom webhooks may reach;
//!   [`http`]: what jobs of kind `http` may call

mod database_file;
mod file;
mod gates;
mod http;
mod keys;
mod location;
mod pooler;
mod rabbitmq;
mod schedules;
mod telemetry;
mod webhooks;
mod worker;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use tenure_core::Invalid;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::name::{TenantName, check_text};

use crate::args::Global;
use crate::failure::Failure;
use file::SettingsFile;
pub(crate) use http::{HttpFlags, HttpSettings};
pub(crate) use location::Location;
pub(crate) use pooler::PoolerSettings;
pub(crate) use rabbitmq::RabbitSettings;
pub(crate) use schedules::FileSchedule;
pub(crate) use telemetry::TelemetrySettings;
pub(crate) use webhooks::{WebhookSettings, new_key as new_webhook_key};
pub(crate) use worker::{LogFormat, LogLevel, WorkerFlags, WorkerSettings};

/// Every user of the machine sees the flags of every process.
const PASSWORD_IN_FLAG: &str = "the password in --database stands in the process list, where every user of this machine \
    reads it; give the URL in TENURE_DATABASE_URL or in a file (--database-file PATH), or leave the password out and set \
    PGPASSWORD or PGPASSFILE";

/// Everything a command needs to know, checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) location: Setting<Location>,
    /// How a Postgres server is reached.
    pub(crate) postgres: PoolerSettings,
    /// For whom jobs are enqueued and whose jobs are shown.
    pub(crate) tenant: Option<Setting<TenantName>>,
    /// Who appears in the journal.
    pub(crate) actor: Option<Setting<String>>,
    /// How a worker of this machine runs.
    pub(crate) worker: WorkerSettings,
    /// Whom webhooks may reach, and what seals their secrets.
    pub(crate) webhooks: WebhookSettings,
    /// What jobs of kind `http` may call.
    pub(crate) http: HttpSettings,
    /// Who is told what a worker or a server does.
    pub(crate) telemetry: TelemetrySettings,
    /// Who wakes workers besides the store.
    pub(crate) rabbitmq: RabbitSettings,
    /// What gates allow, as the file says.
    pub(crate) gates: Vec<(Pattern, GateRule)>,
    /// What is asked for again and again, as the file says.
    pub(crate) schedules: Vec<FileSchedule>,
    /// The file that was read, if any.
    pub(crate) file: Option<PathBuf>,
    /// Warnings for the user, printed before the command runs.
    pub(crate) warnings: Vec<String>,
}

/// A value and who said it.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    File { path: PathBuf, line: usize, key: &'static str },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line, key } => write!(f, "{} line {line}, {key}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The environment: the process's own, or a test's.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Settings {
    /// Reads flags, the process's environment and the settings file.
    pub(crate) fn read(flags: &Global, worker: &WorkerFlags) -> Result<Self, Failure> {
        Self::resolve(flags, worker, &|name| std::env::var_os(name))
    }

    fn resolve(flags: &Global, worker: &WorkerFlags, env: Lookup) -> Result<Self, Failure> {
        let file = find_file(flags.config.as_deref(), env)?;
        let file = file.map(|path| SettingsFile::read(&path)).transpose()?;
        let file = file.as_ref();
        let tenant = first("TENURE_TENANT", "tenant", env, file)?;
        let actor = first("TENURE_ACTOR", "actor", env, file)?;
        let mut warnings = Vec::new();
        Ok(Self {
            location: find_location(flags, env, file, &mut warnings)?,
            postgres: PoolerSettings::resolve(flags, env, file)?,
            tenant: tenant.map(|said| said.check(TenantName::new)).transpose()?,
            actor: actor.map(|said| said.check(|name| check_text("actor", &name).map(|()| name))).transpose()?,
            worker: WorkerSettings::resolve(worker, env, file)?,
            webhooks: WebhookSettings::resolve(env, file)?,
            http: HttpSettings::resolve(&worker.http, env, file)?,
            telemetry: TelemetrySettings::resolve(env, file)?,
            rabbitmq: RabbitSettings::resolve(env, file)?,
            gates: file.map(|file| file.gates.clone()).unwrap_or_default(),
            schedules: file.map(|file| file.schedules.clone()).unwrap_or_default(),
            file: file.map(|file| file.path.clone()),
            warnings,
        })
    }

    /// Who appears in the journal: the flag, the setting, the user's name.
    pub(crate) fn actor(&self, flag: Option<String>) -> Option<String> {
        let user = || ["USER", "USERNAME", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
        let usable = |name: &String| check_text("actor", name).is_ok();
        flag.or_else(|| self.actor.as_ref().map(|actor| actor.value.clone())).or_else(|| user().filter(usable))
    }
}

impl<T> Setting<T> {
    fn check<U>(self, read: impl FnOnce(T) -> Result<U, Invalid>) -> Result<Setting<U>, Failure> {
        let Self { value, origin } = self;
        let value = read(value).map_err(|invalid| Failure::usage("settings", format!("{origin}: {invalid}")))?;
        Ok(Setting { value, origin })
    }
}

/// The settings file: the named one must be there, the one in this directory need not.
fn find_file(flag: Option<&Path>, env: Lookup) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = flag {
        return Ok(Some(path.to_owned()));
    }
    if let Some(path) = env("TENURE_CONFIG").filter(|value| !value.is_empty()) {
        return Ok(Some(path.into()));
    }
    let here = PathBuf::from("tenure.toml");
    let there = here.try_exists().map_err(|error| file::unreadable(&here, &error))?;
    Ok(there.then_some(here))
}

/// The database that `--database` or `--database-file` names.
pub(crate) fn database_of_flags(
    flags: &Global,
    warnings: &mut Vec<String>,
) -> Result<Option<Setting<Location>>, Failure> {
    if let Some(value) = flags.database.clone() {
        let said = Setting { value, origin: Origin::Flag("--database") };
        let location = said.check(|text| Location::parse(&text, Path::new("")))?;
        if location.value.has_password() {
            warnings.push(PASSWORD_IN_FLAG.to_owned());
        }
        return Ok(Some(location));
    }
    let path = flags.database_file.as_deref();
    path.map(|path| database_file::read(path, Origin::Flag("--database-file"), warnings)).transpose()
}

fn find_location(
    flags: &Global,
    env: Lookup,
    file: Option<&SettingsFile>,
    warnings: &mut Vec<String>,
) -> Result<Setting<Location>, Failure> {
    if let Some(said) = database_of_flags(flags, warnings)? {
        return Ok(said);
    }
    if let Some(value) = flags.data_dir.clone() {
        let said = Setting { value, origin: Origin::Flag("--data-dir") };
        return said.check(|text| Location::in_dir(&text, Path::new("")));
    }
    if let Some(said) = variable("TENURE_DATABASE_URL", env)? {
        return said.check(|text| Location::parse(&text, Path::new("")));
    }
    if let Some(Setting { value: path, origin }) = variable("TENURE_DATABASE_FILE", env)? {
        return database_file::read(Path::new(&path), origin, warnings);
    }
    if let Some(said) = variable("DATABASE_URL", env)? {
        return said.check(|text| Location::parse(&text, Path::new("")));
    }
    if let Some(said) = variable("TENURE_DATA_DIR", env)? {
        return said.check(|text| Location::in_dir(&text, Path::new("")));
    }
    // A relative path in the file starts at the file, wherever the command is run.
    let base = file.and_then(|file| file.path.parent()).unwrap_or(Path::new(""));
    if let Some(said) = file.and_then(|file| file.get("database")) {
        return said.check(|text| Location::parse(&text, base));
    }
    if let Some(said) = file.and_then(|file| file.get("data_dir")) {
        return said.check(|text| Location::in_dir(&text, base));
    }
    Ok(Setting { value: Location::default_for_user(env)?, origin: Origin::Default })
}

/// The variable, or else the key of the file.
fn first(
    name: &'static str,
    key: &'static str,
    env: Lookup,
    file: Option<&SettingsFile>,
) -> Result<Option<Setting<String>>, Failure> {
    Ok(variable(name, env)?.or_else(|| file.and_then(|file| file.get(key))))
}

fn variable(name: &'static str, env: Lookup) -> Result<Option<Setting<String>>, Failure> {
    match env(name).filter(|value| !value.is_empty()).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(Setting { value, origin: Origin::Variable(name) })),
        Some(Err(_)) => Err(Failure::usage("settings", format!("{name} is refused: it is not UTF-8 text"))),
    }
}
