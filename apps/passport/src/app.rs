//! [`App`]: what handlers and the server share.

use std::sync::Arc;

use kit::BoxError;
use tenure::rabbitmq::{Broker, Options};
use tenure::store::enqueue::Enqueued;
use tenure::webhooks::{MasterKeys, SendOptions, Sender, SystemResolver};
use tenure::{Client, Database, TenantName};

use crate::code::{Code, Refusal};
use crate::settings::Settings;
use crate::sign::KeyRing;

/// Database, keys, sender and broker. Clones share everything.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    database: Database,
    client: Client,
    settings: Settings,
    sender: Sender,
    broker: Option<Broker>,
}

impl App {
    /// Puts it together, and starts to look for the broker if there is to be one. Inside of a tokio runtime.
    pub fn new(database: &Database, client: Client, settings: &Settings) -> Result<Self, BoxError> {
        let options = SendOptions { timeout: settings.webhook_timeout, ..SendOptions::default() };
        let sender = Sender::new(settings.guard()?, SystemResolver, options)?;
        let broker = settings.queue.as_ref().map(|queue| {
            let mut options = Options::new(queue.url.as_str());
            options.exchange.clone_from(&queue.exchange);
            options.routing_key.clone_from(&queue.routing_key);
            options.publish = true;
            Broker::start(options)
        });
        let (database, settings) = (database.clone(), settings.clone());
        Ok(Self(Arc::new(Inner { database, client, settings, sender, broker: broker.transpose()? })))
    }

    /// Jobs and tables.
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// A client for a tenant's jobs.
    pub fn client(&self, tenant: &TenantName) -> Client {
        self.0.client.clone().for_tenant(tenant.clone())
    }

    /// How the product works.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// What signs receipts.
    pub fn keys(&self) -> &KeyRing {
        &self.0.settings.keys
    }

    /// What seals the secrets of webhooks; `SIGNING_KEY_MISSING` when nothing does.
    pub fn seals(&self) -> Result<&MasterKeys, Refusal> {
        let missing =
            "no key seals the secrets of webhooks: set BPC_MASTER_KEYS to id:key, the key 64 hexadecimal digits";
        self.0.settings.seals.as_ref().ok_or_else(|| Refusal::new(Code::SigningKeyMissing, missing))
    }

    /// What calls receivers.
    pub fn sender(&self) -> &Sender {
        &self.0.sender
    }

    /// The broker, where there is one.
    pub fn broker(&self) -> Option<&Broker> {
        self.0.broker.as_ref()
    }

    /// Says that these jobs were committed. What nobody hears is found by polling.
    pub fn say<'e>(&self, stored: impl IntoIterator<Item = &'e Enqueued>) {
        if let Some(broker) = self.broker() {
            stored.into_iter().filter_map(Enqueued::created).for_each(|job| broker.publish(job));
        }
    }
}
