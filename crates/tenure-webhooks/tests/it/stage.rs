//! A store, a receiver that answers as it is told, and what stands between them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::{EndpointId, Events, JobId, Json, KindName, NewJob, QueueName, TenantName, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::Store;
use tenure_store::access::SetTenant;
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ending};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{DeliveryFilter, DeliveryRecord, DeliverySummary};
use tenure_webhooks::verify::{NotGenuine, Received, verify};
use tenure_webhooks::{Deliverer, Endpoints, Guard, GuardOptions, MasterKeys, Secret, Teller, Wish, deliver};
use tenure_worker::Worker;
use tokio::io::AsyncWriteExt;

use crate::receiver::{AMPLE, Receiver, Told, read_request, sender};

const START: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// A request as it came.
pub(crate) struct Request {
    text: String,
    body: Vec<u8>,
}

/// Everything around a delivery.
pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) teller: Teller,
    pub(crate) receiver: Receiver,
    pub(crate) endpoints: Endpoints,
    requests: Arc<Mutex<Vec<Request>>>,
    ids: Mutex<u64>,
}

impl Stage {
    /// A receiver that gives these answers one after the other, and 204 when there are none left.
    pub(crate) async fn new(answers: &[&'static str]) -> Self {
        let clock = ManualClock::new(START);
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(options).unwrap());
        store.migrate().await.unwrap();
        for tenant in ["acme", "bolt"] {
            let tenant = tenant.parse().unwrap();
            store.set_tenant(SetTenant { tenant, quota: None, word: Word::default() }).await.unwrap();
        }
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: Arc<Mutex<VecDeque<&'static str>>> = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let kept = Arc::clone(&requests);
        let receiver = Receiver::start(move |mut stream| {
            let (kept, answers) = (Arc::clone(&kept), Arc::clone(&answers));
            async move {
                let request = read_request(&mut stream).await?;
                let head = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
                let text = String::from_utf8(request[..head].to_vec()).unwrap();
                kept.lock().unwrap().push(Request { text, body: request[head + 4..].to_vec() });
                let answer = answers.lock().unwrap().pop_front().unwrap_or("204 No Content\r\n");
                stream.write_all(format!("HTTP/1.1 {answer}Content-Length: 0\r\n\r\n").as_bytes()).await?;
                stream.shutdown().await
            }
        })
        .await;
        let allow = vec!["127.0.0.0/8".parse().unwrap()];
        let guard = Guard::new(GuardOptions { https_only: false, ports: vec![receiver.address.port()], allow });
        let endpoints = Endpoints::new(guard, Some(keys()));
        let teller = Teller::new(Arc::clone(&store));
        Self { store, clock, teller, receiver, endpoints, requests, ids: Mutex::new(0) }
    }

    /// An endpoint at the receiver, and its secret.
    pub(crate) async fn endpoint(&self, tenant: &str, events: &str) -> (EndpointId, Secret) {
        self.wish(tenant, events, Some(self.receiver.url())).await
    }

    pub(crate) async fn wish(&self, tenant: &str, events: &str, url: Option<String>) -> (EndpointId, Secret) {
        let wish = Wish {
            tenant: tenant.parse().unwrap(),
            url,
            events: events.parse::<Events>().unwrap(),
            prefix: "X-Acme-".parse().unwrap(),
            secret: None,
            word: Word::default(),
        };
        let (record, secret) = self.endpoints.create(&*self.store, wish).await.unwrap();
        (record.id, secret)
    }

    pub(crate) fn new_job(&self, tenant: &str) -> NewJob {
        let mut ids = self.ids.lock().unwrap();
        *ids += 1;
        let mut random = [0; 10];
        random[2..].copy_from_slice(&ids.to_be_bytes());
        let id = JobId::from_parts(self.clock.now(), random);
        let mut job = NewJob::new(id, KindName::new("invoice.send").unwrap(), Json::null());
        job.tenant = tenant.parse::<TenantName>().unwrap();
        job
    }

    /// Stores jobs, claims them and reports how all of them ended; seals what was written.
    pub(crate) async fn work(&self, jobs: Vec<NewJob>, ending: &Ending) {
        self.store.enqueue_jobs(jobs).await.unwrap();
        let worker = self.store.register_worker(&"w".parse().unwrap()).await.unwrap();
        let claim = ClaimJobs::new(worker, QueueName::default(), 256);
        while let Some(claimed) = self.store.claim_jobs(claim.clone()).await.unwrap() {
            let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, ending.clone())).collect();
            self.store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.unwrap();
        }
        self.seal().await;
    }

    pub(crate) async fn seal(&self) {
        while self.store.seal_journal().await.unwrap().is_some() {}
    }

    /// Tells what is sealed; answers what is in the log, oldest first.
    pub(crate) async fn tell(&self) -> Vec<DeliverySummary> {
        self.teller.tell_all().await.unwrap();
        self.log().await
    }

    pub(crate) async fn log(&self) -> Vec<DeliverySummary> {
        let mut filter = DeliveryFilter::new(Sight::All, 1_000);
        let mut all = Vec::new();
        loop {
            let page = self.store.list_deliveries(&filter).await.unwrap();
            filter.before = page.last().map(|delivery| delivery.job);
            let is_last = page.len() < 1_000;
            all.extend(page);
            if is_last {
                all.reverse();
                return all;
            }
        }
    }

    pub(crate) async fn delivery(&self, job: JobId) -> DeliveryRecord {
        self.store.show_delivery(&Sight::All, job).await.unwrap()
    }

    /// Sends everything that is due.
    pub(crate) async fn send(&self) {
        self.send_with(Some(keys())).await;
    }

    pub(crate) async fn send_with(&self, keys: Option<MasterKeys>) {
        let sender = sender(self.receiver.address.port(), &["127.0.0.0/8"], Told::loopback(), AMPLE);
        let deliverer = Deliverer::new(Arc::clone(&self.store), sender, keys);
        let worker = Worker::builder(&self.store).name("server").state(deliverer).handle(deliver).build().unwrap();
        worker.run_until_idle().await.unwrap();
    }

    /// What came since the last time.
    pub(crate) fn taken(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Whether a receiver with this secret believes it.
    pub(crate) fn verified(&self, secret: &Secret, now: Timestamp) -> Result<(), NotGenuine> {
        let header = |name| self.header(name).unwrap_or_default();
        let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
        let received = Received { id, timestamp, signature: header("webhook-signature"), body: &self.body };
        verify(std::slice::from_ref(secret), &received, now)
    }
}

pub(crate) fn keys() -> MasterKeys {
    format!("test:{}", "5a".repeat(32)).parse().unwrap()
}

pub(crate) fn success() -> Ending {
    let json = |text: &str| Some(Json::parse("result", text).unwrap());
    Ending::Succeeded { result: json("{\"receipt\":12345678901234567890123}"), usage: json("{\"units\":3}") }
}
