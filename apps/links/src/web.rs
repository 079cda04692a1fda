//! [`Web`]: one look at a link, as a polite robot takes it.
//!
//! robots.txt is asked first, and its answer is kept for an hour, for all processes; its redirects are followed wherever they
//! lead, five at most. Those of a page are followed as often while they stay with its site; one that leads elsewhere is told
//! and not followed, since that site has a gate of its own. Of a page the first 256 KiB are read.
//!
//! Links come from users, and the worker stands inside of a network: only global addresses are called, which is checked
//! where names are resolved, so that what was checked is what is connected to. Behind a proxy that is the proxy's to say.

use std::time::Duration;

use kit::http::{HttpOptions, client, refused_by_guard};
use kit::{Answer, BoxError};
use reqwest::header::{CONTENT_LANGUAGE, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use tenure::Cache;
use tenure::webhooks::{Guard, GuardOptions};

use crate::canonical::CanonicalUrl;
use crate::page::{self, PAGE_BYTES_MAX, Page, Read};
use crate::robots::{AGENT, Decision, ROBOTS_BYTES_MAX, Robots};
use crate::settings::Settings;
use crate::verdict::Met;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// The outside. Clones share connections and what is kept.
#[derive(Clone)]
pub struct Web {
    client: Client,
    guard: Option<Guard>,
    cache: Cache,
    robots_ttl: Duration,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A page, or something else that is there and is none.
    Page {
        /// What is kept of it.
        page: Box<Page>,
        /// Where it has moved to, if that is another site: it was not followed.
        redirects_to: Option<CanonicalUrl>,
    },
    /// No page.
    Not(Trouble),
    /// An address that nobody outside may make us call.
    Forbidden(String),
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What was met.
    pub met: Met,
    /// In words; no address with its query is among them.
    pub why: String,
    /// How long the site asks to be left alone.
    pub silence: Option<Duration>,
}

/// Why there is no answer.
enum Unanswered {
    Not(Trouble),
    Forbidden(String),
}

impl Web {
    /// Answers of robots.txt are kept in this cache.
    pub fn new(settings: &Settings, cache: Cache) -> Result<Self, BoxError> {
        let options = GuardOptions { https_only: false, ports: Vec::new(), allow: Vec::new() };
        let guard = settings.proxy.is_none().then(|| Guard::new(options));
        let options = HttpOptions {
            timeout: settings.fetch_timeout,
            proxy: settings.proxy,
            guard: guard.clone(),
            user_agent: AGENT,
            ..HttpOptions::default()
        };
        Ok(Self { client: client(&options)?, guard, cache, robots_ttl: settings.robots_ttl })
    }

    /// Looks at a link.
    pub async fn look(&self, link: &CanonicalUrl) -> Seen {
        match self.follow(link).await {
            Ok(seen) => seen,
            Err(Unanswered::Not(trouble)) => Seen::Not(trouble),
            Err(Unanswered::Forbidden(why)) => Seen::Forbidden(why),
        }
    }

    async fn follow(&self, link: &CanonicalUrl) -> Result<Seen, Unanswered> {
        let (mut at, mut status) = (link.clone(), 0);
        for _ in 0..=REDIRECTS_MAX {
            match self.robots(&at).await?.decide(&at) {
                Decision::Allowed => {}
                Decision::Refused => return Err(not(Met::RobotsRefused, "robots.txt keeps us from this page")),
                Decision::Unknown => return Err(not(Met::Connection, "nobody knows what robots.txt says")),
            }
            let fetched = self.fetch(&at, PAGE_BYTES_MAX).await?;
            status = fetched.status;
            match target(&at, &fetched) {
                None => return judge(&at, &fetched),
                Some(next) if next.site() == link.site() => at = next,
                redirects_to => return Ok(Seen::Page { page: Box::default(), redirects_to }),
            }
        }
        Err(not(Met::Status(status), format!("it was redirected more than {REDIRECTS_MAX} times")))
    }

    /// What the site of this address allows, asked at most once in its time.
    async fn robots(&self, at: &CanonicalUrl) -> Result<Robots, Unanswered> {
        let origin = at.as_url().origin().ascii_serialization();
        let ask = || async {
            let mut place = at.join("/robots.txt").map_err(|refused| not(Met::Connection, refused.to_string()))?;
            for _ in 0..REDIRECTS_MAX {
                let fetched = self.fetch(&place, ROBOTS_BYTES_MAX).await?;
                match target(&place, &fetched) {
                    Some(next) => place = next,
                    None => return known(&fetched),
                }
            }
            known(&self.fetch(&place, ROBOTS_BYTES_MAX).await?)
        };
        self.cache.get_or_fetch(&format!("links:robots:{origin}"), self.robots_ttl, ask).await
    }

    async fn fetch(&self, url: &CanonicalUrl, bytes_max: usize) -> Result<Answer, Unanswered> {
        if let Some(guard) = &self.guard {
            // The place alone: what a path may be is not the guard's to say.
            let place = format!("{}/", url.as_url().origin().ascii_serialization());
            guard.check_url(&place).map_err(|refused| Unanswered::Forbidden(refused.to_string()))?;
        }
        let answer = self.client.get(url.as_url().clone()).send().await.map_err(|error| unanswered(&error))?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Answer { status, headers, body: beginning(answer, bytes_max).await? })
    }
}

/// The first bytes of a body; the rest is not waited for.
async fn beginning(mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, Unanswered> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unanswered(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() >= bytes_max {
            body.truncate(bytes_max);
            break;
        }
    }
    Ok(body)
}

/// Where an answer sends us, if it does.
fn target(at: &CanonicalUrl, fetched: &Answer) -> Option<CanonicalUrl> {
    match fetched.status {
        301 | 302 | 303 | 307 | 308 => at.join(fetched.header(LOCATION.as_str())?).ok(),
        _ => None,
    }
}

/// What a robots.txt that could be read says. One that could not is asked for again the next time.
fn known(fetched: &Answer) -> Result<Robots, Unanswered> {
    match Robots::of_answer(fetched.status, &fetched.body) {
        Robots::Unknown { status } => {
            let why = format!("robots.txt was answered with status {status}");
            Err(Unanswered::Not(Trouble { met: Met::Status(status), why, silence: fetched.retry_after() }))
        }
        robots => Ok(robots),
    }
}

fn judge(at: &CanonicalUrl, fetched: &Answer) -> Result<Seen, Unanswered> {
    let answer = page::Answer {
        url: at,
        content_type: fetched.header(CONTENT_TYPE.as_str()),
        content_language: fetched.header(CONTENT_LANGUAGE.as_str()),
        body: &fetched.body,
    };
    // A captcha is one whatever its status.
    match (page::read(&answer), fetched.status) {
        (Read::Captcha(sign), _) => Err(not(Met::Captcha, format!("a captcha, by its {}", sign.as_str()))),
        (Read::Page(page), 200..=299) => Ok(Seen::Page { page: Box::new(page), redirects_to: None }),
        (Read::Page(_), status) => {
            let why = format!("answered with status {status}");
            Err(Unanswered::Not(Trouble { met: Met::Status(status), why, silence: fetched.retry_after() }))
        }
    }
}

fn not(met: Met, why: impl Into<String>) -> Unanswered {
    Unanswered::Not(Trouble { met, why: why.into(), silence: None })
}

/// No answer, in words without the address: its query may hold somebody's secret.
fn unanswered(error: &reqwest::Error) -> Unanswered {
    let why = kit::http::unanswered(error).to_string();
    match error {
        error if refused_by_guard(error) => Unanswered::Forbidden(why),
        error if error.is_timeout() => not(Met::Timeout, why),
        _ => not(Met::Connection, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused_where_it_is_resolved() {
        // As if the name had looked well: what it resolves to is judged all the same.
        let options = HttpOptions { guard: Some(Guard::default()), ..HttpOptions::default() };
        let refused = client(&options).unwrap().get("http://localhost:9/?token=secret").send().await.unwrap_err();
        match unanswered(&refused) {
            Unanswered::Forbidden(why) => assert!(why.contains("loopback"), "{why}"),
            Unanswered::Not(trouble) => panic!("{trouble:?}"),
        }
    }

    #[tokio::test]
    async fn what_could_not_be_reached_is_told_without_its_address() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{closed}/?token=secret");
        let error = client(&HttpOptions::default()).unwrap().get(url).send().await.unwrap_err();
        match unanswered(&error) {
            Unanswered::Not(Trouble { met: Met::Connection, why, .. }) => assert!(!why.contains("secret"), "{why}"),
            Unanswered::Not(trouble) => panic!("{trouble:?}"),
            Unanswered::Forbidden(why) => panic!("{why}"),
        }
    }
}
