//! [`Demo`]: two tenants, five passports, a worker that dies, a receiver that fails, and a label that is checked.
//!
//! A lease lasts two seconds here where it is sixty in earnest; the waits between attempts are the real ones. The numbers
//! in earnest are shown by tests that move the clock.

use std::time::Duration;

use kit::{BoxError, Check, Product, Running, Show, Showing, Stage, until};
use tenure::core::name::{QueueName, WorkerName};
use tenure::store::lease::ClaimJobs;
use tenure::{Client, Fail, How, JobId, JobState, TenantName, Worker, row};
use uuid::Uuid;

use crate::app::App;
use crate::bom::Format;
use crate::halt::Halt;
use crate::orders::{self, Order, Uploaded};
use crate::qr::Label;
use crate::records::endpoint;
use crate::records::version::StoredVersion;
use crate::settings::Settings;
use crate::sign::{KeyId, KeyRing};
use crate::subject::Battery;
use crate::world::Receiver;
use crate::{QUEUE, TABLES, evidence, worker};

const BILL: &str = include_str!("story/bill.csv");
const RULES: &str = include_str!("story/rules.json");
/// For the show and nothing else.
const SEED: &str = "show-1=1f0e1d0c1b0a19081706150413021100000102030405060708090a0b0c0d0e0f";
const SEALS: &str = "show:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The product, shown.
pub struct Demo;

impl Product for Demo {
    fn name(&self) -> &'static str {
        "passport"
    }

    fn says(&self) -> &'static str {
        "battery passports from bills of materials: compiled, signed, labeled, told to others, and checked from the label"
    }

    fn show(&self, stage: Stage) -> Showing {
        Box::pin(async move {
            let mut story = Story::begin(stage).await?;
            story.order().await?;
            story.finish().await?;
            story.verify().await?;
            let checks = story.checks;
            Ok(Show { checks, going_on: Box::new((story.receivers, story.running)) })
        })
    }
}

struct Story {
    stage: Stage,
    client: Client,
    app: App,
    tenants: [TenantName; 2],
    receivers: [Receiver; 2],
    passports: Vec<(TenantName, Uploaded)>,
    /// The job that a worker died with, the bill that is malformed, and the order by draft rules.
    lost: Option<JobId>,
    malformed: Option<JobId>,
    drafted: Option<Uploaded>,
    running: Option<Running>,
    checks: Vec<Check>,
}

/// A refusal of the product's own, where nothing should be refused.
fn kept<T>(answer: Result<T, Halt>) -> Result<T, BoxError> {
    answer.map_err(|halt| Fail::from(halt).to_string().into())
}

impl Story {
    /// Two tenants, each with a receiver that is told everything.
    async fn begin(stage: Stage) -> Result<Self, BoxError> {
        let settings = Settings {
            lease_ttl: Duration::from_secs(2),
            renew_every: Duration::from_secs(1),
            keys: KeyRing::parse(SEED).map_err(|refusal| refusal.to_string())?,
            key_id: KeyId::new("show-1")?,
            seals: Some(SEALS.parse()?),
            is_production: false,
            ..Settings::read(&stage.env)?
        };
        stage.database.make_tables(TABLES).await?;
        worker::prepare(&stage.database, &settings).await?;
        let client = Client::new(&stage.database);
        let app = App::new(&stage.database, client.clone(), &settings)?;
        let tenants = [TenantName::new("acme")?, TenantName::new("volt")?];
        let receivers = [Receiver::open().await?, Receiver::open().await?];
        for (tenant, receiver) in tenants.iter().zip(&receivers) {
            leave_others(&app, tenant).await?;
            receiver.trust(kept(endpoint::create(&app, tenant, &receiver.url()).await)?.1);
        }
        stage.tell("acme and volt make batteries; each has a receiver that is told what happens to its passports");
        let (passports, checks) = (Vec::new(), Vec::new());
        let (lost, malformed, drafted, running) = (None, None, None, None);
        Ok(Self { stage, client, app, tenants, receivers, passports, lost, malformed, drafted, running, checks })
    }

    /// Five good bills and two bad ones, and a worker that dies with the first.
    async fn order(&mut self) -> Result<(), BoxError> {
        let [acme, volt] = self.tenants.clone();
        for (tenant, count) in [(&acme, 3), (&volt, 2)] {
            let rules_id = kept(orders::draft(&self.app, tenant, RULES).await)?;
            kept(orders::publish(&self.app, tenant, rules_id).await)?;
            for number in 1..=count {
                let bill = BILL.replace("38400.5", &format!("{}.5", 38_400 + number));
                let uploaded = self.upload(tenant, &format!("SN-{number}"), &bill, rules_id).await?;
                self.passports.push((tenant.clone(), uploaded));
            }
        }
        let comma = BILL.replace("38400.5", "\"38400,5\"");
        let rules_id = kept(orders::draft(&self.app, &acme, RULES).await)?;
        self.malformed = Some(self.upload(&acme, "SN-8", &comma, rules_id).await?.job_id);
        let draft = kept(orders::draft(&self.app, &acme, r#"{"rules":[]}"#).await)?;
        let bill = BILL.replace("52000", "52001");
        self.drafted = Some(self.upload(&acme, "SN-9", &bill, draft).await?);
        self.stage.tell(
            "seven bills of materials came in: five good ones, one with a decimal comma, one whose rules are a draft",
        );

        let store = self.client.store();
        let dead = store.register_worker(&WorkerName::new("worker-a")?).await?;
        let claimed = store.claim_jobs(ClaimJobs::new(dead, QueueName::new(QUEUE)?, 1)).await?;
        let jobs = claimed.ok_or("nothing was due")?.jobs;
        self.lost = jobs.first().map(|job| job.id);
        self.stage.tell("worker-a claims the first of them and is never heard of again");
        self.receivers[0].fail_next([500]);
        Ok(())
    }

    /// Another worker does it all, the dead one's job included.
    async fn finish(&mut self) -> Result<(), BoxError> {
        let builder = Worker::builder(&self.stage.database).name("worker-b");
        self.running = Some(Running::start(worker::worker(builder, &self.app).build()?));
        until("five labeled passports", async || {
            let mut labeled = 0;
            for (tenant, uploaded) in &self.passports {
                labeled += usize::from(self.version(tenant, uploaded).await?.is_some_and(|it| it.status == "LABELED"));
            }
            Ok((labeled == self.passports.len()).then_some(()))
        })
        .await?;
        self.stage.tell("worker-b compiled, signed and labeled all five, after worker-a's lease had expired");
        self.settle().await?;
        let calls: usize = self.receivers.iter().map(|receiver| receiver.received().len()).sum();
        self.stage
            .tell(format!("{calls} webhooks were sent; one was answered with 500, and was tried again after 2 s"));

        let record = self.client.store().show_job(&Default::default(), self.lost.ok_or("a lost job")?).await?;
        let endings: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
        let by = record.attempts.last().and_then(|attempt| attempt.worker.clone()).unwrap_or_default();
        let holds = endings == [How::Lost, How::Succeeded] && by == "worker-b";
        self.check("a dead worker's job is done by another, once", holds, format!("{endings:?}, the last by {by}"));

        let twice = "select count(*) as n from (select 1 as one from passport_event \
                     group by tenant_id, event_type, aggregate_id having count(*) > 1) as twice";
        let twice = self.count(twice).await?;
        let facts = self.count("select count(*) as n from passport_fact").await?;
        self.check("nothing is there twice", twice == 0, format!("{facts} facts, {twice} events twice"));

        let refused = self.refusal(self.malformed.ok_or("a malformed bill")?).await?;
        let holds = refused.contains("VALIDATION_ERROR") && refused.contains("line 2, mass_g");
        self.check("a malformed bill is refused with its line and column", holds, refused);
        self.check_draft().await?;
        self.check_told();
        Ok(())
    }

    /// The label alone is enough to check everything behind it.
    async fn verify(&mut self) -> Result<(), BoxError> {
        let (mut genuine, mut sizes) = (0, Vec::new());
        let mut first = None;
        for (tenant, uploaded) in &self.passports {
            let version = self.version(tenant, uploaded).await?.ok_or("a version")?;
            let label = Label::parse(version.qr_text.as_deref().unwrap_or_default())?;
            genuine += usize::from(self.wrong(&label).await?.is_empty());
            let png = kept(StoredVersion::picture(&self.stage.database, tenant, version.id).await)?;
            sizes.extend(png.as_deref().and_then(side));
            first = first.or(Some(label));
        }
        let label = first.ok_or("a label")?;
        self.stage.tell(format!("the label of the first reads {label}"));
        let all = self.passports.len();
        self.check("every passport is genuine by its label", genuine == all, format!("{genuine} of {all}"));
        let holds = sizes.len() == all && sizes.iter().all(|side| *side == 570);
        self.check("a label is a picture of 570 × 570", holds, format!("{sizes:?}"));

        self.change("4800000", "4800001").await?;
        let wrong = self.wrong(&label).await?;
        self.change("4800001", "4800000").await?;
        self.stage.tell(format!("somebody makes the cobalt a milligram heavier: wrong are {}", wrong.join(", ")));
        let mended = self.wrong(&label).await?.is_empty();
        let holds = wrong.contains(&"proof root") && mended;
        self.check("a fact that was changed is found out by the label", holds, wrong.join(", "));

        let other = StoredVersion::find(&self.stage.database, &self.tenants[1], label.passport_version_id).await;
        let seen = kept(other)?.is_some();
        let seen = if seen { "volt sees acme's passport" } else { "volt sees none of acme's" };
        self.check("no tenant sees another's", seen.contains("none"), seen);
        Ok(())
    }

    async fn check_draft(&mut self) -> Result<(), BoxError> {
        let uploaded = self.drafted.ok_or("an order by draft rules")?;
        let version = self.version(&self.tenants[0], &uploaded).await?;
        let filter = tenure::JobFilter { state: Some(JobState::Failed), limit: 100, ..Default::default() };
        let failed = self.client.store().list_jobs(&filter).await?;
        let code = "RULE_PKG_NOT_PUBLISHED";
        let found = failed.iter().any(|job| job.error.as_ref().is_some_and(|error| error.as_str().contains(code)));
        let seen = if found { code } else { "no such error" };
        self.check("rules that are a draft make no passport", found && version.is_none(), seen);
        Ok(())
    }

    fn check_told(&mut self) {
        let received: Vec<_> = self.receivers.iter().flat_map(Receiver::received).collect();
        let genuine = received.iter().filter(|call| call.is_genuine).count();
        let holds = genuine == received.len() && genuine > 0;
        self.check(
            "every webhook is signed by its endpoint's secret",
            holds,
            format!("{genuine} of {}", received.len()),
        );
        let failed = received.iter().find(|call| call.status == 500).map(|call| call.header("x-bpc-delivery-id"));
        let again = received.iter().filter(|call| call.status == 200);
        let again = again.filter(|call| Some(call.header("x-bpc-delivery-id")) == failed).count();
        let seen = format!("delivery {} arrived {again} time", failed.unwrap_or("none"));
        self.check("what was not taken is told again under the same delivery id", again == 1, seen);
    }

    async fn upload(
        &self,
        tenant: &TenantName,
        serial: &str,
        bill: &str,
        rules_id: Uuid,
    ) -> Result<Uploaded, BoxError> {
        let text = str::to_owned;
        let battery = Battery {
            serial: text(serial),
            model: text("P-90"),
            category: text("EV"),
            capacity_ah: text("94.5"),
            manufactured_on: text("2026-11-15"),
        };
        let passport_id = kept(orders::register(&self.app, tenant, battery).await)?;
        let order = Order { passport_id, rules_id, issued_at: None, key_id: None };
        kept(orders::upload(&self.app, tenant, Format::Csv, bill.as_bytes().to_vec(), Some(order)).await)
    }

    async fn version(&self, tenant: &TenantName, uploaded: &Uploaded) -> Result<Option<StoredVersion>, BoxError> {
        let id = uploaded.passport_version_id.ok_or("an order")?;
        kept(StoredVersion::find(&self.stage.database, tenant, id).await)
    }

    async fn wrong(&self, label: &Label) -> Result<Vec<&'static str>, BoxError> {
        let findings = kept(evidence::check(&self.stage.database, self.app.keys(), None, label).await)?;
        let findings = findings.ok_or("the version is not there")?;
        Ok(findings.iter().filter(|finding| finding.wrong.is_some()).map(|finding| finding.what).collect())
    }

    async fn change(&self, from: &'static str, to: &'static str) -> Result<(), BoxError> {
        let update = "update passport_fact set payload = replace(payload, $1, $2) where tenant_id = 'acme'";
        self.stage.database.execute(update, row![from, to]).await?;
        Ok(())
    }

    async fn refusal(&self, job: JobId) -> Result<String, BoxError> {
        let record = self.client.store().show_job(&Default::default(), job).await?;
        Ok(record.summary.error.map(|error| error.as_str().to_owned()).unwrap_or_default())
    }

    /// Until nothing of it waits or runs.
    async fn settle(&self) -> Result<(), BoxError> {
        let client = &self.client;
        until("the end of all jobs", async || {
            let queues = client.store().list_queues().await?;
            let ours = queues.iter().find(|queue| queue.name.as_str() == QUEUE);
            Ok(ours.is_some_and(|it| it.due + it.scheduled + it.running == 0).then_some(()))
        })
        .await
    }

    async fn count(&self, sql: &'static str) -> Result<i64, BoxError> {
        let rows = self.stage.database.query(sql, row![]).await?;
        Ok(rows.first().ok_or("no count")?.get("n")?)
    }

    fn check(&mut self, name: &str, holds: bool, seen: impl Into<String>) {
        self.checks.push(Check::new(name, holds, seen));
    }
}

/// The receivers of an earlier show are gone.
async fn leave_others(app: &App, tenant: &TenantName) -> Result<(), BoxError> {
    for left in kept(endpoint::list(app.database(), tenant).await)? {
        let tenant = tenant.clone();
        let gone = "the show is over";
        app.database().transaction(move |tx: &tenure::Tx<'_>| endpoint::disable(tx, &tenant, left.id, gone)).await?;
    }
    Ok(())
}

/// The width of a PNG that is as high as wide, from its first bytes.
fn side(png: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_be_bytes(png.get(at..at + 4)?.try_into().ok()?));
    number(16).filter(|width| number(20) == Some(*width))
}
