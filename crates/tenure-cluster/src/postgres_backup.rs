//! A copy of a running cluster's files, by `pg_basebackup`, and what can be started from it.
//!
//! | started as | timeline | holds |
//! |---|---|---|
//! | [`clone`](Backup::start_clone) | the same | what there was at the end of the backup |
//! | [`standby`](Backup::start_standby) | the same until it is [promoted](Postgres::promote) | what the primary streams |
//! | [`recovered`](Backup::start_recovered) | a new one | what there was at a restore point |
//!
//! Streaming is asynchronous: [`Postgres::cut_off`] makes a standby lag for ever.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::guarded::Home;
use crate::postgres_server::{Options, Postgres, psql};

/// How long a standby may take to follow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The files of a cluster, not started.
#[derive(Debug)]
pub struct Backup {
    home: Home,
    bin_dir: PathBuf,
    of: u16,
}

impl Backup {
    /// Starts the copy as a cluster of its own with the same identity and timeline.
    pub fn start_clone(self) -> io::Result<Postgres> {
        self.start(Vec::new(), None)
    }

    /// Starts the copy as a standby of its original.
    pub fn start_standby(self) -> io::Result<Postgres> {
        let conninfo = format!("host=127.0.0.1 port={} user=postgres", self.of);
        let settings = [("primary_conninfo", conninfo), ("wal_receiver_timeout", "0".to_owned())];
        self.start(settings.map(|(name, value)| (name.to_owned(), value)).to_vec(), Some("standby.signal"))
    }

    /// Recovers the copy from the archive of its original up to a restore point, and starts it on a timeline of its own.
    pub fn start_recovered(self, original: &Postgres, restore_point: &str) -> io::Result<Postgres> {
        let settings = [
            ("restore_command", format!("cp {}/%f %p", original.archive_dir().display())),
            ("recovery_target_name", restore_point.to_owned()),
            ("recovery_target_action", "promote".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let recovered = self.start(settings, Some("recovery.signal"))?;
        wait("the recovery did not end", || Ok(psql(&recovered.admin_url(), "select pg_is_in_recovery()")? == "f"))?;
        Ok(recovered)
    }

    fn start(self, settings: Vec<(String, String)>, signal: Option<&str>) -> io::Result<Postgres> {
        let Self { home, bin_dir, .. } = self;
        if let Some(signal) = signal {
            fs::write(home.path(&format!("data/{signal}")), "")?;
        }
        Postgres::start_files(home, None, bin_dir, &Options { settings, ..Options::default() })
    }
}

impl Postgres {
    /// Copies the files of the running cluster.
    pub fn back_up(&self) -> io::Result<Backup> {
        let home = Home::new_in_memory("pg")?;
        let bin_dir = self.bin_dir().to_owned();
        let mut copy = Command::new(bin_dir.join("pg_basebackup"));
        copy.args(["--host=127.0.0.1", "--username=postgres", "--checkpoint=fast", "--no-sync", "--port"]);
        home.run(copy.arg(self.port().to_string()).args(["--pgdata", &home.path("data")]))?;
        Ok(Backup { home, bin_dir, of: self.port() })
    }

    /// Waits until this standby shows everything that its primary has committed.
    pub fn wait_for(&self, primary: &Self) -> io::Result<()> {
        let upto = psql(&primary.admin_url(), "select pg_current_wal_lsn()")?;
        let sql = format!("select coalesce(pg_last_wal_replay_lsn() >= '{upto}', false)");
        wait("the standby does not follow", || Ok(psql(&self.admin_url(), &sql)? == "t"))
    }

    /// Ends the stream to this standby: what the primary commits from now on never gets here.
    pub fn cut_off(&self) -> io::Result<()> {
        psql(&self.admin_url(), "alter system set primary_conninfo = ''")?;
        psql(&self.admin_url(), "select pg_reload_conf()")?;
        wait("the stream does not end", || {
            Ok(psql(&self.admin_url(), "select count(*) from pg_stat_wal_receiver")? == "0")
        })
    }

    /// Makes this standby a primary, on the next timeline.
    pub fn promote(&self) -> io::Result<()> {
        match psql(&self.admin_url(), "select pg_promote()")?.as_str() {
            "t" => Ok(()),
            answer => Err(io::Error::other(format!("pg_promote answered {answer}"))),
        }
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let since = Instant::now();
    while !is_so()? {
        if since.elapsed() > PATIENCE {
            return Err(io::Error::other(what));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
