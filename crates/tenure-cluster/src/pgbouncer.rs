//! A private PgBouncer in transaction mode, in front of a cluster.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::sync::OnceLock;

use crate::guarded::{Guarded, Home, find_program, free_port};
use crate::postgres_server::shared_admin_url;

/// Names a PgBouncer that is already there, in front of [`crate::postgres_server::URL_VARIABLE`].
pub const URL_VARIABLE: &str = "TENURE_TEST_PGBOUNCER_URL";

/// A running PgBouncer; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct PgBouncer {
    // Stopped before anything else goes.
    _server: Guarded,
    _home: Home,
    port: u16,
}

impl PgBouncer {
    /// Starts one in front of the cluster on this port of 127.0.0.1.
    pub fn start(postgres_port: u16) -> io::Result<Self> {
        let program = find_program("pgbouncer", &[])?.display().to_string();
        let home = Home::new("pb")?;
        let port = free_port()?;
        let (ini, users) = (home.path("pgbouncer.ini"), home.path("users.txt"));
        fs::write(&users, "\"postgres\" \"\"\n")?;
        fs::write(&ini, settings(postgres_port, port, &users))?;
        let is_ready = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        // SIGTERM stops it at once; SIGINT would wait for its clients.
        let server = Guarded::start(&home, "TERM", &[&program, &ini], &[], is_ready)?;
        Ok(Self { _server: server, _home: home, port })
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

/// The URL of database `postgres` behind the PgBouncer for this process: the one that the environment names, or one
/// started on first use in front of this process's own cluster.
pub fn shared_url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    // Never dropped: its guard stops it when this process ends.
    static OWN: OnceLock<PgBouncer> = OnceLock::new();
    URL.get_or_init(|| {
        std::env::var(URL_VARIABLE).unwrap_or_else(|_| {
            let cluster = shared_admin_url();
            let port = cluster.strip_prefix("postgres://postgres@127.0.0.1:").and_then(|rest| rest.split('/').next());
            let port = port.and_then(|port| port.parse().ok());
            let port = port.unwrap_or_else(|| panic!("{URL_VARIABLE} must name the pooler in front of {cluster}"));
            OWN.get_or_init(|| PgBouncer::start(port).expect("start a private PgBouncer")).url("postgres")
        })
    })
}

fn settings(postgres_port: u16, port: u16, users: &str) -> String {
    format!(
        "[databases]
* = host=127.0.0.1 port={postgres_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
ignore_startup_parameters = extra_float_digits,options
"
    )
}
