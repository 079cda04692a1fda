//! Storing an import: its rows and its jobs, all or none.

use std::collections::BTreeMap;

use serde_json::json;
use tenure::core::{Invalid, Json};
use tenure::sink::{Row, Sink, Type};
use tenure::store::enqueue::Enqueued;
use tenure::{Client, Database, JobState, Policy, Record, RunId, StoreError, Timestamp, Tx, Unique, row};

use super::SOURCE_TYPE;
use crate::begin::Begin;
use crate::bookmarks::{Bookmarks, Placement};
use crate::canonical::CanonicalUrl;
use crate::enrich::Enrich;
use crate::link::{LinkId, gate};
use crate::settings::Settings;

/// Longest name of a user.
pub const USER_CHARS_MAX: usize = 100;

/// Refuses a name that is empty, too long or not one line.
pub fn check_user(user: &str) -> Result<(), Invalid> {
    let is_short = (1..=USER_CHARS_MAX).contains(&user.chars().count());
    if is_short && !user.chars().any(char::is_control) && user.trim() == user {
        return Ok(());
    }
    let limit = format!("a user's name is 1 to {USER_CHARS_MAX} characters on one line, without spaces around it");
    Err(Invalid::new("user", user, limit))
}

/// Stores what stands in a file, and what is to be done about it. Answers the import's id.
pub async fn store(
    database: &Database,
    client: &Client,
    settings: &Settings,
    user: &str,
    found: Bookmarks,
) -> Result<RunId, StoreError> {
    check_user(user)?;
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| StoreError::Unavailable(format!("no random bytes: {error}"), None))?;
    let (client, user, settings) = (client.clone(), user.to_owned(), settings.clone());
    // Many addresses take a while: not on a thread that others wait for.
    let read = tokio::task::spawn_blocking(move || New::read(user, &found, settings)).await;
    let gone = |error| StoreError::Unavailable(format!("the import was not read: {error}"), None);
    let new = read.map_err(gone)??;
    database.transaction(move |tx| new.store(tx, &client, random)).await
}

/// An import on its way into the tables.
struct New {
    user: String,
    skipped: i64,
    unreadable: i64,
    /// Each link once, by name.
    links: BTreeMap<LinkId, CanonicalUrl>,
    /// The rows of its placements, without the import's id before them.
    placements: Vec<Row>,
    settings: Settings,
}

impl New {
    fn read(user: String, found: &Bookmarks, settings: Settings) -> Result<Self, Invalid> {
        let (mut links, mut placements) = (BTreeMap::new(), Vec::new());
        let mut unreadable = found.unreadable;
        for (position, placement) in (0_u32..).zip(&found.placements) {
            // The file may hold what looks like an address and is none.
            let Ok(url) = CanonicalUrl::parse(&placement.url) else {
                unreadable += 1;
                continue;
            };
            let link = LinkId::of(&url);
            placements.push(row_of(position, placement, found, &link)?);
            links.insert(link, url);
        }
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (skipped, unreadable) = (count(found.skipped.values().sum()), count(unreadable));
        Ok(Self { user, skipped, unreadable, links, placements, settings })
    }

    fn store(self, tx: &Tx<'_>, client: &Client, random: [u8; 10]) -> Result<RunId, StoreError> {
        let now = tx.now()?;
        let import = RunId::from_parts(now, random);
        let insert = "insert into link_import (id, user_name, source_type, total_items, skipped, unreadable, created_at) \
                      values ($1, $2, $3, $4, $5, $6, $7)";
        let total = i64::try_from(self.links.len()).unwrap_or(i64::MAX);
        let own = row![import, self.user.as_str(), SOURCE_TYPE, total, self.skipped, self.unreadable, now];
        tx.execute(insert, own)?;

        let jobs = self.enqueue(tx, client)?;
        // One whose job was found is there, and stays as it is.
        let new = self.links.iter().zip(&jobs).filter_map(|(link, job)| Some((link, job.created()?)));
        let canonical = new.map(|((link, url), job)| row![link.as_str(), url.as_str(), url.domain(), job]);
        let table = Sink::table("link_canonical").key("id", Type::Text).value("url", Type::Text);
        table.value("domain", Type::Text).value("job", Type::Text).overwrite()?.upsert(tx, canonical.collect())?;
        let items = self.links.keys().map(|link| row![import, link.as_str(), None::<&str>]).collect();
        let table = Sink::table("link_item").key("import", Type::Text).key("link", Type::Text);
        table.value("outcome", Type::Text).overwrite()?.upsert(tx, items)?;
        self.revive(tx, import, &jobs)?;
        let placements = self.placements.into_iter().map(|row| [row![import], row].concat()).collect();
        let table = Sink::table("link_placement").key("import", Type::Text).key("position", Type::Int);
        let table = table.value("folder", Type::Json).value("title", Type::Text).value("added_at", Type::Time);
        table.value("link", Type::Text).overwrite()?.upsert(tx, placements)?;

        client.enqueue(Begin { import: import.to_string() }).within(tx)?;
        Ok(import)
    }

    /// One job per link, for ever: a link that has one, in whatever state, gets no other.
    fn enqueue(&self, tx: &Tx<'_>, client: &Client) -> Result<Vec<Enqueued>, StoreError> {
        let links: Vec<(&LinkId, &CanonicalUrl)> = self.links.iter().collect();
        let jobs = links.iter().map(|(link, url)| Enrich { link: (*link).clone(), url: url.to_string() });
        let said = client.enqueue_many(jobs).each(|place, one| {
            let Some((link, url)) = links.get(place) else { return one };
            let unique = Unique::new(link.as_str(), Policy::Forever);
            one.unique_by(unique).gate(&gate(url.site())).backoff(self.settings.backoff())
        });
        said.within(tx)
    }

    /// A link whose job has ended without a page is to be tried again, by that very job; one whose job an operator has
    /// requeued already is on its way.
    fn revive(&self, tx: &Tx<'_>, import: RunId, jobs: &[Enqueued]) -> Result<(), StoreError> {
        let revive =
            "update link_canonical set state = 'reviving' where id = $1 and state in ('open', 'doomed', 'dead')";
        let reopen = "update link_canonical set state = 'open' where id = $1 and state = 'dead'";
        // Most are new, or known: only the others are written to.
        let select = "select link.id, link.state from link_item item join link_canonical link on link.id = item.link \
                      where item.import = $1 and link.state in ('open', 'doomed', 'dead')";
        let read = |row: &Record| Ok((LinkId::read(row)?, row.get::<String>("state")? == "dead"));
        let unknown =
            tx.query(select, row![import])?.iter().map(read).collect::<Result<BTreeMap<_, _>, StoreError>>()?;
        for (link, job) in self.links.keys().zip(jobs) {
            let (Enqueued::Found { state, .. }, Some(is_dead)) = (job, unknown.get(link)) else { continue };
            let update = match state {
                // Without a state it was forgotten, or has a successor: that is found out when it is requeued.
                None | Some(JobState::Failed | JobState::Dead | JobState::Canceled) => revive,
                Some(JobState::Waiting | JobState::Queued | JobState::Retryable | JobState::Running) if *is_dead => {
                    reopen
                }
                Some(_) => continue,
            };
            tx.execute(update, row![link.as_str()])?;
        }
        Ok(())
    }
}

fn row_of(position: u32, placement: &Placement, found: &Bookmarks, link: &LinkId) -> Result<Row, Invalid> {
    let folder = Json::parse("folder", json!(found.path(placement.folder)).to_string())?;
    let micros = placement.added_at_s.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(1_000_000));
    // A year beyond 9999 is somebody's mistake, and no database's time.
    let added_at = micros.filter(|micros| *micros < 253_402_300_800_000_000).map(Timestamp::from_micros);
    Ok(row![position, folder, placement.title.as_str(), added_at, link.as_str()])
}
