//! A private PostgreSQL cluster for tests and benches, made from the system's binaries.
//!
//! It listens on a Unix socket in its own directory and on a free port of 127.0.0.1, trusts everybody who gets there,
//! and goes away with us. One is started for a process, or many processes share the one that
//! [`TENURE_TEST_DATABASE_URL`](URL_VARIABLE) names: `tenure-test-postgres -- cargo nextest run`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::disk::Disk;
use crate::guarded::{Guarded, Home, find_program, free_port};

/// Names a cluster that is already there, by the URL of a database whose user may create others.
pub const URL_VARIABLE: &str = "TENURE_TEST_DATABASE_URL";

/// Another process may take a free port before we do.
const PORT_TRIES: usize = 5;

/// How to set a cluster up.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether a commit waits for the disk. Off is several times faster; benches want it on.
    pub fsync: bool,
    /// Whether it speaks TLS, with a certificate for 127.0.0.1 signed by [`Postgres::root_certificate`].
    pub tls: bool,
    /// More lines for `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// More variables for the server's environment, such as a library to preload.
    pub environment: Vec<(String, String)>,
    /// Whether the log of changes is kept in [`Postgres::archive_dir`], so that a backup can be recovered to any point.
    pub archive: bool,
    /// A disk of its own with so many MiB, which can be filled. Needs the right to mount one.
    pub disk_mib: Option<u32>,
}

/// A running cluster; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct Postgres {
    // Stopped before anything else goes.
    server: Guarded,
    _disk: Option<Disk>,
    home: Home,
    bin_dir: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes and starts a cluster.
    pub fn start(options: &Options) -> io::Result<Self> {
        let taken = |error: &io::Error| error.to_string().contains("Address already in use");
        let mut started = Self::start_once(options);
        for _ in 1..PORT_TRIES {
            if !started.as_ref().is_err_and(taken) {
                break;
            }
            started = Self::start_once(options);
        }
        started
    }

    fn start_once(options: &Options) -> io::Result<Self> {
        let bin_dir = find_bin_dir()?;
        // Thousands of databases come and go in a run of tests. A disk's file system remembers for minutes which files were
        // deleted, and looks through all of them for each new one: that was three quarters of the time of the contract suite.
        let home = if options.fsync { Home::new("pg")? } else { Home::new_in_memory("pg")? };
        let data = home.path("data");
        let disk = options.disk_mib.map(|mib| Disk::mount(&home, "data", mib)).transpose()?;
        let mut initdb = Command::new(bin_dir.join("initdb"));
        initdb.args(["--pgdata", &data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        home.run(initdb.args(["--no-sync", "--no-instructions"]))?;
        if options.tls {
            make_certificates(&home)?;
        }
        home.run(Command::new("mkdir").arg(home.path("archive")))?;
        Self::start_files(home, disk, bin_dir, options)
    }

    /// Starts the server on the files in `home`.
    pub(crate) fn start_files(home: Home, disk: Option<Disk>, bin_dir: PathBuf, options: &Options) -> io::Result<Self> {
        let (data, port) = (home.path("data"), free_port()?);
        fs::write(format!("{data}/postgresql.auto.conf"), settings(&home, port, options))?;
        let postgres = bin_dir.join("postgres").display().to_string();
        // SIGQUIT stops at once, without a last checkpoint: nobody will read these files again, or recovery is wanted.
        let server =
            Guarded::start(&home, "QUIT", &[&postgres, "-D", &data], &options.environment, || is_ready(&home))?;
        Ok(Self { server, _disk: disk, home, bin_dir, port })
    }

    /// Stops it in the middle of everything, as `pg_ctl stop --mode=immediate` does.
    pub fn stop(&mut self) -> io::Result<()> {
        let home = &self.home;
        self.server.stop(|| !Path::new(&pid_file(home)).exists())
    }

    /// Starts it again after [`stop`](Self::stop): the log is replayed, as after a crash.
    pub fn start_again(&mut self) -> io::Result<()> {
        let home = &self.home;
        self.server.start_again(|| is_ready(home))
    }

    /// The URL of a database in it, by TCP.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of the database that is always there, from which others are created.
    pub fn admin_url(&self) -> String {
        self.url("postgres")
    }

    /// Where its files are.
    pub fn data_dir(&self) -> PathBuf {
        self.home.dir.join("data")
    }

    /// Where its log is archived.
    pub fn archive_dir(&self) -> PathBuf {
        self.home.dir.join("archive")
    }

    /// Whether it says that it accepts connections. One that gave up by itself no longer does.
    pub fn is_ready(&self) -> bool {
        is_ready(&self.home)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Where `psql`, `pgbench` and the others are.
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// The certificate that signed the server's own; there when it was started with `tls`.
    pub fn root_certificate(&self) -> PathBuf {
        self.home.dir.join("root.crt")
    }

    /// The directory of its Unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.home.dir
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// The admin URL of the cluster for this process: the one that the environment names, or one started on first use.
pub fn shared_admin_url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    // Never dropped: its guard stops it when this process ends.
    static OWN: OnceLock<Postgres> = OnceLock::new();
    URL.get_or_init(|| {
        std::env::var(URL_VARIABLE).unwrap_or_else(|_| {
            let start = || Postgres::start(&Options::default()).expect("start a private PostgreSQL");
            OWN.get_or_init(start).admin_url()
        })
    })
}

/// Runs SQL with `psql`, one statement after the other, and answers what it printed, unaligned and without headers.
pub fn psql(url: &str, sql: &str) -> io::Result<String> {
    let mut psql = Command::new(find_bin_dir()?.join("psql"));
    psql.args([
        "--no-psqlrc",
        "--quiet",
        "--no-align",
        "--tuples-only",
        "--set=ON_ERROR_STOP=1",
        "--command",
        sql,
        url,
    ]);
    let output = psql.output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn pid_file(home: &Home) -> String {
    home.path("data/postmaster.pid")
}

/// The status line says "ready" once connections are accepted.
fn is_ready(home: &Home) -> bool {
    fs::read_to_string(pid_file(home)).is_ok_and(|text| text.contains("ready"))
}

fn settings(home: &Home, port: u16, options: &Options) -> String {
    let durable = if options.fsync { "on" } else { "off" };
    let mut lines = vec![
        "listen_addresses = '127.0.0.1'".to_owned(),
        format!("port = {port}"),
        format!("unix_socket_directories = '{}'", home.dir.display()),
        "max_connections = 200".to_owned(),
        "max_prepared_transactions = 20".to_owned(),
        format!("fsync = {durable}"),
        format!("full_page_writes = {durable}"),
        "logging_collector = off".to_owned(),
    ];
    if options.tls {
        let file = |name: &str| home.path(name);
        lines.extend(["ssl = on".to_owned(), format!("ssl_cert_file = '{}'", file("server.crt"))]);
        lines.push(format!("ssl_key_file = '{}'", file("server.key")));
    }
    if options.archive {
        let command = format!("archive_command = 'cp %p {}/%f'", home.path("archive"));
        lines.extend(["archive_mode = on".to_owned(), command]);
    }
    lines.extend(options.settings.iter().map(|(name, value)| format!("{name} = '{value}'")));
    lines.join("\n") + "\n"
}

/// A root and a server certificate, by `openssl`, owned by the server's user.
fn make_certificates(home: &Home) -> io::Result<()> {
    let openssl = find_program("openssl", &[])?;
    let run = |line: &str| home.run(Command::new(&openssl).args(line.split(' ')));
    fs::write(home.path("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")?;
    run("req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=root -keyout root.key -out root.crt")?;
    run("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr")?;
    run(
        "x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 3650 -extfile server.ext -out server.crt",
    )
}

/// `pg_config --bindir`, then Debian's directories, newest version first, then `PATH`.
fn find_bin_dir() -> io::Result<PathBuf> {
    let asked = Command::new("pg_config").arg("--bindir").output();
    let asked = asked.ok().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let dirs: Vec<PathBuf> = asked.into_iter().chain(versions.into_iter().map(|(_, dir)| dir)).collect();
    let initdb = find_program("initdb", &dirs)?;
    Ok(initdb.parent().unwrap_or(Path::new("/")).to_owned())
}
