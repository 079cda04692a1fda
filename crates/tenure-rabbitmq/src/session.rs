//! One session with the broker, from the first word to the last.
//!
//! A session that publishes has two connections. A broker that runs out of memory or disk stops reading from whoever
//! publishes, and on the same connection it would no longer hear that messages have come; on its own the one that
//! publishes waits, its line fills up and drops, and wake-ups go on.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_rs::Runtime;
use futures_core::Stream as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{
    AsyncTcpStream, BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ErrorKind, ExchangeKind,
};
use tenure_core::JobId;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::broker::Shared;
use crate::kit::Kit;
use crate::message;
use crate::options::Target;
use crate::stream::{self, Cut};

/// Messages that wait in a process's own queue while it is slow: more of them say nothing more.
const OWN_QUEUE_MAX: i32 = 1_000;
/// Messages that wait in a shared queue while nobody listens.
const SHARED_QUEUE_MAX: i32 = 10_000;
/// How long saying goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Most characters of what a broker says that are told.
const REASON_CHARS_MAX: usize = 300;

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    /// Nobody there, or no longer: time may help.
    #[error("{0}")]
    Away(String),
    /// Somebody there says no: an operator has to help.
    #[error("{0}")]
    Refused(String),
}

/// What is open. Dropping it cuts the connections.
pub(crate) struct Session {
    consumer: Consumer,
    channel: Channel,
    listening: Link,
    publishing: Option<(Channel, Link)>,
    exchange: ShortString,
    routing_key: ShortString,
}

/// A connection; it is cut after the driver was told.
struct Link {
    connection: Connection,
    _cut: Cut,
}

impl Session {
    /// Connects, declares and consumes, within the time that the options allow.
    pub(crate) async fn open(target: &Target) -> Result<Self, Why> {
        let limit = target.options.connect_timeout;
        let late = |_| Why::Away(format!("no answer within {limit:?}"));
        timeout(limit, Self::set_up(target)).await.map_err(late)?
    }

    async fn set_up(target: &Target) -> Result<Self, Why> {
        let listening = Link::open(target).await?;
        let channel = listening.channel().await?;
        let exchange: ShortString = target.options.exchange.as_str().into();
        let routing_key: ShortString = target.options.routing_key.as_str().into();
        let topic = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let none = FieldTable::default;
        let declared = channel.exchange_declare(exchange.clone(), ExchangeKind::Topic, topic, none()).await;
        declared.map_err(|error| why(format_args!("exchange `{exchange}` cannot be declared"), &error))?;
        let queue = match target.options.queue.as_deref() {
            None => own_queue(&channel).await?,
            Some(name) => shared_queue(&listening, &channel, name).await?,
        };
        let bind = QueueBindOptions::default();
        let bound = channel.queue_bind(queue.clone(), exchange.clone(), routing_key.clone(), bind, none()).await;
        bound.map_err(|error| why(format_args!("queue `{queue}` cannot be bound"), &error))?;
        let consuming = async {
            // Before consuming: what is on its way is what is in memory.
            channel.basic_qos(target.options.prefetch, BasicQosOptions::default()).await?;
            channel.basic_consume(queue.clone(), "".into(), BasicConsumeOptions::default(), none()).await
        };
        let consumer =
            consuming.await.map_err(|error| why(format_args!("queue `{queue}` cannot be consumed"), &error))?;
        let publishing = if target.options.publish {
            let link = Link::open(target).await?;
            Some((link.channel().await?, link))
        } else {
            None
        };
        Ok(Self { consumer, channel, listening, publishing, exchange, routing_key })
    }

    /// Wakes and publishes until the session is lost, and says why it was.
    pub(crate) async fn run(&mut self, jobs: &mut mpsc::Receiver<JobId>, shared: &Shared) -> Why {
        let publishing = self.publishing.as_ref().map(|(channel, _)| channel);
        // Who has nothing to publish, or no longer, goes on listening.
        let publishing = async {
            match publish(publishing, &self.exchange, &self.routing_key, jobs, shared).await {
                Ok(()) => std::future::pending().await,
                Err(why) => why,
            }
        };
        tokio::select! {
            why = listen(&mut self.consumer, &self.channel, shared) => why,
            why = publishing => why,
        }
    }

    /// Publishes what still waits and says goodbye, within a second or two.
    pub(crate) async fn close(self, jobs: &mut mpsc::Receiver<JobId>, shared: &Shared) {
        jobs.close();
        let publishing = self.publishing.as_ref().map(|(channel, _)| channel);
        let last = publish(publishing, &self.exchange, &self.routing_key, jobs, shared);
        // Whoever cannot be told in time sees that the connection ends.
        let _late = timeout(CLOSE_TIMEOUT, last).await;
        let goodbye = async {
            for link in self.publishing.iter().map(|(_, link)| link).chain([&self.listening]) {
                let _gone = link.connection.close(200, "OK".into()).await;
            }
        };
        let _late = timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

impl Link {
    async fn open(target: &Target) -> Result<Self, Why> {
        let (stream, cut) = stream::connect(target).await.map_err(|error| Why::Away(error.to_string()))?;
        let stream = Mutex::new(Some(stream));
        // The driver asks once, and again if it were to try again, which is our business.
        let hand_over = async move |_, _| {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            stream.map(AsyncTcpStream::Plain).ok_or_else(|| lapin::Error::from(io::Error::other("the stream was used")))
        };
        let properties = ConnectionProperties::default().with_connection_name("tenure".into());
        let runtime = Runtime::new(Kit::current());
        let connecting = Connection::connector(target.uri.clone(), runtime, hand_over, properties);
        let connection = connecting.await.map_err(|error| why("the broker does not let us in", &error))?;
        Ok(Self { connection, _cut: cut })
    }

    async fn channel(&self) -> Result<Channel, Why> {
        self.connection.create_channel().await.map_err(|error| why("a channel cannot be opened", &error))
    }
}

/// A queue of this connection's own, named by the broker and gone with the connection.
async fn own_queue(channel: &Channel) -> Result<ShortString, Why> {
    let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let made = channel.queue_declare("".into(), options, at_most(OWN_QUEUE_MAX)).await;
    made.map(|queue| queue.name().clone()).map_err(|error| why("a queue cannot be declared", &error))
}

/// The queue of this name as it is, or a new one.
async fn shared_queue(link: &Link, channel: &Channel, name: &str) -> Result<ShortString, Why> {
    let cannot = |error| why(format_args!("queue `{name}` cannot be declared"), &error);
    // Asking whether it is there costs the channel when it is not.
    let asking = link.channel().await?;
    let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    match asking.queue_declare(name.into(), look, FieldTable::default()).await {
        Ok(_) => return Ok(name.into()),
        Err(error) if is_not_found(&error) => {}
        Err(error) => return Err(cannot(error)),
    }
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name.into(), options, at_most(SHARED_QUEUE_MAX)).await.map_err(cannot)?;
    Ok(name.into())
}

/// The oldest go first: the broker itself bounds a flood.
fn at_most(messages: i32) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(messages));
    arguments
}

/// Counts what comes, wakes, and acknowledges at once, all that is there together.
async fn listen(consumer: &mut Consumer, channel: &Channel, shared: &Shared) -> Why {
    loop {
        let mut last = match next(consumer).await {
            Ok(delivery) => shared.hear(&delivery),
            Err(why) => return why,
        };
        loop {
            match now(consumer) {
                Some(Ok(delivery)) => last = shared.hear(&delivery),
                Some(Err(why)) => return why,
                None => break,
            }
        }
        if let Err(error) = channel.basic_ack(last, BasicAckOptions { multiple: true }).await {
            return why("the connection is lost", &error);
        }
    }
}

/// The next message, whenever it comes.
async fn next(consumer: &mut Consumer) -> Result<Delivery, Why> {
    came(std::future::poll_fn(|cx| Pin::new(&mut *consumer).poll_next(cx)).await)
}

/// The next message if it is here.
fn now(consumer: &mut Consumer) -> Option<Result<Delivery, Why>> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match Pin::new(consumer).poll_next(&mut cx) {
        Poll::Ready(item) => Some(came(item)),
        Poll::Pending => None,
    }
}

fn came(item: Option<lapin::Result<Delivery>>) -> Result<Delivery, Why> {
    match item {
        Some(Ok(delivery)) => Ok(delivery),
        Some(Err(error)) => Err(why("the connection is lost", &error)),
        None => Err(Why::Away("the connection is lost, or the queue was deleted".to_owned())),
    }
}

/// Publishes what comes along the line; ends when nobody can add to it, or with the connection.
async fn publish(
    channel: Option<&Channel>,
    exchange: &ShortString,
    routing_key: &ShortString,
    jobs: &mut mpsc::Receiver<JobId>,
    shared: &Shared,
) -> Result<(), Why> {
    let Some(channel) = channel else { return Ok(()) };
    while let Some(job) = jobs.recv().await {
        let taken = shared.take();
        let json = BasicProperties::default().with_content_type("application/json".into());
        let options = BasicPublishOptions::default();
        let body = message::encode(job);
        // Waits for as long as the broker does not read from us.
        let sent = channel.basic_publish(exchange.clone(), routing_key.clone(), options, &body, json).await;
        sent.map_err(|error| why("the connection is lost", &error))?;
        taken.published();
    }
    Ok(())
}

fn is_not_found(error: &lapin::Error) -> bool {
    let not_found = AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND);
    matches!(error.kind(), ErrorKind::ProtocolError(said) if *said.kind() == not_found)
}

/// What was tried, and what came of it. A broker that says no is another matter than one that is gone.
fn why(what: impl Display, error: &lapin::Error) -> Why {
    let ErrorKind::ProtocolError(said) = error.kind() else {
        return Why::Away(format!("{what}: {error}"));
    };
    // It speaks for the log of whoever runs it: one line, and not a page.
    let text: String = said.get_message().as_str().chars().take(REASON_CHARS_MAX).collect();
    let text = format!("{what}: {}", text.replace(char::is_control, " "));
    match said.kind() {
        AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED | AMQPHardError::INTERNALERROR) => Why::Away(text),
        _ => Why::Refused(text),
    }
}
