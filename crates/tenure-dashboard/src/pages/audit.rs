//! The journal: who did what, when and why, and how far it is sealed.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::seal::Seal;
use tenure_core::{Invalid, JobId, Timestamp};
use tenure_store::journal::JournalFilter;

use super::Shown;
use crate::asked::{Refused, address, moment, parsed_as, refusal, word};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// Also what workers did in the course of their work.
    all: bool,
    event: String,
    actor: String,
    subject: String,
    job: String,
    since: String,
    until: String,
    before: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    frame: Frame,
    asked: Asked,
    rows: Vec<JournalRow>,
    /// Rows that were looked at, when it stopped before the end.
    looked_at: Option<u32>,
    next: Option<String>,
    seal: Option<Seal>,
    refused: Refused,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    visit.need_operator()?;
    let found = match asked.filter(visit.now) {
        Ok(filter) => refusal(desk.store().list_journal(&filter).await)?,
        Err(invalid) => Err(invalid),
    };
    let (found, refused) = Refused::or(found);
    let next = found.next.map(|before| asked.at(&before.to_string()));
    let looked_at = found.next.filter(|_| found.rows.len() < PAGE as usize).map(|_| found.looked_at);
    let seal = desk.newest_seal().await?;
    let frame = visit.frame("Audit", "audit");
    let page = Audit { frame, asked, rows: found.rows, looked_at, next, seal, refused };
    Ok(visit.show_list(page.refused.is_some(), &page))
}

impl Asked {
    fn filter(&self, now: Timestamp) -> Result<JournalFilter, Invalid> {
        let refused = |word: &str| Invalid::new("event", word, "the list has every event");
        let event = word(&self.event).map(|word| {
            JournalEvent::ALL.into_iter().find(|event| event.as_str() == word).ok_or_else(|| refused(word))
        });
        let before = word(&self.before)
            .map(|text| text.parse().map_err(|_| Invalid::new("before", text, "it is the number of an entry")));
        Ok(JournalFilter {
            events: event.transpose()?.into_iter().collect(),
            actor: word(&self.actor).map(str::to_owned),
            subject: word(&self.subject).map(str::to_owned),
            job: parsed_as::<JobId>("job", &self.job)?,
            acts_only: !self.all && word(&self.job).is_none() && word(&self.event).is_none(),
            since: moment("since", &self.since, now)?,
            until: moment("until", &self.until, now)?,
            before: before.transpose()?,
            limit: PAGE,
        })
    }

    fn at(&self, before: &str) -> String {
        address(
            "/audit",
            &[
                ("all", if self.all { "true" } else { "" }),
                ("event", &self.event),
                ("actor", &self.actor),
                ("subject", &self.subject),
                ("job", &self.job),
                ("since", &self.since),
                ("until", &self.until),
                ("before", before),
            ],
        )
    }
}

impl Audit {
    fn events(&self) -> impl Iterator<Item = (&'static str, bool)> {
        JournalEvent::ALL.into_iter().map(|event| (event.as_str(), event.as_str() == self.asked.event))
    }

    /// Who wrote it.
    fn who(&self, row: &JournalRow) -> String {
        match (&row.actor, row.worker) {
            (Some(actor), _) => actor.clone(),
            (None, Some(worker)) => format!("worker {worker}"),
            (None, None) => "Tenure itself".to_owned(),
        }
    }

    fn jobs(&self, row: &JournalRow) -> Markup {
        let shown: Vec<String> = row.jobs.iter().take(3).map(|job| bits::job_link(job).0).collect();
        let more = row.jobs.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(" and {} more", bits::count(more)) } else { String::new() };
        Markup(format!("{}{more}", shown.join(" ")))
    }

    fn hash(&self, seal: &Seal) -> String {
        crate::desk::bits_of(&seal.hash)
    }
}
