//! What a worker tells while it works, on standard error: for people, or one JSON object a line; and what others are told
//! of it, where the settings name somebody.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal;
use std::panic::PanicHookInfo;

use tenure_core::text::{printable, printable_json};
use tenure_telemetry::Telemetry;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::failure::Failure;
use crate::paint::Paint;
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
    let log = fmt::layer::<Registry>().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let log = match worker.log.value {
        LogFormat::Json => {
            let log = log.json().flatten_event(true);
            log.map_event_format(|format| OneLine { format, shown: printable_json, paint: None })
                .with_filter(level)
                .boxed()
        }
        LogFormat::Human => {
            let paint = std::io::stderr().is_terminal().then_some(level_paint as fn(Level) -> Paint);
            log.map_event_format(|format| OneLine { format, shown: printable, paint }).with_filter(level).boxed()
        }
    };
    let mut layers = vec![log];
    layers.extend(telemetry.layer());
    if tracing_subscriber::registry().with(layers).try_init().is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(telemetry)
}

/// A format of one line for each event, whatever its texts hold: a tenant chooses error texts, panic messages and names,
/// and a line break in one of them would begin a line of the tenant's own.
struct OneLine<F> {
    format: F,
    /// Writes out what steers a terminal or hides.
    shown: fn(&str) -> String,
    /// The colour of a level, on a terminal. Added after everything else is written out.
    paint: Option<fn(Level) -> Paint>,
}

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        let mut line = (self.shown)(line.trim_end_matches('\n'));
        if let Some(paint) = self.paint {
            let level = *event.metadata().level();
            // The level comes before every text of the event.
            line = line.replacen(level.as_str(), &paint(level).apply(level.as_str(), true), 1);
        }
        writeln!(writer, "{line}")
    }
}

const fn level_paint(level: Level) -> Paint {
    match level {
        Level::ERROR => Paint::Red,
        Level::WARN => Paint::Yellow,
        Level::INFO => Paint::Green,
        Level::DEBUG => Paint::Cyan,
        Level::TRACE => Paint::Dim,
    }
}

/// Logs a panic in place of the standard hook, which writes its message to standard error as it is, over several lines.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let backtrace = Backtrace::capture();
    let backtrace = matches!(backtrace.status(), BacktraceStatus::Captured).then_some(backtrace);
    let backtrace = backtrace.map(tracing::field::display);
    tracing::error!(panic = message, place, thread = thread.name(), backtrace, "a thread panicked");
}
