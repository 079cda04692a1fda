//! Wake-ups by `LISTEN`. Polling is the truth; a notification only makes it faster, and one that is lost costs a poll.
//!
//! One connection listens for the whole process. It never opens a transaction (the server's queue of notifications would
//! fill up behind it) and it carries nothing but queue names, which are not trusted: they only cause a claim.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{Invalid, QueueName};
use tenure_store::{StoreError, WakeStore};
use tokio::sync::broadcast;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::call::late;
use crate::error::translate;
use crate::peer::Peer;
use crate::pool::Desk;
use crate::pooler;
use crate::statement;
use crate::store::PgStore;
use crate::tls::{self, Target};

/// Names kept for a waiter that is slow to look; it is woken all the same.
const BACKLOG: usize = 64;
/// How a refusal names the URL of the server behind a pooler.
const DIRECT: &str = "direct database";
/// How long a waiter sleeps where there is no `LISTEN`.
const POLL: Duration = Duration::from_secs(1);

type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The connection that listens, made when somebody first waits.
pub(crate) struct Listener {
    target: Target,
    /// The URL without its password, where it is another one than the store's: nothing has looked for a pooler there yet.
    unproven: Option<String>,
    open: Mutex<Option<Open>>,
}

/// One that is open. Its driver has the only sender, so that a connection that died is seen by whoever comes next, even
/// when nobody was waiting; and it goes with its client, so that a store that is dropped stops listening.
struct Open {
    heard: broadcast::WeakSender<Heard>,
    client: Client,
}

#[derive(Debug, Clone)]
enum Heard {
    Work(String),
    Lost(String),
}

impl Listener {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, unproven: None, open: Mutex::new(None) }
    }

    /// A listener at the server itself, for a store behind a pooler.
    pub(crate) fn behind_no_pooler(url: &str) -> Result<Self, StoreError> {
        let shown = tls::without_password(url);
        let mut target = tls::target(url).map_err(|error| match error {
            StoreError::Invalid(invalid) => StoreError::Invalid(Invalid::new(DIRECT, &shown, invalid.limit)),
            error => error,
        })?;
        if target.config.get_application_name().is_none() {
            target.config.application_name("tenure");
        }
        Ok(Self { unproven: Some(shown), ..Self::new(target) })
    }

    /// A receiver of what is heard; connects when nobody listens yet.
    async fn subscribe(&self, deadline: Duration) -> Result<broadcast::Receiver<Heard>, StoreError> {
        match tokio::time::timeout(deadline, self.connect()).await {
            Ok(receiver) => receiver,
            Err(_) => Err(late(deadline)),
        }
    }

    async fn open(&self) -> Result<(Client, Connection<Socket, Stream>), StoreError> {
        let Target { config, tls } = &self.target;
        config.connect(tls.clone()).await.map_err(|error| Peer::of(config).explain(&error))
    }

    async fn connect(&self) -> Result<broadcast::Receiver<Heard>, StoreError> {
        if let Some(receiver) = self.lock().as_ref().and_then(Open::subscribe) {
            return Ok(receiver);
        }
        let (client, mut connection) = self.open().await?;
        let (heard, receiver) = broadcast::channel(BACKLOG);
        let open = Open { heard: heard.downgrade(), client };
        tokio::spawn(async move {
            let lost = loop {
                match std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                    Some(Ok(AsyncMessage::Notification(said))) => {
                        // Nobody waiting is no error: they poll.
                        let _nobody = heard.send(Heard::Work(said.payload().to_owned()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error.to_string(),
                    None => break "the listening connection was closed".to_owned(),
                }
            };
            let _nobody = heard.send(Heard::Lost(lost));
        });
        if let Some(shown) = &self.unproven {
            let (other, connection) = self.open().await?;
            let driver = tokio::spawn(connection);
            let found = pooler::is_between(&open.client, &other).await;
            drop(other);
            // The connection ends with its client; its last message is of no interest.
            let _ended = driver.await;
            if found.map_err(translate)? {
                return Err(pooler::refuse(DIRECT, shown, "name the server itself, or leave it out and workers poll"));
            }
        }
        open.client.batch_execute("listen tenure").await.map_err(translate)?;
        let mut slot = self.lock();
        // Somebody else may have been faster: then ours goes again.
        if let Some(receiver) = slot.as_ref().and_then(Open::subscribe) {
            return Ok(receiver);
        }
        *slot = Some(open);
        Ok(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Open {
    /// `None` when the connection has ended.
    fn subscribe(&self) -> Option<broadcast::Receiver<Heard>> {
        self.heard.upgrade().map(|heard| heard.subscribe())
    }
}

#[async_trait]
impl WakeStore for PgStore {
    async fn push_idle(&self, queue: &QueueName) -> Result<(), StoreError> {
        if self.listener().is_some() {
            self.call(Desk::Short, statement::PUSH_IDLE, &[(&queue.as_str(), Type::TEXT)]).await?;
        }
        Ok(())
    }

    async fn wait_for_work(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        let Some(listener) = self.listener() else {
            tokio::time::sleep(POLL).await;
            return Ok(());
        };
        let mut heard = listener.subscribe(self.options().deadline).await?;
        loop {
            match heard.recv().await {
                Ok(Heard::Work(name)) if queues.iter().any(|queue| queue.as_str() == name) => return Ok(()),
                Ok(Heard::Work(_)) => {}
                // Fell behind: something was said, perhaps for us.
                Err(broadcast::error::RecvError::Lagged(_)) => return Ok(()),
                Ok(Heard::Lost(why)) => return Err(StoreError::Unavailable(why, None)),
                Err(broadcast::error::RecvError::Closed) => {
                    return Err(StoreError::Unavailable("the listening connection was closed".to_owned(), None));
                }
            }
        }
    }
}
