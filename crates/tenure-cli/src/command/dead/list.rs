//! `tenure dead list`: dead letters by kind and error.

use clap::Args;
use serde_json::json;
use tenure_core::Timestamp;
use tenure_core::name::{KindName, QueueName};
use tenure_store::record::JobSummary;

use super::filter;
use crate::args::{TenantArg, kind, queue};
use crate::bulk;
use crate::command::jobs::list::table as job_table;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::dead::{Cause, Group, Groups};
use tenure_server::moment;
use tenure_server::wire::job::JobLine;
use tenure_server::wire::operation::GroupLine;

/// Jobs looked at where nobody says otherwise.
const GROUPED_DEFAULT: u64 = 100_000;
/// Jobs listed one by one where nobody says otherwise.
const EACH_DEFAULT: u64 = 100;
/// Most jobs of one look.
const LIMIT_MAX: u64 = 10_000_000;
/// Characters of an error in the table.
const ERROR_CHARS_MAX: usize = 80;
/// Characters of a kind in the table.
const KIND_CHARS_MAX: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tenure dead list                      by kind and error, the largest group first
  tenure dead list --queue mail --json
  tenure dead list --each --limit 20    one by one, newest first
  tenure jobs show ID                   one of them in full: every attempt and its error

Jobs of one group have the same kind and the same error: its code where it has one, else its message without
numbers, uuids and quoted parts. `user 42 not found` and `user 43 not found` are one group.";

/// List dead letters by kind and error
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only jobs of this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// Only jobs of this kind
    #[arg(long, value_name = "NAME", value_parser = kind)]
    kind: Option<KindName>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Look at the newest so many [default: 100000; 100 with --each]
    #[arg(long, value_name = "N", value_parser = most)]
    limit: Option<u64>,
    /// One by one
    #[arg(long)]
    each: bool,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = filter(session.sight(args.tenant), args.queue, args.kind);
    let most = args.limit.unwrap_or(if args.each { EACH_DEFAULT } else { GROUPED_DEFAULT });
    let store = session.store().await?;
    if args.each {
        let mut jobs = Vec::new();
        let complete = bulk::walk(&*store, filter, most, |job| jobs.push(job.clone())).await?;
        return each(&jobs, complete, &mut session.out);
    }
    let mut groups = Groups::default();
    let mut looked_at = 0;
    let see = |job: &JobSummary| {
        groups.add(job);
        looked_at += 1;
    };
    let complete = bulk::walk(&*store, filter, most, see).await?;
    grouped(&groups.sorted(), looked_at, complete, &mut session.out)
}

fn each(jobs: &[JobSummary], complete: bool, out: &mut Output) -> Result<Answer, Failure> {
    if out.is_json() {
        let lines: Vec<JobLine> = jobs.iter().map(JobLine::from).collect();
        out.json(&json!({ "jobs": lines, "complete": complete }))?;
        return Ok(Answer::Done);
    }
    if jobs.is_empty() {
        out.line("No dead letters.");
        return Ok(Answer::Done);
    }
    out.table_with_note(job_table(jobs, moment::now()));
    if !complete {
        out.line(format!("\nThere are more: these are the newest {}; --limit shows more.", jobs.len()));
    }
    Ok(Answer::Done)
}

fn grouped(groups: &[Group], looked_at: u64, complete: bool, out: &mut Output) -> Result<Answer, Failure> {
    if out.is_json() {
        let lines: Vec<GroupLine> = groups.iter().map(GroupLine::from).collect();
        out.json(&json!({ "groups": lines, "looked_at": looked_at, "complete": complete }))?;
        return Ok(Answer::Done);
    }
    let Some(first) = groups.first() else {
        out.line("No dead letters.");
        return Ok(Answer::Done);
    };
    let now = moment::now();
    let when = |at: Option<Timestamp>| at.map_or_else(String::new, |at| moment::relative(at, now));
    let mut table = Table::new(&["GROUP", "COUNT", "KIND", "FIRST", "LAST", "EXAMPLE", "ERROR"]);
    for group in groups {
        table.row(vec![
            group.key().into(),
            Cell::number(group.count),
            shorten(group.kind.as_str(), KIND_CHARS_MAX).into(),
            Cell::dim(when(group.first)),
            Cell::dim(when(group.last)),
            group.example.to_string().into(),
            Cell::painted(shorten(&error(group), ERROR_CHARS_MAX), Paint::Red),
        ]);
    }
    out.table_with_note(table);
    let (letters, counted) = (if looked_at == 1 { "letter" } else { "letters" }, groups.len());
    let groups = if counted == 1 { "group" } else { "groups" };
    out.line(format!("\n{looked_at} dead {letters} in {counted} {groups}."));
    if !complete {
        out.line(format!("There are more: only the newest {looked_at} were looked at; --limit looks at more."));
    }
    out.line(format!("Revive a group when its cause is fixed: tenure dead requeue --group {}", first.key()));
    Ok(Answer::Done)
}

/// What the table says: a code alone tells little, so the newest message comes with it.
fn error(group: &Group) -> String {
    match &group.cause {
        Cause::Code(code) if group.message.is_empty() || group.message.starts_with('{') => code.clone(),
        Cause::Code(code) => format!("{code}: {}", group.message),
        Cause::Message(message) => message.clone(),
        Cause::Unknown => "-".to_owned(),
    }
}

fn most(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=LIMIT_MAX).contains(count));
    count.ok_or_else(|| format!("it is 1 to {LIMIT_MAX}"))
}
