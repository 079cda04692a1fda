//! Tenants: who there is, and how much they may have waiting.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::TenantName;
use tenure_store::access::{TenantFilter, TenantRecord};

use super::Shown;
use crate::act::Act;
use crate::asked::{address, parsed};
use crate::bits::{self, Markup, encoded};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    after: String,
}

#[derive(Template)]
#[template(path = "tenants.html")]
struct Tenants {
    frame: Frame,
    tenants: Vec<TenantRecord>,
    next: Option<String>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    visit.person.caller.need_operator(Scope::Admin)?;
    let filter = TenantFilter { after: parsed::<TenantName>(&asked.after)?, limit: PAGE + 1 };
    let mut tenants = desk.store().list_tenants(&filter).await?;
    let has_more = tenants.len() > PAGE as usize;
    tenants.truncate(PAGE as usize);
    let last = tenants.last().filter(|_| has_more);
    let next = last.map(|last| address("/tenants", &[("after", last.name.as_str())]));
    Ok(visit.show(&Tenants { frame: visit.frame("Tenants", "tenants"), tenants, next }))
}

impl Tenants {
    fn quota(&self, tenant: &TenantRecord) -> Markup {
        let name = &tenant.name;
        let act = Act::new("Quota", format!("/v1/tenants/{}", encoded(name)), format!("The quota of {name} is set."))
            .method("PUT")
            .needed("quota:number", "Most pending jobs in each fair queue, 0 for the queue's own", "1000")
            .ask("An enqueue beyond it is refused.");
        self.frame.admin_act(&act)
    }
}
