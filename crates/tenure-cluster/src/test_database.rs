//! [`TestDatabase`]: a database of a test's own in the shared cluster, gone with its value.
//!
//! Thousands of tests have one each, so what it costs is counted in minutes: it is cloned by copying files, and a template
//! that is there is not looked for first.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::postgres_server::{psql, shared_admin_url};

/// A database that is dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    /// Its URL.
    pub url: String,
    /// Its name.
    pub name: String,
}

impl TestDatabase {
    /// An empty one.
    pub fn empty() -> Self {
        Self::create("template0").expect("create a database")
    }

    /// A clone of a template that `make` fills, once for a cluster, whoever comes first. `of` is its name and `with` what
    /// goes into it: something else is another template.
    pub async fn cloned(of: &str, with: &str, make: impl AsyncFnOnce(String)) -> Self {
        let sum = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let template = format!("{of}_{:016x}", with.bytes().fold(0xcbf2_9ce4_8422_2325, sum));
        if let Ok(database) = Self::create(&template) {
            return database;
        }
        // Under another name until it is finished; the last step loses quietly against whoever was faster.
        let draft = Self::empty();
        make(draft.url.clone()).await;
        let name = &draft.name;
        let steps = [
            format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"),
            format!("alter database {name} rename to {template}"),
        ];
        let made = steps.iter().try_for_each(|step| psql(shared_admin_url(), step).map(drop));
        match Self::create(&template) {
            Ok(database) => database,
            Err(error) => panic!("no template {template}: {error}, {made:?}"),
        }
    }

    fn create(template: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let name = format!("t_{}_{}_{nanos}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        psql(shared_admin_url(), &format!("create database {name} template {template} strategy file_copy"))?;
        let base = shared_admin_url().rsplit_once('/').expect("a URL with a database").0;
        Ok(Self { url: format!("{base}/{name}"), name })
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // A database that stays costs disk until its cluster goes: no reason to fail a test.
        let _left_behind = psql(shared_admin_url(), &format!("drop database if exists {} with (force)", self.name));
    }
}
