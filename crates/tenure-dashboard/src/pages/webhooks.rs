//! Webhooks: endpoints, what was delivered to them, and sending it again.

use askama::Template;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure_core::{EndpointId, Invalid, JobId, Scope};
use tenure_store::record::Sight;
use tenure_store::webhook::{
    DeliveryFilter, DeliveryRecord, DeliveryState, DeliverySummary, EndpointFilter, EndpointRecord,
};

use super::Shown;
use crate::act::Act;
use crate::asked::{address, parsed, word};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 50;
const ENDPOINTS: u32 = 200;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    state: String,
    before: String,
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct Webhooks {
    frame: Frame,
    asked: Asked,
    endpoints: Vec<EndpointRecord>,
    deliveries: Vec<DeliverySummary>,
    next: Option<String>,
}

pub(crate) async fn list(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let sight = visit.sight(&None)?;
    // Where endpoints lead is administrators' to see, as the API has it.
    let endpoints = match visit.person.caller.scopes.allow(Scope::Admin) {
        true => {
            desk.store().list_endpoints(&EndpointFilter { sight: sight.clone(), after: None, limit: ENDPOINTS }).await?
        }
        false => Vec::new(),
    };
    let (deliveries, next) = deliveries(&desk, sight, &asked, None, "/webhooks").await?;
    let frame = visit.frame("Webhooks", "webhooks");
    Ok(visit.show(&Webhooks { frame, asked, endpoints, deliveries, next }))
}

#[derive(Template)]
#[template(path = "endpoint.html")]
struct EndpointPage {
    frame: Frame,
    asked: Asked,
    endpoint: EndpointRecord,
    deliveries: Vec<DeliverySummary>,
    next: Option<String>,
}

pub(crate) async fn show(
    State(desk): State<Desk>,
    visit: Visit,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Shown {
    visit.person.caller.need(Scope::Admin)?;
    let (sight, id): (_, EndpointId) = (visit.sight(&None)?, id.parse()?);
    let endpoint = desk.store().show_endpoint(&sight, id).await?;
    let (deliveries, next) = deliveries(&desk, sight, &asked, Some(id), &format!("/webhooks/{id}")).await?;
    let title = endpoint.url.clone().unwrap_or_else(|| "Callbacks of jobs".to_owned());
    Ok(visit.show(&EndpointPage { frame: visit.frame(title, "webhooks"), asked, endpoint, deliveries, next }))
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    frame: Frame,
    delivery: DeliveryRecord,
}

pub(crate) async fn delivery(State(desk): State<Desk>, visit: Visit, Path(id): Path<String>) -> Shown {
    let delivery = desk.store().show_delivery(&visit.sight(&None)?, id.parse()?).await?;
    let title = format!("Delivery of {}", delivery.summary.event_type);
    Ok(visit.show(&DeliveryPage { frame: visit.frame(title, "webhooks"), delivery }))
}

async fn deliveries(
    desk: &Desk,
    sight: Sight,
    asked: &Asked,
    endpoint: Option<EndpointId>,
    path: &str,
) -> Result<(Vec<DeliverySummary>, Option<String>), crate::frame::Trouble> {
    let refused = |word| Invalid::new("state", word, "it is pending, delivered or failed");
    let state = word(&asked.state).map(|word| DeliveryState::parse(word).ok_or_else(|| refused(word))).transpose()?;
    let before = parsed::<JobId>(&asked.before)?;
    let filter = DeliveryFilter { endpoint, state, before, ..DeliveryFilter::new(sight, PAGE + 1) };
    let mut deliveries = desk.store().list_deliveries(&filter).await?;
    let has_more = deliveries.len() > PAGE as usize;
    deliveries.truncate(PAGE as usize);
    let last = deliveries.last().filter(|_| has_more).map(|delivery| delivery.job.to_string());
    let next = last.map(|last| address(path, &[("state", &asked.state), ("before", &last)]));
    Ok((deliveries, next))
}

/// Whether it gets anything.
fn standing(endpoint: &EndpointRecord) -> Markup {
    match (&endpoint.disabled, endpoint.failing_since) {
        (Some(_), _) => bits::badge("disabled"),
        (None, Some(_)) => Markup("<span class=\"badge is-retry\">failing</span>".to_owned()),
        (None, None) => bits::badge("good"),
    }
}

fn tabs<'a>(asked: &'a Asked, path: &'a str) -> impl Iterator<Item = (&'static str, String, bool)> + use<'a> {
    ["", "pending", "delivered", "failed"].into_iter().map(move |state| {
        (if state.is_empty() { "all" } else { state }, address(path, &[("state", state)]), asked.state == state)
    })
}

fn resend(frame: &Frame, delivery: &DeliverySummary) -> Markup {
    let path = format!("/v1/deliveries/{}/resend", delivery.job);
    frame.act(&Act::new("Resend", path, "It is sent again.").ask("The same event is sent again, as a new delivery."))
}

impl Webhooks {
    fn create(&self) -> Markup {
        let mut act = Act::new("New endpoint", "/v1/webhooks", "The endpoint is made.")
            .needed("url", "Where to", "https://example.com/hook")
            .text("events:list", "What it is told; how jobs ended where nothing is said", "job.succeeded, run.*")
            .ask("Its secret is shown once.");
        if self.frame.is_operator {
            act = act.text("tenant", "Whose jobs", "default");
        }
        self.frame.admin_act(&act)
    }
}

impl EndpointPage {
    fn acts(&self) -> Markup {
        let path = |verb: &str| format!("/v1/webhooks/{}{verb}", self.endpoint.id);
        let ping =
            Act::new("Ping", path("/ping"), "It is sent webhook.pinged.").ask("It is sent the event webhook.pinged.");
        let switch = match self.endpoint.disabled {
            Some(_) => Act::new("Enable", path(""), "It gets events again.")
                .method("PATCH")
                .hidden("enabled:bool", "true")
                .ask("It gets what happens from now on."),
            None => Act::new("Disable", path(""), "It gets nothing more.")
                .method("PATCH")
                .hidden("enabled:bool", "false")
                .ask("It gets nothing more until it is enabled.")
                .grave(),
        };
        let rotate = Act::new("Rotate secret", path("/rotate"), "It has another secret.")
            .text("overlap_ms:duration", "Both sign for", "1d")
            .ask("The new secret is shown once.");
        let resend = Act::new("Resend failed", path("/resend"), "What failed is sent again.")
            .ask("Up to 10,000 deliveries that failed are sent again.");
        let remove = Act::new("Remove", path(""), "The endpoint is gone.")
            .method("DELETE")
            .confirm("It and its deliveries are deleted.")
            .grave();
        let acts: String = [ping, switch, rotate, remove].iter().map(|act| self.frame.admin_act(act).0).collect();
        Markup(acts + &self.frame.act(&resend).0)
    }
}
