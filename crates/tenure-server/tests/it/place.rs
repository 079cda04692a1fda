//! A server on a fresh store, and keys to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tenure_contract::test_database::TestDatabase;
use tenure_core::key::{Credential, KEY_RANDOM_BYTES};
use tenure_core::{JobId, Scopes, Timestamp};
use tenure_postgres::{PgOptions, PgStore, migrate};
use tenure_server::{Options, Server};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::access::{NewKey, SetTenant};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::operate::Word;
use tenure_store::record::SecondWall;
use tenure_store::{AdminStore, Store};
use tenure_webhooks::{Endpoints, Guard, GuardOptions};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::{Caller, text};

/// All that an operator may do.
pub(crate) const ALL: &str = "enqueue,read,operate,worker,admin";

/// A server that ends with this value.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    /// An operator who may do everything.
    pub(crate) root: Caller,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    keys: AtomicU32,
    database: Option<TestDatabase>,
}

/// Makes a test for each store of an async function.
#[macro_export]
macro_rules! on_each_store {
    ($($name:ident,)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::place::Place::sqlite().await).await })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::place::Place::postgres().await).await })*
        }
    };
}

/// Options for tests: any port, short times.
pub(crate) fn options() -> Options {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let allow = vec!["127.0.0.0/8".parse().expect("a range")];
    let guard = Guard::new(GuardOptions { https_only: false, ports: Vec::new(), allow });
    let keys = format!("test:{}", "5a".repeat(32)).parse().expect("a key");
    let webhooks = Endpoints::new(guard, Some(keys));
    Options { listen, grace: Duration::from_secs(5), webhooks, ..Options::default() }
}

impl Place {
    pub(crate) async fn sqlite() -> Self {
        Self::sqlite_with(options()).await
    }

    pub(crate) async fn sqlite_with(options: Options) -> Self {
        let clock = clock();
        let store = SqliteStore::in_memory(SqliteOptions { clock: Clock::Manual(clock.clone()), ..Default::default() });
        let store = store.expect("open");
        store.migrate().await.expect("migrate");
        Self::on(Arc::new(store), clock, options, None).await
    }

    pub(crate) async fn postgres() -> Self {
        // With the second wall, as an operator leaves it who has migrated.
        let steps: String = migrate::STEPS.iter().map(|step| step.sql).collect();
        let database = TestDatabase::cloned("server", &steps, async |url| {
            let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
            store.migrate().await.expect("migrate");
            store.install_roles().await.expect("install roles");
        })
        .await;
        let clock = clock();
        let options_of_store =
            PgOptions { clock: Clock::Manual(clock.clone()), connections_max: 6, ..PgOptions::default() };
        let store = PgStore::connect(&database.url, options_of_store).await.expect("connect");
        assert_eq!(store.second_wall(), SecondWall::Stands);
        Self::on(Arc::new(store), clock, options(), Some(database)).await
    }

    async fn on(store: Arc<dyn Store>, clock: ManualClock, options: Options, database: Option<TestDatabase>) -> Self {
        let server = Server::bind(&store, options).expect("bind");
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.run_until(async {
            let _told_or_gone = stopped.await;
        }));
        let root = Caller { address, headers: Vec::new() };
        let (stop, serving) = (Some(stop), Some(serving));
        let mut place = Self { store, clock, root, stop, serving, keys: AtomicU32::new(0), database };
        place.root = place.key(None, ALL).await;
        place
    }

    /// Somebody with a new key.
    pub(crate) async fn key(&self, tenant: Option<&str>, scopes: &str) -> Caller {
        let key = self.new_key(tenant, scopes).await;
        Caller { address: self.root.address, headers: Vec::new() }
            .with("authorization", &format!("Bearer {}", key.reveal()))
    }

    pub(crate) async fn new_key(&self, tenant: Option<&str>, scopes: &str) -> Credential {
        let mut random = [9; KEY_RANDOM_BYTES];
        random[..4].copy_from_slice(&self.keys.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        random[8..12].copy_from_slice(&self.keys.load(Ordering::SeqCst).to_be_bytes());
        let (id, key) = Credential::new_key(random);
        let tenant = tenant.map(|name| name.parse().expect("a name"));
        if let Some(tenant) = &tenant {
            let made = SetTenant { tenant: Clone::clone(tenant), quota: None, word: Word::default() };
            self.store.set_tenant(made).await.expect("make a tenant");
        }
        let scopes: Scopes = scopes.parse().expect("scopes");
        let new = NewKey {
            id,
            hash: key.hash(),
            tenant,
            name: "a test".into(),
            scopes,
            life: None,
            replaces: None,
            word: Word::default(),
        };
        self.store.create_key(new).await.expect("make a key");
        key
    }

    /// A job id of this moment.
    pub(crate) fn new_id(&self) -> JobId {
        JobId::from_parts(self.clock.now(), [7; 10])
    }

    /// Where its Postgres database is.
    pub(crate) fn url(&self) -> &str {
        &self.database.as_ref().expect("it is on Postgres").url
    }

    /// Nobody in particular.
    pub(crate) fn nobody(&self) -> Caller {
        Caller { address: self.root.address, headers: Vec::new() }
    }

    /// Stores a job and answers its id.
    pub(crate) async fn enqueue(&self, body: Value) -> String {
        text(&self.root.post("/v1/jobs", body).await.ok(201)["id"]).to_owned()
    }

    /// A worker that has registered.
    pub(crate) async fn worker(&self) -> Caller {
        let answer = self.root.post("/v1/workers", json!({ "name": "far" })).await.ok(201);
        self.root.with("tenure-worker", text(&answer["token"]))
    }

    /// Tells the server to stop, and answers what waits for it.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        drop(self.stop.take());
        self.serving.take().expect("it is stopped once")
    }
}

/// The machine's clock, from where tests move it: ids are made by the machine's.
fn clock() -> ManualClock {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    // Whole milliseconds: what a store keeps of it is the same everywhere.
    ManualClock::new(Timestamp::EPOCH.plus(Duration::from_secs(since.as_secs())))
}
