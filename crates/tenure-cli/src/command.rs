//! What each subcommand does, one file each.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod enqueue;
pub(crate) mod gates;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod operations;
pub(crate) mod partitions;
pub(crate) mod queues;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod server;
pub(crate) mod stats;
pub(crate) mod tenants;
pub(crate) mod usage;
pub(crate) mod webhooks;
pub(crate) mod worker;
pub(crate) mod workers;

use std::process::ExitCode;
use std::sync::Arc;

use tenure_core::name::TenantName;
use tenure_store::Store;
use tenure_store::operate::Word;
use tenure_store::record::Sight;

use crate::args::{Cli, Command, TenantArg, WordArgs};
use crate::failure::{Failure, exit};
use crate::open::{self, Purpose};
use crate::output::Output;
use crate::settings::Settings;

/// What every command gets: the settings, and where to write.
pub(crate) struct Session {
    pub(crate) settings: Settings,
    pub(crate) out: Output,
}

/// How a command that could answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// The answer is bad news: some were refused, or a check found something.
    Findings,
}

/// Runs one command, prints what it answers and says how the process ends.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let json = cli.global.json;
    match dispatch(cli) {
        Ok(Answer::Done) => ExitCode::from(exit::DONE),
        Ok(Answer::Findings) => ExitCode::from(exit::REFUSED),
        Err(failure) => {
            failure.print(json);
            ExitCode::from(failure.exit())
        }
    }
}

fn dispatch(cli: Cli) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    let mut out = Output::new(cli.global.json);
    // The demo has a store of its own and a script is the same everywhere: neither needs settings.
    let without_settings = match &cli.command {
        Command::Demo(args) => Some(demo::run(args, &mut out)),
        Command::Completions(args) => Some(completions::run(args, &mut out)),
        Command::Bench(args) => Some(bench::run(args, &cli.global, &mut out)),
        Command::BenchPart(_) => Some(bench::run_part()),
        _ => None,
    };
    if let Some(answer) = without_settings {
        out.flush()?;
        return answer;
    }
    let settings = Settings::read(&cli.global, &cli.command.worker_flags())?;
    for warning in &settings.warnings {
        crate::failure::warn(warning, cli.global.json);
    }
    let mut session = Session { settings, out };
    // What goes on until it is told to stop has threads of its own.
    let service = match &cli.command {
        Command::Worker(args) => Some(worker::run(args, &mut session)),
        Command::Server(args) => Some(server::run(args, &mut session)),
        Command::Dev(args) => Some(dev::run(args, &mut session)),
        _ => None,
    };
    if let Some(answer) = service {
        session.out.flush()?;
        return answer;
    }
    let answer = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::run(&args, &mut session.out),
            Command::Worker(args) => worker::run(&args, &mut session),
            Command::Server(args) => server::run(&args, &mut session),
            Command::Dev(args) => dev::run(&args, &mut session),
            Command::Enqueue(args) => enqueue::run(*args, &mut session).await,
            Command::Jobs(args) => jobs::run(args, &mut session).await,
            Command::Dead(args) => dead::run(args, &mut session).await,
            Command::Operations(args) => operations::run(args, &mut session).await,
            Command::Queues(args) => queues::run(args, &mut session).await,
            Command::Gates(args) => gates::run(args, &mut session).await,
            Command::Schedules(args) => schedules::run(args, &mut session).await,
            Command::Runs(args) => runs::run(args, &mut session).await,
            Command::Partitions(args) => partitions::run(args, &mut session).await,
            Command::Workers(args) => workers::run(args, &mut session).await,
            Command::Tenants(args) => tenants::run(args, &mut session).await,
            Command::Keys(args) => keys::run(args, &mut session).await,
            Command::Webhooks(args) => webhooks::run(*args, &mut session).await,
            Command::Stats(args) => stats::run(args, &mut session).await,
            Command::Usage(args) => usage::run(args, &mut session).await,
            Command::Audit(args) => audit::run(args, &mut session).await,
            Command::Migrate(args) => migrate::run(&args, &mut session).await,
            Command::Config(args) => config::run(&args, &mut session),
            Command::Completions(args) => completions::run(&args, &mut session.out),
            Command::Bench(args) => bench::run(&args, &cli.global, &mut session.out),
            Command::BenchPart(_) => bench::run_part(),
            // Answered by the parser.
            Command::Help(_) | Command::Version => Ok(Answer::Done),
        }
    });
    // What was done before a failure is told as well.
    session.out.flush()?;
    answer
}

impl Session {
    /// The store, for a command that looks or changes what is there.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        open::ready(&self.settings, Purpose::Look).await
    }

    /// The store, for a command that goes on until Ctrl-C.
    pub(crate) async fn store_to_follow(&self) -> Result<Arc<dyn Store>, Failure> {
        open::ready(&self.settings, Purpose::Follow).await
    }

    /// The store, for a command that stores something new: a missing SQLite file is made.
    pub(crate) async fn store_to_add(&self) -> Result<Arc<dyn Store>, Failure> {
        open::ready(&self.settings, Purpose::Store).await
    }

    /// The tenant a command acts for: the flag, then the setting.
    pub(crate) fn tenant(&self, flag: Option<TenantName>) -> Option<TenantName> {
        flag.or_else(|| self.settings.tenant.as_ref().map(|tenant| tenant.value.clone()))
    }

    /// Whose jobs a command sees.
    pub(crate) fn sight(&self, arg: TenantArg) -> Sight {
        self.tenant(arg.tenant).map_or(Sight::All, Sight::Tenant)
    }

    /// Who acts, and why.
    pub(crate) fn word(&self, args: WordArgs) -> Word {
        Word { actor: self.settings.actor(args.actor), reason: args.reason }
    }
}
