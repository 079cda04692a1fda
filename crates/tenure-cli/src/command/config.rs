//! `tenure config`: what is in force, and who said it.

mod show;

use clap::{Args, Subcommand};

use super::{Answer, Session};
use crate::failure::Failure;
use crate::settings::WorkerFlags;

const EXAMPLES: &str = "\
Examples:
  tenure config show           every setting and where it comes from
  tenure config                the same
  tenure config show --json    for programs

Passwords are never shown.";

/// Show the settings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Show(show::ShowArgs),
}

impl ConfigArgs {
    /// What the command line says of workers: it is shown among the settings.
    pub(crate) fn worker_flags(&self) -> WorkerFlags {
        match &self.what {
            Some(ConfigCommand::Show(args)) => args.worker.clone(),
            None => WorkerFlags::default(),
        }
    }
}

pub(crate) fn run(_: &ConfigArgs, session: &mut Session) -> Result<Answer, Failure> {
    show::run(session)
}
