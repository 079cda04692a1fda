//! `tenure dev`: server and worker in one process, for trying things out.

use clap::Args;
use tenure_server::Auth;

use super::{Answer, Session, server, worker};
use crate::failure::Failure;
use crate::settings::WorkerFlags;

const EXAMPLES: &str = "\
Examples:
  tenure dev
  curl http://127.0.0.1:7400/v1/jobs --json '{\"kind\": \"sleep\", \"payload\": {\"for\": \"2s\"}}'
  curl http://127.0.0.1:7400/v1/jobs

No keys are needed: everybody on this machine may do everything, and it listens to nobody else.
Kinds it can run are those of tenure worker; jobs of other kinds wait for your own workers.";

/// Server and worker in one process, without keys, on this machine only
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevArgs {
    /// Where it listens, on this machine only [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    worker: worker::WorkerArgs,
}

impl DevArgs {
    /// What the command line says that settings say, too.
    pub(crate) fn flags(&self) -> WorkerFlags {
        self.worker.flags().with_listen(self.listen.clone())
    }
}

pub(crate) fn run(args: &DevArgs, session: &mut Session) -> Result<Answer, Failure> {
    server::serve(session, Auth::Open, async |store, session, around| {
        worker::build(&args.worker, session, store, around).await.map(Some)
    })
}
