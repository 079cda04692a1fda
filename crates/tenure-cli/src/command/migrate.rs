//! `tenure migrate`: set the database up, or say what is missing.

use clap::{Args, Subcommand};
use serde_json::json;
use tenure_store::record::{Migration, SecondWall};

use super::{Answer, Session};
use crate::failure::Failure;
use crate::open;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::wire::journal::MigrationLine;

const EXAMPLES: &str = "\
Examples:
  tenure migrate                                       bring the database up to this program
  tenure migrate status                                every migration, applied or not
  tenure migrate dry-run                               what `up` would apply
  tenure --database postgres://localhost/app migrate   on a Postgres server
  tenure migrate --roles                               also roles with few rights, and walls between tenants
  tenure migrate dry-run --roles                       the SQL of that, for somebody who may make roles

Migrations only go forward and may be run twice or by two at once.
The embedded SQLite store migrates itself on first use.";

/// Set the database up for this version
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateArgs {
    #[command(subcommand)]
    what: Option<MigrateCommand>,
    /// Also install roles with few rights, on Postgres (docs/SECURITY.md)
    #[arg(long, global = true)]
    roles: bool,
}

#[derive(Debug, Subcommand)]
enum MigrateCommand {
    /// Apply what is missing (the default)
    #[command(after_help = "Examples:\n  tenure migrate up\n  tenure migrate up --roles")]
    Up,
    /// List every migration, applied or not
    #[command(after_help = "Examples:\n  tenure migrate status\n  tenure migrate status --json")]
    Status,
    /// Say what `up` would apply, and change nothing
    #[command(
        after_help = "Examples:\n  tenure migrate dry-run\n  tenure migrate dry-run --roles | psql $DATABASE_URL"
    )]
    DryRun,
    /// Make a restored or copied database safe to work with
    #[command(after_help = REHOME_HELP)]
    Rehome {
        /// Also where the database cannot see that it is a copy: a clone, a restored backup, an SQLite file
        #[arg(long)]
        leap: bool,
    },
}

const REHOME_HELP: &str = "\
Examples:
  tenure --database postgres://localhost/app migrate rehome          a dump in another cluster
  tenure --database postgres://localhost/app migrate rehome --leap   a clone, or a restored backup
  tenure --database ./restored.db migrate rehome --leap              a copied SQLite file

In another Postgres cluster transaction ids begin anew: every other command refuses to work until
`rehome` was run once. A clone, and a backup that is restored in place, cannot be told from the
original: with --leap, lease numbers go on far above all that the original has given out, so that
workers of before are refused. Stop the workers of the database first, and run it before others start.
After the promotion of a standby and after a recovery to a point in time nothing has to be run.";

pub(crate) async fn run(args: &MigrateArgs, session: &mut Session) -> Result<Answer, Failure> {
    let place = session.settings.location.value.to_string();
    if args.roles {
        if matches!(args.what, Some(MigrateCommand::Status | MigrateCommand::Rehome { .. })) {
            return Err(Failure::usage("usage", "--roles goes with `up` and `dry-run`"));
        }
        // Before anything is changed.
        open::postgres(&session.settings.location)?;
    }
    if let Some(MigrateCommand::Rehome { leap }) = args.what {
        open::rehome(&session.settings.location, leap).await?;
        match session.out.is_json() {
            true => session.out.json(&json!({ "store": place, "rehomed": true }))?,
            false => session
                .out
                .line(format!("{place} is at home here; lease numbers go on far above all that were given out.")),
        }
        return Ok(Answer::Done);
    }
    if args.roles && matches!(args.what, Some(MigrateCommand::DryRun)) {
        let sql = tenure_postgres::roles::text();
        match session.out.is_json() {
            true => session.out.json(&json!({ "store": place, "sql": sql }))?,
            false => session.out.line(sql.trim_end()),
        }
        return Ok(Answer::Done);
    }
    let store = match args.what {
        Some(MigrateCommand::Status | MigrateCommand::DryRun) => open::to_list_migrations(&session.settings).await?,
        _ => open::open(&session.settings).await?,
    };
    let (key, mut migrations) = match args.what {
        None | Some(MigrateCommand::Up | MigrateCommand::Rehome { .. }) => ("applied", store.migrate().await?),
        Some(MigrateCommand::Status) => ("migrations", store.list_migrations().await?),
        Some(MigrateCommand::DryRun) => ("missing", store.list_migrations().await?),
    };
    let wall = match args.roles && key == "applied" {
        true => Some(open::install_roles(&session.settings).await?),
        false => None,
    };
    if key == "missing" {
        migrations.retain(|migration| !migration.applied);
    }
    if session.out.is_json() {
        let lines: Vec<MigrationLine> = migrations.iter().map(MigrationLine::from).collect();
        let mut answer = json!({ "store": place, key: lines });
        if let Some(wall) = wall {
            answer["roles"] = json!({ "installed": true, "second_wall": wall == SecondWall::Stands });
        }
        session.out.json(&answer)?;
        return Ok(Answer::Done);
    }
    let title = match (key, migrations.len()) {
        ("applied" | "missing", 0) => format!("{place} is up to date."),
        ("applied", n) => format!("{place}: applied {}.", counted(n)),
        ("missing", n) => format!("{place}: `tenure migrate` would apply {}.", counted(n)),
        _ => format!("{place}:"),
    };
    session.out.line(title);
    if !migrations.is_empty() {
        session.out.table(&table(&migrations, key == "missing"));
    }
    match wall {
        Some(SecondWall::Missing(why)) => {
            session.out.line(format!("The roles are installed. A server with this user has no second wall: {why}."));
        }
        Some(_) => session
            .out
            .line("The roles are installed. Servers that are started now have a second wall between tenants."),
        None => {}
    }
    Ok(Answer::Done)
}

fn table(migrations: &[Migration], planned: bool) -> Table {
    let mut table = Table::new(&["VERSION", "STATE", "NAME"]);
    for migration in migrations {
        let state = match (migration.applied, planned) {
            (true, _) => Cell::painted("applied", Paint::Green),
            (false, _) => Cell::painted("missing", Paint::Yellow),
        };
        table.row(vec![Cell::number(migration.version), state, migration.name.as_str().into()]);
    }
    table
}

fn counted(n: usize) -> String {
    if n == 1 { "1 migration".to_owned() } else { format!("{n} migrations") }
}
