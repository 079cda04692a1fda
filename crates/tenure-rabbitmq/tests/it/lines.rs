//! What is told, by us and by the driver below us.

use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::{Level, span};

/// Everything that was told in this process down to debug; tests look for their own broker's port.
static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) target: &'static str,
    pub(crate) text: String,
}

/// Begins to keep lines.
pub(crate) fn keep() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| tracing::subscriber::set_global_default(Keeper).expect("the only subscriber"));
}

/// Our own lines of this level about the broker at this port.
pub(crate) fn told(level: Level, port: u16) -> Vec<String> {
    let about = format!(":{port}");
    let ours = |line: &&Line| line.level == level && line.target.starts_with("tenure") && line.text.contains(&about);
    all().iter().filter(ours).map(|line| line.text.clone()).collect()
}

pub(crate) fn all() -> Vec<Line> {
    LINES.lock().unwrap().clone()
}

struct Keeper;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl tracing::Subscriber for Keeper {
    fn enabled(&self, about: &tracing::Metadata<'_>) -> bool {
        *about.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let about = event.metadata();
        LINES.lock().unwrap().push(Line { level: *about.level(), target: about.target(), text: text.0 });
    }
}
