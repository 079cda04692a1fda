//! A client that says whatever it likes.

use lapin::options::{BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use tenure_core::JobId;

pub(crate) struct Raw {
    channel: Channel,
    _connection: Connection,
}

impl Raw {
    pub(crate) async fn connect(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
        Self { channel: connection.create_channel().await.unwrap(), _connection: connection }
    }

    pub(crate) async fn send(&self, exchange: &str, body: &[u8]) {
        let options = BasicPublishOptions::default();
        let sent = self.channel.basic_publish(
            exchange.into(),
            "jobs.trigger".into(),
            options,
            body,
            BasicProperties::default(),
        );
        sent.await.unwrap();
    }

    pub(crate) async fn send_job(&self, exchange: &str, job: JobId) {
        self.send(exchange, format!("{{\"job_id\": \"{job}\"}}").as_bytes()).await;
    }

    pub(crate) async fn declare_fanout(&self, exchange: &str) {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared =
            self.channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, options, FieldTable::default());
        declared.await.unwrap();
    }

    pub(crate) async fn delete_exchange(&self, exchange: &str) {
        self.channel.exchange_delete(exchange.into(), ExchangeDeleteOptions::default()).await.unwrap();
    }

    pub(crate) async fn delete_queue(&self, queue: &str) {
        self.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.unwrap();
    }
}
