//! What happens to an endpoint: decided here, once, for every store.

use tenure_core::Timestamp;
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;

use super::{ChangeEndpoint, EndpointRecord, RecordTry, Tried};
use crate::error::StoreError;

/// What a store writes for a change.
#[derive(Debug, Clone)]
pub struct EndpointChange {
    /// The endpoint from now on.
    pub after: EndpointRecord,
    /// What to write down, and why where nobody says so.
    pub events: Vec<(JournalEvent, Option<String>)>,
}

impl ChangeEndpoint {
    /// Decides what becomes of an endpoint. A repetition changes nothing.
    pub fn apply(self, before: &EndpointRecord, now: Timestamp) -> Result<EndpointChange, StoreError> {
        let mut after = before.clone();
        if let Some(url) = self.url {
            if before.url.is_none() {
                return Err(StoreError::Conflict(format!("endpoint {} has no url: each job says where to", before.id)));
            }
            if before.url.as_ref() != Some(&url) {
                after.failing_since = None;
            }
            after.url = Some(url);
        }
        after.events = self.events.unwrap_or(after.events);
        after.prefix = self.prefix.unwrap_or(after.prefix);
        if let Some((secret, overlap)) = self.secret.filter(|(secret, _)| *secret != before.secret) {
            // A third secret would drop one that the receiver may yet have.
            if let Some((_, until)) = before.previous.as_ref().filter(|(_, until)| *until > now && !overlap.is_zero()) {
                let id = before.id;
                let text =
                    format!("endpoint {id} changes its secret until {until}: wait, or rotate without an overlap");
                return Err(StoreError::Conflict(text));
            }
            let previous = std::mem::replace(&mut after.secret, secret);
            after.previous = (!overlap.is_zero()).then(|| (previous, now.plus(overlap)));
        }
        if self.enabled == Some(true) && before.disabled.is_some() {
            (after.disabled, after.failing_since, after.listens_since) = (None, None, now);
        }
        let mut events = Vec::new();
        if after != *before {
            events.push((JournalEvent::EndpointSet, None));
        }
        if self.enabled == Some(false) && before.disabled.is_none() {
            let why = self.word.reason.unwrap_or_else(|| "by hand".into());
            after.disabled = Some((now, why.clone()));
            events.push((JournalEvent::EndpointDisabled, Some(why)));
        }
        Ok(EndpointChange { after, events })
    }
}

impl RecordTry {
    /// Decides what a try means for its endpoint; answers why it is disabled now, if it is. One for callbacks has many
    /// receivers and is never disabled by one of them.
    pub fn apply(&self, endpoint: &mut EndpointRecord, now: Timestamp) -> Option<String> {
        match self.tried {
            Tried::Delivered => endpoint.failing_since = None,
            Tried::Failed => endpoint.failing_since = endpoint.failing_since.or(Some(now)),
            Tried::Again => {}
        }
        if endpoint.url.is_none() || endpoint.disabled.is_some() {
            return None;
        }
        let since = endpoint.failing_since.filter(|_| self.tried == Tried::Failed);
        let too_long = since.is_some_and(|since| now.since(since) >= self.give_up_after);
        let why = match &self.gone {
            Some(gone) => gone.clone(),
            None if too_long => {
                let time = tenure_core::duration::format(self.give_up_after);
                format!("nothing has arrived for {time}, and another delivery was given up")
            }
            None => return None,
        };
        endpoint.disabled = Some((now, why.clone()));
        Some(why)
    }
}

impl EndpointRecord {
    /// Refuses to ping one that gets nothing, or that has no receiver of its own.
    pub fn refuse_ping(&self) -> Result<(), StoreError> {
        match self.url {
            Some(_) => self.refuse_disabled(),
            None => Err(StoreError::Conflict(format!("endpoint {} has no url: each job says where to", self.id))),
        }
    }

    /// Refuses to send to one that gets nothing.
    pub fn refuse_disabled(&self) -> Result<(), StoreError> {
        match &self.disabled {
            Some((_, why)) => {
                let text = format!("endpoint {} is disabled ({why}): enable it first", self.id);
                Err(StoreError::Conflict(text))
            }
            None => Ok(()),
        }
    }

    /// What the journal keeps beside an event of its own: JSON.
    pub fn details(&self, why: Option<&str>) -> String {
        let why = why.map_or_else(String::new, |why| format!(",\"why\":{}", quote(why)));
        format!("{{\"endpoint\":\"{}\",\"tenant\":{}{why}}}", self.id, quote(self.tenant.as_str()))
    }
}
