//! What a worker tells while it works, on standard error: for people, or one JSON object a line; and what others are told
//! of it, where the settings name somebody.

use std::io::IsTerminal;

use tenure_telemetry::Telemetry;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::failure::Failure;
use crate::settings::{LogFormat, LogLevel, Settings};

/// Sets the log up, before any runtime. A second time no log is set up. Whoever gets the answer closes it at the end.
pub(crate) fn start(settings: &Settings) -> Result<Telemetry, Failure> {
    let telemetry = Telemetry::start(&settings.telemetry.options()).map_err(|invalid| {
        match settings.telemetry.origin(invalid.field) {
            // What was said may hold a key: it is not repeated.
            Some(origin) => {
                Failure::usage("settings", format!("{origin}: {} is refused: {}", invalid.field, invalid.limit))
            }
            None => invalid.into(),
        }
    })?;
    let worker = &settings.worker;
    let level = match worker.log_level.value {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let log = fmt::layer::<Registry>().with_writer(std::io::stderr).with_target(false);
    let log = match worker.log.value {
        LogFormat::Json => log.json().flatten_event(true).with_filter(level).boxed(),
        LogFormat::Human => log.with_ansi(std::io::stderr().is_terminal()).with_filter(level).boxed(),
    };
    let mut layers = vec![log];
    layers.extend(telemetry.layer());
    let _first = tracing_subscriber::registry().with(layers).try_init();
    Ok(telemetry)
}
