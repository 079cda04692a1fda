//! A tenant with a battery, rules and a receiver, and a worker, in a place with a clock that the test moves.

use std::time::Duration;

use kit::Env;
use kit::testing::Place;
use passport::app::App;
use passport::bom::Format;
use passport::orders::{self, Order, Uploaded};
use passport::records::endpoint;
use passport::records::version::StoredVersion;
use passport::settings::Settings;
use passport::subject::Battery;
use passport::worker;
use passport::world::Receiver;
use tenure::{Client, Fail, JobId, JobRecord, JobState, Summary, TenantName, Worker, row};
use uuid::Uuid;

pub(crate) const KEYS: &str = "dev-key-1=9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
pub(crate) const SEALS: &str = "test:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

pub(crate) const BILL: &str = "\
component,material,mass_g,recycled_percent,origin_country,hazardous
cathode,nickel,38400.5,16,FI,false
cathode,cobalt,4800,12.5,CD,true
anode,graphite,52000,,CN,false
";

pub(crate) const RULES: &str = r#"{"rules": [
    {"id": "mass-limit", "path": "mass_total_mg", "op": "<=", "value": 500000000},
    {"id": "cobalt-recycled", "path": "material.cobalt.recycled_bp", "op": ">=", "value": 1600},
    {"id": "category", "path": "battery.category", "op": "in", "value": ["EV", "LMT", "industrial"]}]}"#;

pub(crate) struct Plant {
    pub(crate) place: Place,
    pub(crate) tenant: TenantName,
    pub(crate) client: Client,
    pub(crate) app: App,
    pub(crate) worker: Worker,
    pub(crate) receiver: Receiver,
}

/// The settings of every test, and some more.
pub(crate) fn settings(more: &[(&str, &str)]) -> Settings {
    let mut env = vec![("BPC_ENV", "development"), ("BPC_SIGNING_KEYS", KEYS), ("BPC_MASTER_KEYS", SEALS)];
    env.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    env.extend(more);
    Settings::read(&Env::of(&env)).unwrap()
}

/// A handler's or an order's answer, or why there is none.
pub(crate) fn kept<T>(answer: Result<T, passport::halt::Halt>) -> T {
    answer.unwrap_or_else(|halt| panic!("{}", Fail::from(halt)))
}

impl Plant {
    pub(crate) async fn open(place: Place) -> Self {
        Self::with(place, &[]).await
    }

    pub(crate) async fn with(place: Place, env: &[(&str, &str)]) -> Self {
        Self::of(place, settings(env)).await
    }

    pub(crate) async fn of(place: Place, settings: Settings) -> Self {
        worker::prepare(&place.database, &settings).await.unwrap();
        let tenant = TenantName::new("acme").unwrap();
        let client = place.client().for_tenant(tenant.clone());
        let app = App::new(&place.database, place.client(), &settings).unwrap();
        let worker = worker::worker(place.worker(), &app).build().unwrap();
        let receiver = Receiver::open().await.unwrap();
        Self { place, tenant, client, app, worker, receiver }
    }

    /// The same place with other settings.
    pub(crate) fn again(self, env: &[(&str, &str)]) -> Self {
        let app = App::new(&self.place.database, self.place.client(), &settings(env)).unwrap();
        let worker = worker::worker(self.place.worker(), &app).build().unwrap();
        Self { app, worker, ..self }
    }

    /// Tells the receiver everything from now on.
    pub(crate) async fn tell(&self) -> Uuid {
        let (id, secret) = kept(endpoint::create(&self.app, &self.tenant, &self.receiver.url()).await);
        self.receiver.trust(secret);
        id
    }

    /// A battery and published rules, as an order of its passport.
    pub(crate) async fn order(&self) -> Order {
        let passport_id = kept(orders::register(&self.app, &self.tenant, battery("SN-1")).await);
        let rules_id = self.rules(RULES).await;
        Order { passport_id, rules_id, issued_at: None, key_id: None }
    }

    pub(crate) async fn rules(&self, rules: &str) -> Uuid {
        let id = kept(orders::draft(&self.app, &self.tenant, rules).await);
        kept(orders::publish(&self.app, &self.tenant, id).await);
        id
    }

    pub(crate) async fn upload(&self, bill: &str, order: Option<Order>) -> Uploaded {
        kept(orders::upload(&self.app, &self.tenant, Format::Csv, bill.as_bytes().to_vec(), order).await)
    }

    /// All the way: from the bill to the label. Answers the version.
    pub(crate) async fn passport(&self) -> StoredVersion {
        let order = self.order().await;
        let uploaded = self.upload(BILL, Some(order)).await;
        self.run().await;
        self.version(uploaded.passport_version_id.unwrap()).await
    }

    pub(crate) async fn version(&self, id: Uuid) -> StoredVersion {
        kept(StoredVersion::find(&self.place.database, &self.tenant, id).await).expect("the version is there")
    }

    pub(crate) async fn run(&self) -> Summary {
        self.worker.run_until_idle().await.unwrap()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.place.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn show(&self, job: JobId) -> JobRecord {
        self.client.show(job).await.unwrap()
    }

    /// Where a job stands, after how many attempts, and the code of its last error.
    pub(crate) async fn ended(&self, job: JobId) -> (JobState, u16, String) {
        let summary = self.show(job).await.summary;
        let error = summary.error.map(|error| error.as_str().to_owned()).unwrap_or_else(|| "null".to_owned());
        let error: serde_json::Value = serde_json::from_str(&error).unwrap();
        (summary.state, summary.attempt, error["code"].as_str().unwrap_or_default().to_owned())
    }

    /// The types of all events, in alphabetical order.
    pub(crate) async fn events(&self) -> Vec<String> {
        let select = "select event_type from passport_event where tenant_id = $1 order by event_type";
        let rows = self.place.database.query(select, row![self.tenant.as_str()]).await.unwrap();
        rows.iter().map(|row| row.get("event_type").unwrap()).collect()
    }
}

pub(crate) fn battery(serial: &str) -> Battery {
    let text = str::to_owned;
    Battery {
        serial: text(serial),
        model: text("P-90"),
        category: text("EV"),
        capacity_ah: text("94.5"),
        manufactured_on: text("2026-11-15"),
    }
}
