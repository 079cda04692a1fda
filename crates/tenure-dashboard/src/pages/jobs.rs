//! Jobs, newest first: by state, kind, queue, tenant, time, and text in the payload; and acts on many of them.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{Invalid, JobId, State as JobState, Timestamp};
use tenure_store::StoreError;
use tenure_store::operation::Act as Many;
use tenure_store::record::{JobFilter, JobSummary};

use super::Shown;
use crate::act::Act;
use crate::asked::{Refused, address, moment, parsed, parsed_as, refusal, word};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

/// Jobs on a page.
const PAGE: u32 = 50;
/// Jobs that are counted before an act on all of them; more are "more".
const COUNTED_MAX: usize = 10_000;

/// The filter, as it is in the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    state: String,
    kind: String,
    queue: String,
    tenant: String,
    text: String,
    since: String,
    until: String,
    stuck: String,
    before: String,
    act: String,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct Jobs {
    frame: Frame,
    asked: Asked,
    queues: Vec<String>,
    jobs: Vec<JobSummary>,
    /// Jobs that were looked at for a text, when it stopped before the end.
    looked_at: Option<u32>,
    next: Option<String>,
    refused: Refused,
}

/// What a page of the list has.
#[derive(Default)]
struct Found {
    jobs: Vec<JobSummary>,
    looked_at: Option<u32>,
    next: Option<JobId>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let found = match asked.filter(&visit)? {
        Ok(filter) => refusal(find(&desk, filter, &asked.text).await)?,
        Err(invalid) => Err(invalid),
    };
    let (Found { jobs, looked_at, next }, refused) = Refused::or(found);
    let next = next.map(|before| asked.at(&before.to_string()));
    let queues = match visit.person.caller.tenant {
        None => desk.queues().await?.into_iter().map(|queue| queue.name.to_string()).collect(),
        Some(_) => Vec::new(),
    };
    let frame = visit.frame("Jobs", "jobs");
    Ok(visit.show_list(refused.is_some(), &Jobs { frame, asked, queues, jobs, looked_at, next, refused }))
}

async fn find(desk: &Desk, filter: JobFilter, text: &str) -> Result<Found, StoreError> {
    let Some(text) = word(text) else {
        let mut jobs = desk.store().list_jobs(&JobFilter { limit: PAGE + 1, ..filter }).await?;
        let has_more = jobs.len() > PAGE as usize;
        jobs.truncate(PAGE as usize);
        let next = jobs.last().filter(|_| has_more).map(|job| job.id);
        return Ok(Found { jobs, looked_at: None, next });
    };
    let found = desk.store().search_jobs(&filter, text).await?;
    Ok(Found { jobs: found.jobs, looked_at: found.next.map(|_| found.looked_at), next: found.next })
}

impl Asked {
    /// The filter, or the field that is refused. A tenant that this person may not see is an error.
    fn filter(&self, visit: &Visit) -> Result<Result<JobFilter, Invalid>, tenure_server::problem::Problem> {
        let wanted = parsed::<TenantName>(&self.tenant).and_then(|tenant| Ok((tenant, self.wanted(visit.now)?)));
        let (tenant, filter) = match wanted {
            Ok(wanted) => wanted,
            Err(invalid) => return Ok(Err(invalid)),
        };
        Ok(Ok(JobFilter { sight: visit.sight(&tenant)?, ..filter }))
    }

    fn wanted(&self, now: Timestamp) -> Result<JobFilter, Invalid> {
        let stuck = word(&self.stuck).map(|text| tenure_core::duration::parse("stuck", text)).transpose()?;
        Ok(JobFilter {
            state: self.state()?,
            queue: parsed::<QueueName>(&self.queue)?,
            kind: parsed::<KindName>(&self.kind)?,
            since: moment("since", &self.since, now)?,
            until: moment("until", &self.until, now)?,
            before: parsed_as::<JobId>("before", &self.before)?,
            stuck_for: stuck,
            limit: PAGE,
            ..JobFilter::default()
        })
    }

    fn state(&self) -> Result<Option<JobState>, Invalid> {
        let refused = |word| Invalid::new("state", word, "it is one of the eight states of a job");
        word(&self.state).map(|word| JobState::parse(word).ok_or_else(|| refused(word))).transpose()
    }

    fn at(&self, before: &str) -> String {
        let mut pairs = self.pairs().to_vec();
        pairs.push(("before", before));
        address("/jobs", &pairs)
    }

    fn with_state(&self, state: &str) -> String {
        let pairs: Vec<_> =
            self.pairs().iter().map(|(name, value)| (*name, if *name == "state" { state } else { *value })).collect();
        address("/jobs", &pairs)
    }

    fn pairs(&self) -> [(&'static str, &str); 8] {
        [
            ("state", &self.state),
            ("kind", &self.kind),
            ("queue", &self.queue),
            ("tenant", &self.tenant),
            ("text", &self.text),
            ("since", &self.since),
            ("until", &self.until),
            ("stuck", &self.stuck),
        ]
    }

    /// What can be done with all jobs that match: an operation knows states, queues and kinds.
    fn many(&self) -> Vec<(&'static str, &'static str)> {
        let is_simple = [&self.text, &self.since, &self.until, &self.stuck].iter().all(|text| word(text).is_none());
        let Some(state) = JobState::parse(&self.state).filter(|_| is_simple) else { return Vec::new() };
        let acts = [(Many::Requeue, "Requeue all"), (Many::Cancel, "Cancel all")];
        acts.into_iter().filter(|(act, _)| act.fits(state)).map(|(act, label)| (act.as_str(), label)).collect()
    }
}

impl Jobs {
    fn states(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        JobState::ALL.into_iter().map(|state| {
            let word = state.as_str();
            (word, self.asked.with_state(word), self.asked.state == word)
        })
    }

    fn bulk(&self, act: &str) -> String {
        let Asked { state, queue, kind, tenant, .. } = &self.asked;
        address("/jobs/bulk", &[("act", act), ("state", state), ("queue", queue), ("kind", kind), ("tenant", tenant)])
    }

    fn is_filtered(&self) -> bool {
        self.asked.pairs().iter().any(|(_, value)| word(value).is_some())
    }
}

/// Before an act on many jobs: how many, and which.
#[derive(Template)]
#[template(path = "bulk.html")]
struct Bulk {
    frame: Frame,
    asked: Asked,
    act: Many,
    jobs: Vec<JobSummary>,
    count: usize,
    is_more: bool,
}

pub(crate) async fn confirm(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let refused = || Invalid::new("act", &asked.act, "it is requeue or cancel");
    let act = Many::parse(&asked.act).filter(|act| *act != Many::CancelByForce).ok_or_else(refused)?;
    // What is counted here is what is acted on: an operation knows states, queues, kinds and tenants.
    let others = [
        ("text", &asked.text),
        ("since", &asked.since),
        ("until", &asked.until),
        ("stuck", &asked.stuck),
        ("before", &asked.before),
    ];
    if let Some((field, value)) = others.into_iter().find(|(_, value)| word(value).is_some()) {
        return Err(Invalid::new(
            field,
            value,
            "an act on all jobs that match knows state, queue, kind and tenant only",
        )
        .into());
    }
    if !asked.state()?.is_some_and(|state| act.fits(state)) {
        return Err(Invalid::new("state", &asked.state, "its jobs cannot be acted on like this").into());
    }
    let mut filter = JobFilter { limit: 1_000, ..asked.filter(&visit)?? };
    let (mut jobs, mut count, mut is_more) = (Vec::new(), 0, true);
    while is_more && count < COUNTED_MAX {
        let page = desk.store().list_jobs(&filter).await?;
        count += page.len();
        is_more = page.len() == filter.limit as usize;
        filter.before = page.last().map(|job| job.id);
        if jobs.is_empty() {
            jobs = page.into_iter().take(10).collect();
        }
    }
    let frame = visit.frame("Act on many jobs", "jobs");
    Ok(visit.show(&Bulk { frame, asked, act, jobs, count, is_more }))
}

impl Bulk {
    fn verb(&self) -> &'static str {
        match self.act {
            Many::Requeue => "Requeue",
            Many::Cancel | Many::CancelByForce => "Cancel",
        }
    }

    fn number(&self) -> String {
        let more = if self.is_more { "+" } else { "" };
        format!("{}{more} {}", bits::count(self.count), if self.count == 1 { "job" } else { "jobs" })
    }

    fn button(&self) -> Markup {
        let mut act = Act::new(self.verb(), "/v1/operations", "It has begun; this page follows it.")
            .hidden("act", self.act.as_str())
            .hidden("state", &self.asked.state)
            .ask(format!("{} {}. It goes on in the background, and can be stopped.", self.verb(), self.number()));
        for (name, value) in [("queue", &self.asked.queue), ("kind", &self.asked.kind), ("tenant", &self.asked.tenant)]
        {
            if let Some(value) = word(value) {
                act = act.hidden(name, value);
            }
        }
        if self.act == Many::Cancel {
            act = act.grave();
        }
        self.frame.act(&act)
    }
}
