//! What a worker tells while it works, on standard error: for people, or one JSON object a line.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;

use crate::settings::{LogFormat, LogLevel, WorkerSettings};

/// Sets the log up. A second time nothing happens.
pub(crate) fn start(settings: &WorkerSettings) {
    let level = match settings.log_level.value {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    let _first = match settings.log.value {
        LogFormat::Json => log.json().flatten_event(true).try_init(),
        LogFormat::Human => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
}
