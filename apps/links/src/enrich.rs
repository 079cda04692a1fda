//! [`enrich`]: one attempt to learn what a link is about.
//!
//! The page is fetched while no transaction is open; then one transaction writes what is known of the link and ends the job.
//! A worker that lost its lease meanwhile is refused there. What went wrong is written down first, by who still has the
//! lease, and reported then: what becomes of the job is decided in one place, [`verdict`](crate::verdict).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::preset::{CAPTCHA, ROBOTS_REFUSED};
use tenure::{Attempt, Completed, Ctx, Database, Fail, Job, State, StoreError, Tx, row};

use crate::canonical::CanonicalUrl;
use crate::failure::{At, Failure, forbid, record};
use crate::link::LinkId;
use crate::page::Page;
use crate::verdict::{Met, Verdict};
use crate::web::{Seen, Trouble};
use crate::worker::Links;

/// How long a job is put aside that nobody waits for, unless somebody does before.
const ASIDE: Duration = Duration::from_secs(86_400);

/// Enrich a link. There is one such job per link, for ever.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "link.enrich", queue = "links", max_attempts = 2, backoff = "fixed 5m", timeout = "3m")]
pub struct Enrich {
    /// Its name, which is the job's unique key.
    pub link: LinkId,
    /// Its canonical address.
    pub url: String,
}

/// Fetches the link and writes down what it is about, or why not.
pub async fn enrich(job: Enrich, State(links): State<Links>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    let url = CanonicalUrl::parse(&job.url).map_err(Fail::permanent)?;
    if !is_wanted(&links.database, &job.link).await? {
        return Err(put_aside(&links.database, job.link).await?);
    }
    let domain = url.domain().to_owned();
    match links.web.look(&url).await {
        Seen::Page { page, redirects_to } => {
            let written = move |tx: &Tx<'_>| {
                keep(tx, &job.link, &domain, &page, redirects_to.as_ref())?;
                attempt.complete_in(tx)
            };
            links.database.transaction(written).await
        }
        Seen::Not(trouble) => {
            check_lease(&ctx).await?;
            if let Some(silence) = trouble.silence {
                ctx.gate().hold(silence);
            }
            let failure = Failure::new(&ctx, job.link, domain, trouble.met, trouble.why.clone());
            let verdict = links.database.transaction(move |tx| record(tx, &failure)).await?;
            Err(answer(&ctx, &trouble, verdict))
        }
        Seen::Forbidden(why) => {
            check_lease(&ctx).await?;
            let (at, link, error) = (At::of(&ctx), job.link, why.clone());
            links.database.transaction(move |tx| forbid(tx, at, &link, &error)).await?;
            Err(Fail::permanent(why))
        }
    }
}

/// Whether an import waits for the link that was not canceled; or an operator has requeued the job of one that was dead.
async fn is_wanted(database: &Database, link: &LinkId) -> Result<bool, StoreError> {
    Ok(!database.query(include_str!("sql/find_wanted.sql"), row![link.as_str()]).await?.is_empty())
}

/// Who lost the lease while a site failed has nothing to say. The store is asked: a process that stood still does not know.
async fn check_lease(ctx: &Ctx) -> Result<(), Fail> {
    match ctx.client().show(ctx.job_id()).await?.lease {
        Some(lease) if lease == ctx.fence() => Ok(()),
        _ => Err(StoreError::LeaseLost(ctx.job_id()).into()),
    }
}

/// The job stays, uncharged; an import that comes between the two finds it when it looks.
async fn put_aside(database: &Database, link: LinkId) -> Result<Fail, StoreError> {
    let update = "update link_canonical set aside_at = $2, state = case state when 'doomed' then 'open' else state end \
                  where id = $1";
    database.transaction(move |tx| tx.execute(update, row![link.as_str(), tx.now()?])).await?;
    Ok(Fail::snooze(ASIDE))
}

fn keep(
    tx: &Tx<'_>,
    link: &LinkId,
    domain: &str,
    page: &Page,
    redirects_to: Option<&CanonicalUrl>,
) -> Result<(), Fail> {
    // It has answered: whatever it refused before was not in a row with what comes.
    tx.execute("update link_domain set streak = 0 where domain = $1 and streak > 0", row![domain])?;
    let text = |text: &Option<String>| text.as_deref().map(str::to_owned);
    let params = row![
        link.as_str(),
        text(&page.title),
        text(&page.description),
        page.canonical.as_ref().map(CanonicalUrl::to_string),
        text(&page.language),
        redirects_to.map(CanonicalUrl::to_string),
        tx.now()?,
    ];
    match tx.execute(include_str!("sql/enrich_link.sql"), params)? {
        0 => Err(Fail::permanent(format!("link {link} is not known here"))),
        _ => Ok(()),
    }
}

/// What the job says of itself. Who refused us, and a gate that is to be left alone, is not asked again.
fn answer(ctx: &Ctx, trouble: &Trouble, verdict: Verdict) -> Fail {
    let why = &trouble.why;
    if verdict.block.is_some() {
        // It answered, and would do so again.
        ctx.gate().healthy();
    }
    match trouble.met {
        Met::RobotsRefused => Fail::code(ROBOTS_REFUSED, why),
        Met::Captcha => Fail::code(CAPTCHA, why),
        Met::Status(_) if verdict.block.is_some() => Fail::dead(format!("{why}, as the domain did before")),
        Met::Status(status) => Fail::http_status(status, why),
        Met::Timeout => Fail::timeout(why),
        Met::Connection => Fail::connection(why),
    }
}
