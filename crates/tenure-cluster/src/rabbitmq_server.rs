//! A private RabbitMQ for tests, made from the system's binaries.
//!
//! ```text
//!   we ──► guard ──► sh ──┬──► epmd          (names Erlang nodes; a daemon of the machine's own would outlive us)
//!                         └──► rabbitmq-server
//! ```
//!
//! It listens on free ports of the loopback only, keeps everything in its own directory, loads no plugin, knows the user
//! `guest`, and goes away with us, also when we are killed. A start takes about five seconds, most of it Erlang's.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::guarded::{Guarded, Home, find_program, free_port};

/// Where Debian has the scripts that run as anybody; those in `PATH` insist on the user `rabbitmq`.
const DEBIAN_BIN: &str = "/usr/lib/rabbitmq/bin";

/// The port for other nodes is for the loopback too; and idle schedulers do not spin, the cores are wanted elsewhere.
const ERLANG: &str = "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none";

/// Another process may take a free port before we do.
const PORT_TRIES: usize = 5;

/// How long one look at the port may take.
const LOOK_TIMEOUT: Duration = Duration::from_millis(500);
/// How long it may take to end in order; it usually takes a second.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs both and ends both, at once: nobody will read these files again, or recovery is wanted. A broker that ends by
/// itself says a word that whoever waits for it knows.
///
/// The broker is a session of its own. When we go while it is frozen, the kernel hangs up on every process of its group,
/// and a guard that was among them would be gone before it could end anything.
const PAIR: &str = r#"
epmd=$1; server=$2
"$epmd" -address 127.0.0.1 -port "$ERL_EPMD_PORT" & epmd_pid=$!
setsid "$server" & server_pid=$!
echo $server_pid > broker.pid
trap 'kill -s KILL $server_pid' TERM
wait $server_pid
wait $server_pid
kill -s KILL $epmd_pid
wait $epmd_pid
rm broker.pid
echo "FATAL: the broker has ended"
"#;

/// A broker, running or stopped; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct RabbitServer {
    // Stopped before anything else goes.
    server: Guarded,
    home: Home,
    port: u16,
    environment: Vec<(String, String)>,
}

impl RabbitServer {
    /// Makes and starts one, and waits until it speaks AMQP.
    pub fn start() -> io::Result<Self> {
        let taken = |error: &io::Error| error.to_string().contains("eaddrinuse");
        let mut started = Self::start_once();
        for _ in 1..PORT_TRIES {
            if !started.as_ref().is_err_and(taken) {
                break;
            }
            started = Self::start_once();
        }
        started
    }

    fn start_once() -> io::Result<Self> {
        let server = program("rabbitmq-server")?;
        let epmd = find_program("epmd", &[])?.display().to_string();
        let home = Home::new("rq")?;
        let port = free_port()?;
        let environment = environment(&home, port)?;
        fs::write(home.path("enabled_plugins"), "[].\n")?;
        // The disk of a machine that tests may be nearly full.
        fs::write(home.path("rabbitmq.conf"), "disk_free_limit.absolute = 1MB\nlog.console.level = warning\n")?;
        let command = ["sh", "-c", PAIR, "pair", &epmd, &server];
        let server = Guarded::start(&home, "TERM", &command, &environment, || speaks_amqp(port))?;
        Ok(Self { server, home, port, environment })
    }

    /// Stops it in order: clients are told, then it ends.
    pub fn stop(&mut self) -> io::Result<()> {
        self.signal("TERM")?;
        let since = Instant::now();
        while Path::new(&self.pid_file()).exists() && since.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The guard has to know, and ends what has not ended.
        self.kill()
    }

    /// Ends it in the middle of everything, as a crash does.
    pub fn kill(&mut self) -> io::Result<()> {
        let pid_file = self.pid_file();
        self.server.stop(|| !Path::new(&pid_file).exists())
    }

    /// Starts it again on the same port and files, after [`stop`](Self::stop) or [`kill`](Self::kill).
    pub fn start_again(&mut self) -> io::Result<()> {
        let port = self.port;
        self.server.start_again(|| speaks_amqp(port))
    }

    /// Freezes it: connections stay open, and nobody answers.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("STOP")
    }

    /// Lets it go on.
    pub fn resume(&self) -> io::Result<()> {
        self.signal("CONT")
    }

    /// The URL of its default virtual host, for its only user.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has logged, from warnings on.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Runs `rabbitmqctl` with these arguments and answers what it printed. It takes a second or two.
    pub fn control(&self, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new(program("rabbitmqctl")?);
        command.arg("--quiet").args(arguments).envs(self.environment.iter().cloned());
        let output = self.home.as_user(&mut command).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(io::Error::other(format!("rabbitmqctl {arguments:?} failed:\n{}", text(&output.stderr))))
    }

    /// There as long as it runs.
    fn pid_file(&self) -> String {
        self.home.path("broker.pid")
    }

    fn signal(&self, name: &str) -> io::Result<()> {
        let pid = fs::read_to_string(self.pid_file())?;
        let status = Command::new("kill").args(["-s", name, pid.trim()]).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("the broker does not run")) }
    }
}

/// The broker for this process, started on first use.
pub fn shared() -> &'static RabbitServer {
    // Never dropped: its guard stops it when this process ends.
    static OWN: OnceLock<RabbitServer> = OnceLock::new();
    OWN.get_or_init(|| RabbitServer::start().expect("start a private RabbitMQ"))
}

/// Everything that the scripts would otherwise look for in the machine's own directories.
fn environment(home: &Home, port: u16) -> io::Result<Vec<(String, String)>> {
    let set = |name: &str, value: String| (name.to_owned(), value);
    Ok(vec![
        // The cookie, which Erlang nodes know each other by, is made there.
        set("HOME", home.path("")),
        set("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
        set("ERL_EPMD_PORT", free_port()?.to_string()),
        set("RABBITMQ_NODENAME", "tenure@localhost".to_owned()),
        set("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
        set("RABBITMQ_NODE_PORT", port.to_string()),
        set("RABBITMQ_DIST_PORT", free_port()?.to_string()),
        set("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG.to_owned()),
        set("RABBITMQ_MNESIA_BASE", home.path("mnesia")),
        set("RABBITMQ_LOG_BASE", home.path("logs")),
        set("RABBITMQ_LOGS", "-".to_owned()),
        set("RABBITMQ_CONFIG_FILE", home.path("rabbitmq.conf")),
        set("RABBITMQ_ADVANCED_CONFIG_FILE", home.path("advanced.config")),
        set("RABBITMQ_CONF_ENV_FILE", home.path("rabbitmq-env.conf")),
        set("RABBITMQ_GENERATED_CONFIG_DIR", home.path("generated")),
        set("RABBITMQ_ENABLED_PLUGINS_FILE", home.path("enabled_plugins")),
        set("RABBITMQ_FEATURE_FLAGS_FILE", home.path("feature_flags")),
        set("RABBITMQ_PID_FILE", home.path("pid")),
        // The script becomes Erlang, without a shell in between that would have to be ended as well.
        set("RUNNING_UNDER_SYSTEMD", "true".to_owned()),
    ])
}

fn program(name: &str) -> io::Result<String> {
    Ok(find_program(name, &[Path::new(DEBIAN_BIN).to_owned()])?.display().to_string())
}

/// Whether somebody there answers a client's first words: the port is open before the broker is ready.
fn speaks_amqp(port: u16) -> bool {
    let ask = || -> io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), LOOK_TIMEOUT)?;
        stream.set_read_timeout(Some(LOOK_TIMEOUT))?;
        stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first[0])
    };
    // A method's frame, `connection.start`. A broker that is not ready closes, or says which protocol it speaks.
    ask().is_ok_and(|first| first == 1)
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::process::Stdio;

    use super::*;

    /// Set in the process that is killed.
    const CHILD: &str = "TENURE_TEST_RABBITMQ_CHILD";

    #[test]
    fn a_frozen_broker_ends_with_a_killed_process() {
        if std::env::var_os(CHILD).is_some() {
            let server = RabbitServer::start().expect("start");
            server.pause().expect("pause");
            println!("\nhome {}", server.home.dir.display());
            std::thread::sleep(Duration::from_secs(600));
        }
        let name = "rabbitmq_server::tests::a_frozen_broker_ends_with_a_killed_process";
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").stdout(Stdio::piped());
        let mut child = child.spawn().expect("spawn");
        let lines = io::BufReader::new(child.stdout.take().expect("its output")).lines();
        let home = lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("home ")?.to_owned()));
        let home = Path::new(home.as_deref().expect("it has started")).to_owned();
        let pid = fs::read_to_string(home.join("broker.pid")).expect("it runs").trim().to_owned();
        child.kill().expect("kill");
        child.wait().expect("killed");
        let since = Instant::now();
        while home.exists() || Path::new("/proc").join(&pid).exists() {
            assert!(since.elapsed() < STOP_TIMEOUT, "{} or process {pid} is still there", home.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
