//! `tenure tenants`: whose jobs there are, and how many each may have pending.

mod list;
mod set;

use clap::{Args, Subcommand};

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure tenants create acme              make a tenant; its first job would, too
  tenure tenants set acme --quota 500     pending jobs it may have in each fair queue
  tenure tenants list
  tenure keys create --tenant acme --name 'acme: web shop' --scopes enqueue,read";

/// List, make and limit tenants
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TenantsArgs {
    #[command(subcommand)]
    what: TenantsCommand,
}

#[derive(Debug, Subcommand)]
enum TenantsCommand {
    List(list::ListArgs),
    /// Make a tenant
    #[command(after_help = "Examples:\n  tenure tenants create acme\n  tenure tenants create acme --quota 500")]
    Create(set::SetArgs),
    /// Change a tenant's quota; one that is not there is made
    #[command(after_help = set::EXAMPLES)]
    Set(set::SetArgs),
}

pub(crate) async fn run(args: TenantsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        TenantsCommand::List(args) => list::run(args, session).await,
        TenantsCommand::Create(args) | TenantsCommand::Set(args) => set::run(args, session).await,
    }
}
