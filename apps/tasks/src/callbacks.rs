//! Tells the API how tasks ended.
//!
//! A task carries the URL that wants to know (`callback_url`). What is told comes from the sealed journal, so it is told
//! exactly when the ending was committed: the [`Teller`] makes a delivery of it, and a worker of its own sends it, signed,
//! until it is taken or given up. Where the seed's worker calls the API before it looks for the next task, here the next
//! task need not wait for the API, and no crash in between loses the word.

use std::future::Future;
use std::sync::Arc;

use kit::BoxError;
use tenure::core::Events;
use tenure::core::webhook::OWN_QUEUE;
use tenure::store::StoreError;
use tenure::store::access::SetTenant;
use tenure::store::operate::Word;
use tenure::store::record::Sight;
use tenure::store::webhook::{EndpointFilter, EndpointRecord, OperateEndpoint};
use tenure::webhooks::{
    Deliverer, EndpointError, Endpoints, Owner, Prefix, SealedSecret, SendOptions, Sender, SystemResolver, Teller,
    Wish, deliver,
};
use tenure::{Builder, Client, Database, Store, Worker};
use tokio::sync::watch;

use crate::settings::{Callbacks, Settings};
use crate::task::tenant;

/// Deliveries that are sent at once: nearly all of them wait for the API.
const SLOTS: u32 = 8;

/// What sends callbacks: a worker of the queue in which deliveries wait.
pub fn courier(
    database: &Database,
    settings: &Settings,
    callbacks: &Callbacks,
) -> Result<Builder<Deliverer>, BoxError> {
    let options = SendOptions { timeout: callbacks.timeout, ..SendOptions::default() };
    let sender = Sender::new(settings.guard(), SystemResolver, options)?;
    let store = Arc::clone(Client::new(database).store());
    let courier = Worker::builder(database)
        .queue(OWN_QUEUE, SLOTS)
        .error_wait(settings.error_wait)
        .grace(settings.grace)
        .state(Deliverer::new(store, sender, Some(callbacks.keys.clone())))
        .handle(deliver);
    Ok(match &settings.name {
        Some(name) => courier.name(format!("{name}.callbacks")),
        None => courier,
    })
}

/// Tells and sends until `stop` is over, or one of the two cannot go on.
pub async fn run_until<S>(database: &Database, courier: Worker, stop: impl Fn() -> S) -> Result<(), BoxError>
where
    S: Future<Output = ()>,
{
    let teller = Teller::new(Arc::clone(Client::new(database).store()));
    let telling = async {
        teller.run_until(stop()).await;
        Ok(())
    };
    // A courier that cannot go on ends both: what nobody sends need not be told.
    tokio::try_join!(courier.run_until(stop()), telling)?;
    Ok(())
}

/// Lets `sending` go on beside `working`: it is told when the work has ended, and ends the work when it cannot go on.
pub async fn beside<T>(
    working: impl Future<Output = Result<T, BoxError>>,
    sending: impl Future<Output = Result<(), BoxError>>,
    told: &watch::Sender<bool>,
) -> Result<T, BoxError> {
    tokio::pin!(sending);
    tokio::select! {
        worked = working => {
            told.send_replace(true);
            let sent = sending.await;
            let worked = worked?;
            sent.map(|()| worked)
        }
        sent = &mut sending => match sent {
            Err(error) => Err(format!("callbacks cannot be sent any more: {error}").into()),
            Ok(()) => Err("callbacks are not sent any more".into()),
        },
    }
}

/// Whether callbacks are signed and sent at all: a worker with the API's secret has been here.
pub async fn is_connected(store: &dyn Store) -> Result<bool, StoreError> {
    Ok(find(store).await?.is_some())
}

/// Sees to it that the tenant of tasks has its endpoint for callbacks, with the API's secret. There is one, whoever makes
/// it first.
pub async fn connect(store: &dyn Store, settings: &Settings, callbacks: &Callbacks) -> Result<(), BoxError> {
    if let Some(endpoint) = find(store).await? {
        return check_secret(&endpoint, callbacks);
    }
    store.set_tenant(SetTenant { tenant: tenant(), quota: None, word: word() }).await?;
    let wish = Wish {
        tenant: tenant(),
        url: None,
        events: Events::default(),
        prefix: Prefix::default(),
        secret: Some(callbacks.secret.clone()),
        word: word(),
    };
    let endpoints = Endpoints::new(settings.guard(), Some(callbacks.keys.clone()));
    match endpoints.create(store, wish).await {
        Ok(_) => Ok(()),
        // Another worker that starts was faster.
        Err(EndpointError::Store(StoreError::Conflict(why))) => match find(store).await? {
            Some(endpoint) => check_secret(&endpoint, callbacks),
            None => Err(why.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Removes the endpoint, for whoever makes a secret of its own each time.
pub async fn disconnect(store: &dyn Store) -> Result<(), StoreError> {
    let Some(endpoint) = find(store).await? else { return Ok(()) };
    let sight = Sight::Tenant(tenant());
    store.remove_endpoint(OperateEndpoint { sight, endpoint: endpoint.id, word: word() }).await
}

/// Who makes it, and why: for the journal.
fn word() -> Word {
    Word { actor: Some("tasks".into()), reason: Some("the API is told how tasks ended".into()) }
}

/// The endpoint for callbacks: the one without a URL of its own.
async fn find(store: &dyn Store) -> Result<Option<EndpointRecord>, StoreError> {
    let filter = EndpointFilter { sight: Sight::Tenant(tenant()), after: None, limit: 100 };
    Ok(store.list_endpoints(&filter).await?.into_iter().find(|endpoint| endpoint.url.is_none()))
}

/// Refuses to start with another secret than the one that signs: the API would believe nothing.
fn check_secret(endpoint: &EndpointRecord, callbacks: &Callbacks) -> Result<(), BoxError> {
    let id = endpoint.id.to_string();
    let owner = Owner { tenant: &endpoint.tenant, endpoint: &id };
    let kept = callbacks.keys.open(&SealedSecret::from_bytes(&endpoint.secret)?, owner)?;
    match *kept.text() == *callbacks.secret.text() {
        true => Ok(()),
        false => Err(format!(
            "TASKS_API_SECRET is refused: endpoint {id} signs with another one; give its secret, or remove it by `tenure webhooks remove {id}`"
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_courier_that_cannot_go_on_ends_the_work_with_its_error() {
        let told = watch::Sender::new(false);
        let working = std::future::pending::<Result<(), BoxError>>();
        let ended = beside(working, async { Err("the keeper is gone".into()) }, &told).await.unwrap_err();
        assert_eq!(ended.to_string(), "callbacks cannot be sent any more: the keeper is gone");
    }

    #[tokio::test]
    async fn work_that_has_ended_is_heard_of_and_waits_for_what_is_on_its_way() {
        let told = watch::Sender::new(false);
        let mut stopped = told.subscribe();
        let sending = async move { Ok(stopped.wait_for(|told| *told).await.map(drop)?) };
        assert_eq!(beside(async { Ok(7) }, sending, &told).await.unwrap(), 7);
    }
}
