//! Keys: who may call, what for, until when.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::{KeyId, Scope};
use tenure_store::access::{KeyFilter, KeyRecord};

use super::Shown;
use crate::act::Act;
use crate::asked::{address, parsed};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    ended: bool,
    after: String,
}

#[derive(Template)]
#[template(path = "keys.html")]
struct Keys {
    frame: Frame,
    asked: Asked,
    keys: Vec<KeyRecord>,
    next: Option<String>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    visit.person.caller.need(Scope::Admin)?;
    let filter = KeyFilter {
        sight: visit.sight(&None)?,
        ended_too: asked.ended,
        after: parsed::<KeyId>(&asked.after)?,
        limit: PAGE + 1,
    };
    let mut keys = desk.store().list_keys(&filter).await?;
    let has_more = keys.len() > PAGE as usize;
    keys.truncate(PAGE as usize);
    let last = keys.last().filter(|_| has_more).map(|key| key.id.to_string());
    let ended = if asked.ended { "true" } else { "" };
    let next = last.map(|last| address("/keys", &[("ended", ended), ("after", &last)]));
    Ok(visit.show(&Keys { frame: visit.frame("Keys", "keys"), asked, keys, next }))
}

impl Keys {
    fn standing(&self, key: &KeyRecord) -> Markup {
        bits::badge(match key.is_good(self.frame.now) {
            true => "good",
            false if key.revoked_at.is_some() => "revoked",
            false => "expired",
        })
    }

    fn create(&self) -> Markup {
        let mut act = Act::new("New key", "/v1/keys", "The key is made.")
            .needed("name", "What it is for", "billing")
            .several("scopes", "It may", &["enqueue", "read", "operate", "worker", "admin"])
            .text("life_ms:duration", "It lasts; until it is revoked where nothing is said", "90d")
            .ask("Its text is shown once.");
        if self.frame.is_operator {
            act = act.text("tenant", "Whose it is; an operator's where nothing is said", "acme");
        }
        self.frame.admin_act(&act)
    }

    fn acts(&self, key: &KeyRecord) -> Markup {
        if !key.is_good(self.frame.now) {
            return Markup::default();
        }
        let path = |verb: &str| format!("/v1/keys/{}/{verb}", key.id);
        let rotate = Act::new("Rotate", path("rotate"), "Another key takes its place.")
            .text("overlap_ms:duration", "The old one is good for", "1d")
            .ask("A key with the same name, tenant and scopes takes its place; its text is shown once.");
        let revoke = Act::new("Revoke", path("revoke"), format!("Key {} has ended.", key.name))
            .ask("It ends at once, and the sessions that began with it.")
            .grave();
        Markup(format!("{}{}", self.frame.admin_act(&rotate), self.frame.admin_act(&revoke)))
    }
}
