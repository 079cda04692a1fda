//! Links that an import waits for and that do not go on by themselves.
//!
//! | the link | what is done |
//! |---|---|
//! | `reviving` | its job has ended without a page, and somebody imported it again: it is requeued, or made anew if it was forgotten |
//! | `doomed` | its last attempt has failed: once its job has ended, the link is `dead` |
//! | put aside | its job waits for somebody to wait for it: it is due now |
//! | `open` | now and then some are looked at: a job may end without its handler, by leases that were lost or by a person |
//!
//! Everything here may be done twice, by two imports at once, or not at all this time and then the next.

use std::time::{SystemTime, UNIX_EPOCH};

use tenure::store::operate::{HastenJob, Word};
use tenure::{
    Client, Database, Fail, JobId, JobState, JobSummary, Policy, Record, Sight, StoreError, Timestamp, Tx, Unique, row,
};

use crate::canonical::CanonicalUrl;
use crate::enrich::Enrich;
use crate::import::message;
use crate::link::{LinkId, gate};
use crate::worker::Links;

/// Links that are helped in one go.
const TROUBLED_MAX: u32 = 200;
/// Links that are looked at now and then.
const SAMPLE: u32 = 20;

/// Helps the links of an import.
pub(crate) async fn tend(links: &Links, client: &Client, import: &str) -> Result<(), Fail> {
    let database = &links.database;
    let troubled = database.query(include_str!("sql/list_troubled.sql"), row![import, TROUBLED_MAX]).await?;
    for link in &troubled {
        let (id, job): (LinkId, JobId) = (LinkId::read(link)?, link.get("job")?);
        match link.get::<String>("state")?.as_str() {
            "reviving" => revive(links, client, id, job, link.get("url")?).await?,
            "doomed" => bury(database, client, id, job).await?,
            _ => hasten(database, client, id, job, link.get("aside_at")?).await?,
        }
    }
    if troubled.is_empty() {
        for link in sample(database, import).await? {
            doom(database, client, LinkId::read(&link)?, link.get("job")?).await?;
        }
    }
    Ok(())
}

async fn revive(links: &Links, client: &Client, id: LinkId, job: JobId, url: String) -> Result<(), Fail> {
    match client.requeue(job).await {
        // Somebody else was faster.
        Ok(()) | Err(StoreError::Conflict(_)) => move_on(&links.database, id, "reviving", "open").await,
        Err(StoreError::NotFound(_)) => replace(links, client, id, job, url).await,
        Err(error) => Err(error.into()),
    }
}

/// Its job was forgotten, as those that failed for good or were canceled are after a week. The next one's key has the old
/// one's name in it: two imports at once make one.
async fn replace(links: &Links, client: &Client, id: LinkId, job: JobId, url: String) -> Result<(), Fail> {
    let (client, settings) = (client.clone(), links.settings.clone());
    let (canonical, key) = (CanonicalUrl::parse(&url).map_err(Fail::permanent)?, format!("{id}:{job}"));
    let made = move |tx: &Tx<'_>| {
        let next = client.enqueue(Enrich { link: id.clone(), url });
        let next = next.unique_by(Unique::new(key, Policy::Forever)).gate(&gate(canonical.site()));
        let next = next.backoff(settings.backoff()).within(tx)?;
        let update = "update link_canonical set state = 'open', job = $3 where id = $1 and job = $2";
        tx.execute(update, row![id.as_str(), job, next.job()])
    };
    links.database.transaction(made).await?;
    Ok(())
}

async fn bury(database: &Database, client: &Client, id: LinkId, job: JobId) -> Result<(), Fail> {
    match find(client, job).await? {
        Some(found) if !has_failed(&found) => Ok(()), // it has not been reported, or is tried once more
        _ => move_on(database, id, "doomed", "dead").await,
    }
}

async fn hasten(database: &Database, client: &Client, id: LinkId, job: JobId, aside_at: Timestamp) -> Result<(), Fail> {
    let word = Word { actor: None, reason: Some("an import waits for it again".to_owned()) };
    match client.store().hasten_job(HastenJob { sight: Sight::All, job, word }).await {
        Ok(_) => {
            // It may have run and been put aside once more meanwhile: that is for the next look.
            let update = "update link_canonical set aside_at = null where id = $1 and aside_at = $2";
            database.execute(update, row![id.as_str(), aside_at]).await?;
            Ok(())
        }
        // It runs, and may be put aside in a moment: the next look will tell.
        Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What its handler could not write down, the job itself tells.
async fn doom(database: &Database, client: &Client, id: LinkId, job: JobId) -> Result<(), Fail> {
    let Some(found) = find(client, job).await?.filter(has_failed) else { return Ok(()) };
    let why = found.error.map_or_else(|| found.state.as_str().to_owned(), |error| message(error.as_str()));
    let update = "update link_canonical set state = 'doomed', last_error = $2, failed_at = $3 \
                  where id = $1 and state = 'open'";
    database.transaction(move |tx| tx.execute(update, row![id.as_str(), why, tx.now()?])).await?;
    Ok(())
}

/// Some links of the import, from a place by chance on: names of links are spread evenly.
async fn sample(database: &Database, import: &str) -> Result<Vec<Record>, StoreError> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let from = format!("{:02x}", (nanos / 1_000) % 256);
    let select = include_str!("sql/list_open.sql");
    let mut found = database.query(select, row![import, from, SAMPLE]).await?;
    if found.is_empty() {
        found = database.query(select, row![import, "", SAMPLE]).await?;
    }
    Ok(found)
}

async fn move_on(database: &Database, id: LinkId, from: &'static str, to: &'static str) -> Result<(), Fail> {
    let update = "update link_canonical set state = $3 where id = $1 and state = $2";
    database.execute(update, row![id.as_str(), from, to]).await?;
    Ok(())
}

async fn find(client: &Client, job: JobId) -> Result<Option<JobSummary>, StoreError> {
    match client.show(job).await {
        Ok(record) => Ok(Some(record.summary)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_failed(job: &JobSummary) -> bool {
    matches!(job.state, JobState::Failed | JobState::Dead | JobState::Canceled)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::testing::Place;

    use super::*;

    kit::on_each_store! { crate::TABLES; what_was_put_aside_once_more_is_not_forgotten, }

    async fn what_was_put_aside_once_more_is_not_forgotten(place: Place) {
        let (database, client) = (&place.database, place.client());
        let url = CanonicalUrl::parse("http://a.example/").unwrap();
        let id = LinkId::of(&url);
        let job = client.enqueue(Enrich { link: id.clone(), url: url.to_string() }).await.unwrap().job();
        let (read, later) = (place.clock.now(), place.clock.now().plus(Duration::from_secs(1)));
        let insert = "insert into link_canonical (id, url, domain, job, aside_at) values ($1, $2, $3, $4, $5)";
        database.execute(insert, row![id.as_str(), url.as_str(), url.domain(), job, later]).await.unwrap();
        let aside = "select count(*) as n from link_canonical where aside_at is not null";
        hasten(database, &client, id.clone(), job, read).await.unwrap();
        assert_eq!(place.count(aside).await, 1, "it ran, and was put aside, after it was read");
        hasten(database, &client, id, job, later).await.unwrap();
        assert_eq!(place.count(aside).await, 0);
    }
}
