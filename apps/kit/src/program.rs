//! The `main` of a product: arguments, a log on standard error, a runtime, the database, and errors as one line.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use tenure::Database;

use crate::{BoxError, Env};

/// Where jobs and tables are, for every command of every product.
#[derive(Debug, Clone, Args)]
pub struct At {
    /// postgres://…, or the path of a file; DATABASE_URL unless given
    #[arg(long, value_name = "URL or FILE", global = true)]
    database: Option<String>,
}

impl At {
    /// Opens it, with Tenure's schema and the product's tables.
    pub async fn open(&self, env: &Env, tables: &'static str) -> Result<Database, BoxError> {
        let named = self.database.clone().or_else(|| env.text("DATABASE_URL"));
        let place = named.ok_or("no database was named: say --database FILE, or set DATABASE_URL")?;
        let database = Database::open(&place).await?;
        tenure::migrate(&database).await?;
        database.make_tables(tables).await?;
        Ok(database)
    }
}

/// Reads the arguments and runs `work`; an error is one line and exit code 1.
pub fn run<A: Parser, F: Future<Output = Result<(), BoxError>>>(work: impl FnOnce(A, Env) -> F) -> ExitCode {
    let arguments = A::parse();
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    // Whoever embeds it may have a log of their own.
    let _first = log.try_init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return told(&error.into()),
    };
    let ran = runtime.block_on(work(arguments, Env::of_process()));
    // A handler that blocks its thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => told(&error),
    }
}

fn told(error: &BoxError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}
