//! `tenure webhooks listen`: a receiver to try things out with. It checks signatures and shows what comes.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure_webhooks::Secret;
use tenure_webhooks::verify::{Received, verify};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::create::secret;
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};
use crate::table::printable;
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks listen --secret whsec_…                    on http://127.0.0.1:7401
  tenure webhooks listen --secret whsec_… --count 1          until one has come, with exit code 1 if it is not genuine
  tenure webhooks listen --answer 500                        and see it tried again

In another terminal: tenure dev, and an endpoint with --url http://127.0.0.1:7401/";

/// Largest head and largest body that are read.
const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 8 << 20;
/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Receive deliveries, check their signatures and show them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListenArgs {
    /// Where it listens, on this machine; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7401")]
    listen: SocketAddr,
    /// The endpoint's secret; without it nothing is checked
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    secret: Option<Secret>,
    /// Stop after so many
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// The status it answers with
    #[arg(long, value_name = "STATUS", default_value_t = 204, value_parser = clap::value_parser!(u16).range(200..=599))]
    answer: u16,
}

/// A request as it came.
struct Request {
    head: String,
    body: Vec<u8>,
}

pub(super) async fn run(args: ListenArgs, session: &mut Session) -> Result<Answer, Failure> {
    let unheard = |error: io::Error| {
        Failure::new("listen", exit::REFUSED, format!("{} cannot be listened on", args.listen)).caused_by(&error)
    };
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage("listen", "it listens on this machine only: 127.0.0.1 or [::1]"));
    }
    let listener = TcpListener::bind(args.listen).await.map_err(unheard)?;
    let url = format!("http://{}/", listener.local_addr().map_err(unheard)?);
    match session.out.is_json() {
        true => session.out.json(&json!({ "url": url }))?,
        false => session.out.line(format!("Listening on {url} (Ctrl-C ends it).")),
    }
    session.out.flush()?;
    let (mut taken, mut all_genuine) = (0, true);
    while args.count.is_none_or(|count| taken < count) && !session.out.is_closed() {
        let (mut stream, _) = listener.accept().await.map_err(unheard)?;
        // A receiver of one at a time: whoever sends nothing is dropped.
        let Ok(Ok(request)) = tokio::time::timeout(PATIENCE, read(&mut stream)).await else { continue };
        let checked = check(&request, args.secret.as_ref());
        let answer = format!("HTTP/1.1 {} Received\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", args.answer);
        // Whether the sender waits for it is its own business.
        let _gone = stream.write_all(answer.as_bytes()).await;
        let _gone = stream.shutdown().await;
        show(&request, &checked, session)?;
        taken += 1;
        all_genuine &= !matches!(checked, Some(Err(_)));
    }
    Ok(if all_genuine { Answer::Done } else { Answer::Findings })
}

/// Whether it is genuine; `None` where nobody can tell.
fn check(request: &Request, secret: Option<&Secret>) -> Option<Result<(), String>> {
    let secrets = [secret?.clone()];
    let header = |name| request.header(name).unwrap_or_default();
    let received = Received {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: &request.body,
    };
    Some(verify(&secrets, &received, moment::now()).map_err(|why| why.to_string()))
}

fn show(request: &Request, checked: &Option<Result<(), String>>, session: &mut Session) -> Result<(), Failure> {
    let id = request.header("webhook-id").unwrap_or("-");
    let body: Option<Value> = serde_json::from_slice(&request.body).ok();
    let event = body.as_ref().and_then(|body| body["event_type"].as_str()).unwrap_or("-");
    let genuine = checked.as_ref().map(Result::is_ok);
    if session.out.is_json() {
        let why = checked.as_ref().and_then(|checked| checked.as_ref().err());
        session.out.json(&json!({ "id": id, "event": event, "verified": genuine, "why": why, "body": body }))?;
    } else {
        let verdict = match checked {
            None => "not checked: give --secret".to_owned(),
            Some(Ok(())) => "verified".to_owned(),
            Some(Err(why)) => format!("NOT GENUINE: {why}"),
        };
        session.out.line(format!("{}  {}  {verdict}", printable(event), printable(id)));
        session.out.line(printable(&String::from_utf8_lossy(&request.body)));
    }
    session.out.flush()
}

/// Reads one request: a head, and as much body as it says.
async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > HEAD_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: bytes.split_off(end + 4) };
    let length: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if length > BODY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    request.body.truncate(length);
    Ok(request)
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let named =
            |line: &&str| line.split_once(':').is_some_and(|(known, _)| known.trim().eq_ignore_ascii_case(name));
        self.head.lines().skip(1).find(named).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
}
