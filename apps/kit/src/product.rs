//! [`Product`]: how `tenure demo` shows a product, and what it gives it to stand on.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use tenure::Database;

use crate::check::Check;
use crate::{BoxError, Env};

/// A product that can be shown.
pub trait Product: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn says(&self) -> &'static str;

    /// Makes its tables, opens its simulated world, starts its workers, tells its story to the end, and checks what came of
    /// it. What goes on behind the answer ends when that is dropped.
    fn show(&self, stage: Stage) -> Showing;
}

/// A show under way.
pub type Showing = Pin<Box<dyn Future<Output = Result<Show, BoxError>> + Send>>;

/// What was shown.
pub struct Show {
    /// What had to be seen.
    pub checks: Vec<Check>,
    /// Sites, workers and whatever else goes on until this is dropped.
    pub going_on: Box<dyn Send>,
}

/// Where a product is shown: a migrated database that it may share with others, and a folder of its own.
#[derive(Clone)]
pub struct Stage {
    /// Jobs and tables.
    pub database: Database,
    /// Settings.
    pub env: Env,
    dir: PathBuf,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Stage {
    /// A stage; `tell` hears each sentence of the story.
    pub fn new(database: Database, dir: PathBuf, env: Env, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { database, env, dir, tell: Arc::new(tell) }
    }

    /// A folder for files, there until the show is over.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Tells whoever watches what happens.
    pub fn tell(&self, sentence: impl AsRef<str>) {
        (self.tell)(sentence.as_ref());
    }
}
