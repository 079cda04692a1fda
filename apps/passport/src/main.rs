//! `passport`: the product as a program of its own.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kit::{BoxError, Env};
use passport::app::App;
use passport::proof::ProvenFact;
use passport::qr::Label;
use passport::settings::Settings;
use passport::sign::{KeyId, PublicKey};
use passport::world::Receiver;
use passport::{TABLES, api, evidence, id, worker};
use tenure::{Client, Database, Fail};

const EXAMPLES: &str = "\
Examples:
  export DATABASE_URL=passport.db BPC_ENV=development        a file here, or postgres://…
  export BPC_SIGNING_KEYS=dev-key-1=$(openssl rand -hex 32) BPC_MASTER_KEYS=dev:$(openssl rand -hex 32)
  passport serve &                                           documents, rules, passports, endpoints on 127.0.0.1:7410
  passport worker &                                          until Ctrl-C; as many as you like
  passport world --listen 127.0.0.1:7420 &                   a receiver of webhooks
  passport verify 'BPC1|pv=…|ph=…|pr=…|rh=…'                 what the label promises, computed anew
  passport prove VERSION cathode/nickel > proof.json         one fact, without the others
  passport check-proof 'BPC1|…' < proof.json                 and what its reader does with it, without a database
  passport key dev-key-1                                     the public key, for whoever verifies elsewhere

Settings from the environment: BPC_JOBS_POLL_INTERVAL_MS (1000), BPC_JOBS_LEASE_SECONDS (60),
BPC_JOBS_LEASE_RENEW_SECONDS (30), BPC_JOBS_SLOTS (4), BPC_QUEUE_ENABLED (false), BPC_QUEUE_URL, BPC_QUEUE_EXCHANGE (bpc),
BPC_QUEUE_ROUTING_KEY (jobs.trigger), BPC_HEALTH_REQUIRE_QUEUE (false), BPC_SIGNING_KEYS, BPC_SIGNING_KEY_ID (dev-key-1),
BPC_MASTER_KEYS, BPC_ENV (production), BPC_WEBHOOK_TIMEOUT_SECONDS (30), BPC_BUILD_ID, BPC_LISTEN (127.0.0.1:7410),
WORKER_ID.";

/// Largest proof that is read.
const PROOF_BYTES_MAX: u64 = 1 << 20;

/// Battery passports from bills of materials: compiled, signed, labeled, told
#[derive(Parser)]
#[command(name = "passport", after_help = EXAMPLES)]
struct Arguments {
    /// postgres://…, or the path of a file; DATABASE_URL unless given
    #[arg(long, value_name = "URL or FILE", global = true)]
    database: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run jobs until told to stop
    Worker,
    /// Take documents, rules and orders over HTTP until told to stop
    Serve,
    /// Receive webhooks until told to stop, and print them
    World {
        /// Where to listen
        #[arg(long, default_value = "127.0.0.1:7420")]
        listen: SocketAddr,
        /// The secret of the endpoint, whsec_…
        #[arg(long)]
        secret: Option<String>,
        /// What the first attempts of each delivery are answered, such as 500,500,302
        #[arg(long, value_delimiter = ',')]
        answers: Vec<u16>,
        /// Take every call and answer none
        #[arg(long)]
        hang: bool,
    },
    /// Check the passport that a label names; the exit code is 1 when anything is wrong
    Verify {
        /// The text of the QR code
        label: String,
        /// The signer's public key; that of BPC_SIGNING_KEYS unless given
        #[arg(long)]
        public_key: Option<String>,
    },
    /// Print a fact with the proof that a passport version was made of it
    Prove {
        /// The passport version
        version: String,
        /// Which fact, such as cathode/nickel
        fact_key: String,
    },
    /// Check what `prove` printed, from standard input; the exit code is 1 when it does not lead to the label
    CheckProof {
        /// The text of the QR code
        label: String,
    },
    /// Print the public key of a signing key
    Key {
        /// Which
        id: String,
    },
}

fn main() -> ExitCode {
    kit::program::run(|Arguments { database, command }: Arguments, env: Env| async move {
        let settings = Settings::read(&env)?;
        let place = || {
            let named = database.or_else(|| env.text("DATABASE_URL"));
            named.ok_or("no database was named: say --database FILE, or set DATABASE_URL")
        };
        match command {
            Command::World { listen, secret, answers, hang } => world(listen, secret, answers, hang).await,
            Command::Key { id } => {
                let key = KeyId::new(id).map_err(BoxError::from);
                println!("{}", settings.keys.public(&key?).map_err(|refusal| refusal.to_string())?.to_hex());
                Ok(())
            }
            Command::Worker => {
                worker::build(&open(place()?).await?, &settings).await?.run().await?;
                Ok(())
            }
            Command::Serve => serve(&open(place()?).await?, &settings).await,
            Command::Verify { label, public_key } => {
                verify(&look_into(place()?).await?, &settings, &label, public_key).await
            }
            Command::Prove { version, fact_key } => prove(&look_into(place()?).await?, &version, &fact_key).await,
            Command::CheckProof { label } => check_proof(&label),
        }
    })
}

/// With Tenure's schema and the product's tables.
async fn open(place: String) -> Result<Database, BoxError> {
    let database = Database::open(&place).await?;
    tenure::migrate(&database).await?;
    database.make_tables(TABLES).await?;
    Ok(database)
}

/// As it is. A path that is mistyped must not become a database in which nothing is known.
async fn look_into(place: String) -> Result<Database, BoxError> {
    if !place.contains("://") && !Path::new(&place).is_file() {
        return Err(format!("there is no database `{place}`: name the file or the server that passports are in").into());
    }
    Ok(Database::open(&place).await?)
}

async fn serve(database: &Database, settings: &Settings) -> Result<(), BoxError> {
    worker::prepare(database, settings).await?;
    let app = App::new(database, Client::new(database), settings)?;
    kit::serve(settings.listen, api::router(app)).await
}

async fn world(listen: SocketAddr, secret: Option<String>, answers: Vec<u16>, hang: bool) -> Result<(), BoxError> {
    let receiver = Receiver::open_at(listen, true).await?;
    if let Some(secret) = secret {
        receiver.trust(secret.parse()?);
    }
    receiver.fail_each(answers);
    if hang {
        receiver.valve().close();
    }
    println!("listening on {}", receiver.url());
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn verify(
    database: &Database,
    settings: &Settings,
    label: &str,
    public_key: Option<String>,
) -> Result<(), BoxError> {
    let label = Label::parse(label)?;
    let public_key = public_key.map(|key| PublicKey::from_hex(&key)).transpose()?;
    let found = evidence::check(database, &settings.keys, public_key, &label).await;
    let id = label.passport_version_id;
    let findings = found.map_err(|halt| Fail::from(halt).to_string())?;
    let findings = findings.ok_or_else(|| format!("passport version {id} is not known here"))?;
    for finding in &findings {
        match &finding.wrong {
            None => println!("ok    {}", finding.what),
            Some(why) => println!("WRONG {}: {why}", finding.what),
        }
    }
    match findings.iter().filter(|finding| finding.wrong.is_some()).count() {
        0 => {
            println!("passport version {id} is genuine");
            Ok(())
        }
        wrong => {
            Err(format!("passport version {id} is not what its label promises: {wrong} of {} checks", findings.len())
                .into())
        }
    }
}

async fn prove(database: &Database, version: &str, fact_key: &str) -> Result<(), BoxError> {
    let id = id::parse("passport_version_id", version).map_err(|refusal| refusal.to_string())?;
    let proven = evidence::prove(database, id, fact_key).await.map_err(|halt| Fail::from(halt).to_string())?;
    let proven = proven.ok_or_else(|| format!("passport version {id} is not known here"))?;
    println!("{}", serde_json::to_string_pretty(&proven)?);
    Ok(())
}

fn check_proof(label: &str) -> Result<(), BoxError> {
    let label = Label::parse(label)?;
    let mut text = String::new();
    std::io::stdin().take(PROOF_BYTES_MAX).read_to_string(&mut text)?;
    let proven: ProvenFact = serde_json::from_str(&text).map_err(|error| format!("the proof is refused: {error}"))?;
    proven.check(label.proof_root).map_err(|refusal| refusal.to_string())?;
    let (id, facts) = (label.passport_version_id, proven.inclusion.leaves);
    println!("passport version {id} was made of this fact, one of {facts}: {}", proven.payload);
    Ok(())
}
