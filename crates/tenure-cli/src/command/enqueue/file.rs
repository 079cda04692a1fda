//! Many jobs from JSON lines, in batches that are stored whole or not at all.
//!
//! A batch is read and checked before any of it is sent. A bad line therefore stops the command with all bad lines of
//! its batch named, nothing of that batch stored, and the line to go on from.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::{NewJob, Timestamp};
use tenure_store::enqueue::Enqueued;
use tenure_store::{Store, StoreError};

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::progress::Progress;
use tenure_server::moment;
use tenure_server::new_job::{BadLine, Draft, Ids, line};

/// Jobs sent at once.
const BATCH_JOBS_MAX: usize = 1_000;
/// Bytes of lines sent at once, or a thousand large payloads would be a gigabyte in memory.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Longest line: a payload of full size and everything else.
const LINE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + (64 << 10);
/// Bad lines that are printed one by one.
const BAD_LINES_SHOWN_MAX: usize = 20;
/// Pauses before a batch is sent again after the store did not answer. Ids make that safe: what arrived is found.
const RETRY_PAUSES: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// Lines and where we are in them.
struct Lines<'a> {
    name: String,
    reader: Box<dyn BufRead + 'a>,
    line: u64,
    bytes: u64,
    ended: bool,
    ids: Ids,
}

/// Some lines that belong together.
#[derive(Default)]
struct Batch {
    first_line: u64,
    last_line: u64,
    jobs: Vec<NewJob>,
    bad: Vec<(u64, BadLine)>,
}

/// What was stored so far.
#[derive(Default)]
struct Tally {
    created: u64,
    found: u64,
}

pub(super) async fn run(path: &Path, flags: &Draft, session: &mut Session) -> Result<Answer, Failure> {
    let (mut lines, total) = open(path)?;
    let store = session.store_to_add().await?;
    let progress = Progress::of_bytes(total);
    let mut tally = Tally::default();
    while !lines.ended {
        let first = lines.line + 1;
        let batch = lines.batch(flags).map_err(|error| {
            unreadable(&lines.name, &error).hint(go_on(&lines.name, first, &tally)).details(tally.to_json())
        })?;
        if !batch.bad.is_empty() {
            return Err(bad_lines(&lines.name, &batch, &tally));
        }
        if batch.jobs.is_empty() {
            continue;
        }
        let last = batch.last_line;
        let answers = send(&store, batch.jobs).await.map_err(|error| {
            let context = format!("{} lines {first} to {last} were not stored", lines.name);
            Failure::from(error).within(&context).hint(go_on(&lines.name, first, &tally)).details(tally.to_json())
        })?;
        tally.created += answers.iter().filter(|answer| matches!(answer, Enqueued::Created(_))).count() as u64;
        tally.found += answers.iter().filter(|answer| matches!(answer, Enqueued::Found { .. })).count() as u64;
        progress.message(format!("{} jobs", tally.stored()));
        progress.set(lines.bytes);
    }
    drop(progress);
    if session.out.is_json() {
        session.out.json(&json!({ "created": tally.created, "found": tally.found }))?;
    } else {
        let found =
            if tally.found > 0 { format!(", found {} that were there before", tally.found) } else { String::new() };
        let jobs = if tally.created == 1 { "job" } else { "jobs" };
        session.out.line(format!("Stored {} {jobs}{found}.", tally.created));
    }
    Ok(Answer::Done)
}

fn open(path: &Path) -> Result<(Lines<'static>, Option<u64>), Failure> {
    if path.as_os_str() == "-" {
        let reader = Box::new(std::io::stdin().lock());
        return Ok((
            Lines { name: "standard input".to_owned(), reader, line: 0, bytes: 0, ended: false, ids: Ids::new() },
            None,
        ));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(&name, &error))?;
    // A pipe (<(…)) has no length.
    let total = meta.is_file().then_some(meta.len());
    Ok((
        Lines { name, reader: Box::new(BufReader::new(file)), line: 0, bytes: 0, ended: false, ids: Ids::new() },
        total,
    ))
}

impl Lines<'_> {
    /// The next lines, checked. After a bad line the rest of the batch is read as well, so
    /// that all its mistakes are told at once.
    fn batch(&mut self, flags: &Draft) -> std::io::Result<Batch> {
        let mut batch = Batch { first_line: self.line + 1, ..Batch::default() };
        let (start, now) = (self.bytes, moment::now());
        while batch.jobs.len() + batch.bad.len() < BATCH_JOBS_MAX && self.bytes - start < BATCH_BYTES_MAX as u64 {
            let Some(text) = self.next_line()? else {
                self.ended = true;
                break;
            };
            match text.and_then(|text| read(&text, flags, &mut self.ids, now)) {
                Ok(Some(job)) => batch.jobs.push(job),
                Ok(None) => {}
                Err(bad) => batch.bad.push((self.line, bad)),
            }
        }
        batch.last_line = self.line;
        Ok(batch)
    }

    /// The next line; the outer `None` is the end, an inner error a line that is no text.
    fn next_line(&mut self) -> std::io::Result<Option<Result<String, BadLine>>> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        self.bytes += bytes.len() as u64;
        if bytes.len() > LINE_BYTES_MAX && !bytes.ends_with(b"\n") {
            self.bytes += self.reader.skip_until(b'\n')? as u64;
            return Ok(Some(Err(BadLine::new(format!("it is longer than {LINE_BYTES_MAX} bytes")))));
        }
        let text = String::from_utf8(bytes).map_err(|_| BadLine::new("it is not UTF-8 text"));
        // Windows shells put a byte order mark before the first line.
        Ok(Some(text.map(|text| match (self.line, text.strip_prefix('\u{feff}')) {
            (1, Some(rest)) => rest.to_owned(),
            _ => text,
        })))
    }
}

/// The job of a line; `None` for an empty one.
fn read(text: &str, flags: &Draft, ids: &mut Ids, now: Timestamp) -> Result<Option<NewJob>, BadLine> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let draft = line::read(text)?.or(flags);
    let draft = Draft { unique_policy: draft.unique_policy.filter(|_| draft.unique.is_some()), ..draft };
    let id = ids.make().map_err(|error| BadLine::new(format!("no random bits for a job id: {error}")))?;
    let job = draft.into_job(id)?;
    job.check(now)?;
    Ok(Some(job))
}

async fn send(store: &Arc<dyn Store>, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
    for pause in RETRY_PAUSES {
        match store.enqueue_jobs(jobs.clone()).await {
            Err(error) if error.is_passing() => tokio::time::sleep(pause).await,
            answer => return answer,
        }
    }
    store.enqueue_jobs(jobs).await
}

impl Tally {
    const fn stored(&self) -> u64 {
        self.created + self.found
    }

    fn to_json(&self) -> serde_json::Value {
        json!({ "stored": self.stored() })
    }
}

fn bad_lines(name: &str, batch: &Batch, tally: &Tally) -> Failure {
    let count = batch.bad.len();
    let shown =
        batch.bad.iter().take(BAD_LINES_SHOWN_MAX).map(|(line, bad)| format!("{name} line {line}: {}", bad.message));
    let mut text = shown.collect::<Vec<_>>().join("\n  ");
    if count > BAD_LINES_SHOWN_MAX {
        text.push_str(&format!("\n  and {} more lines", count - BAD_LINES_SHOWN_MAX));
    }
    let message = if count == 1 { text } else { format!("{count} lines cannot be read:\n  {text}") };
    let lines: Vec<_> = batch
        .bad
        .iter()
        .map(|(line, bad)| json!({ "line": line, "field": bad.field, "message": bad.message }))
        .collect();
    Failure::usage("invalid_line", message)
        .hint(go_on(name, batch.first_line, tally))
        .details(json!({ "stored": tally.stored(), "next_line": batch.first_line, "lines": lines }))
}

/// What is stored, and how to send the rest only.
fn go_on(name: &str, line: u64, tally: &Tally) -> String {
    match tally.stored() {
        0 => "Nothing was stored.".to_owned(),
        stored if name == "standard input" => {
            format!("{stored} jobs were stored before. Go on from line {line}.")
        }
        stored => format!(
            "{stored} jobs were stored before. Go on from line {line}:\n  tail -n +{line} {name} | tenure enqueue --file -"
        ),
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::usage("input", format!("{name} cannot be read")).caused_by(error)
}
