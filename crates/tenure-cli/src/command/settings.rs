//! `tenure settings`: what is in force, and who said it.

use clap::Args;
use serde_json::json;

use super::{Answer, Session};
use crate::failure::Failure;
use crate::settings::{Origin, Setting};
use crate::table::{Cell, Table};

const EXAMPLES: &str = "\
Examples:
  tenure settings                          every setting and where it comes from
  TENURE_TENANT=acme tenure settings       the environment wins over tenure.toml
  tenure --data-dir ./data settings        a flag wins over both

tenure.toml knows these keys, all of them text:
  database = \"postgres://localhost/app\"    or an SQLite file, relative to tenure.toml
  data_dir = \"data\"                        used where no database is named
  tenant   = \"acme\"                        for whom jobs are enqueued, whose jobs are shown
  actor    = \"ops\"                         who appears in the journal";

/// Show every setting and where it comes from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SettingsArgs {}

pub(crate) fn run(_: &SettingsArgs, session: &mut Session) -> Result<Answer, Failure> {
    let settings = &session.settings;
    let shown = |setting: &Option<Setting<String>>, absent: Option<String>| match setting {
        Some(setting) => (Some(setting.value.clone()), setting.origin.to_string()),
        None => (absent, Origin::Default.to_string()),
    };
    let tenant = settings.tenant.as_ref().map(|t| Setting { value: t.value.to_string(), origin: t.origin.clone() });
    let rows = [
        ("database", (Some(settings.location.value.to_string()), settings.location.origin.to_string())),
        ("tenant", shown(&tenant, None)),
        ("actor", shown(&settings.actor, settings.actor(None))),
    ];
    let file = settings.file.as_ref().map(|path| path.display().to_string());
    if session.out.is_json() {
        let entry = |(name, (value, from)): (&str, (Option<String>, String))| {
            (name.to_owned(), json!({ "value": value, "from": from }))
        };
        let settings: serde_json::Map<_, _> = rows.into_iter().map(entry).collect();
        session.out.json(&json!({ "file": file, "settings": settings }))?;
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for (name, (value, from)) in rows {
        table.row(vec![name.into(), value.unwrap_or_else(|| "-".to_owned()).into(), Cell::dim(from)]);
    }
    session.out.table(&table);
    if file.is_none() {
        session.out.line("\nNo tenure.toml in this directory.");
    }
    Ok(Answer::Done)
}
