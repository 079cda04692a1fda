//! [`Http`]: calls to the outside, with a deadline and a limit, and what their answers mean to a job.

mod resolver;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use tenure::webhooks::{Guard, Refused};
use tenure::{Ctx, Fail};

use crate::BoxError;
use resolver::GuardedResolver;

/// The longest silence that a source may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// How the outside is called. Clones share connections.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    guard: Option<Guard>,
    bytes_max: usize,
}

/// How to call.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// From the first byte sent to the last one read.
    pub timeout: Duration,
    /// A longer answer is refused.
    pub bytes_max: usize,
    /// Every call goes through this proxy: the simulated world, or a company's own.
    pub proxy: Option<SocketAddr>,
    /// Whom it may reach, where somebody else chooses the addresses. Behind a proxy that is the proxy's to say.
    pub guard: Option<Guard>,
    /// Who we say we are.
    pub user_agent: &'static str,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            bytes_max: 1 << 20,
            proxy: None,
            guard: None,
            user_agent: "tenure-apps",
        }
    }
}

/// What somebody answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// All of the body.
    pub body: Vec<u8>,
}

impl Http {
    /// Redirects are not followed: who calls decides what they mean.
    pub fn new(options: &HttpOptions) -> Result<Self, BoxError> {
        let guard = options.guard.clone().filter(|_| options.proxy.is_none());
        Ok(Self { client: client(options)?, guard, bytes_max: options.bytes_max })
    }
}

/// A client by these options. A guard judges the addresses of names where they are resolved, so that what was checked is
/// what is connected to; an address that stands in a URL itself is [`Guard::check_url`]'s to judge, before.
pub fn client(options: &HttpOptions) -> Result<Client, BoxError> {
    // Somebody else in this process may have chosen one before.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(options.timeout)
        .user_agent(options.user_agent)
        // The environment's proxies are for programs of people, not for jobs.
        .no_proxy();
    match (options.proxy, &options.guard) {
        (Some(proxy), _) => client = client.proxy(Proxy::all(format!("http://{proxy}"))?),
        (None, Some(guard)) => client = client.dns_resolver(Arc::new(GuardedResolver(guard.clone()))),
        (None, None) => {}
    }
    Ok(client.build()?)
}

impl Http {
    /// Asks for a page. No answer is a [`Fail`] of its kind (a timeout, a lost connection); any status is an answer. What
    /// the guard refuses is permanent.
    pub async fn get(&self, url: &str) -> Result<Answer, Fail> {
        self.check(url)?;
        self.send(self.client.get(url)).await
    }

    /// Sends JSON.
    pub async fn post(&self, url: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Result<Answer, Fail> {
        self.check(url)?;
        let mut request = self.client.post(url).header("content-type", "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    fn check(&self, url: &str) -> Result<(), Fail> {
        match &self.guard {
            Some(guard) => guard.check_url(url).map(drop).map_err(Fail::permanent),
            None => Ok(()),
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, Fail> {
        let response = request.send().await.map_err(|error| unanswered(&error))?;
        self.read(response).await
    }

    async fn read(&self, mut response: Response) -> Result<Answer, Fail> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(&error))? {
            if body.len() + chunk.len() > self.bytes_max {
                return Err(Fail::permanent(format!("the answer is longer than {} bytes", self.bytes_max)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body })
    }
}

impl Answer {
    /// Goes on with a 2xx; anything else is an error whose meaning the rule table knows. Who asked for silence by a
    /// `Retry-After` gets it from everybody who passes this job's gate.
    pub fn ok(self, ctx: &Ctx) -> Result<Self, Fail> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let fail = Fail::http_status(self.status, format!("answered with status {}", self.status));
        Err(match self.retry_after() {
            Some(delay) => {
                ctx.gate().hold(delay);
                fail.retry_in(delay)
            }
            None => fail,
        })
    }

    /// The body as JSON. What is none will be none the next time: permanent.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Fail> {
        let misfit = |error: serde_json::Error| {
            Fail::permanent(format!("the answer makes no sense at line {} column {}", error.line(), error.column()))
        };
        serde_json::from_slice(&self.body).map_err(misfit)
    }

    /// A header's text, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How long a 429 or 503 asks to be left alone, in whole seconds, an hour at most.
    pub fn retry_after(&self) -> Option<Duration> {
        if !matches!(self.status, 429 | 503) {
            return None;
        }
        let seconds: u64 = self.header(RETRY_AFTER.as_str())?.parse().ok()?;
        Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
    }
}

/// No answer. A URL's query may hold secrets, so it is not repeated.
pub fn unanswered(error: &reqwest::Error) -> Fail {
    let mut text = error.to_string();
    if let Some(url) = error.url() {
        text = text.replace(url.as_str(), &url.origin().ascii_serialization());
    }
    let mut cause = error.source();
    while let Some(below) = cause {
        text = format!("{text}: {below}");
        cause = below.source();
    }
    match error {
        error if refused_by_guard(error) => Fail::permanent(text),
        error if error.is_builder() => Fail::permanent(text),
        error if error.is_timeout() => Fail::timeout(text),
        _ => Fail::connection(text),
    }
}

/// Whether an address was refused where its name was resolved.
pub fn refused_by_guard(error: &(dyn Error + 'static)) -> bool {
    error.is::<Refused>() || error.source().is_some_and(refused_by_guard)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tenure::webhooks::GuardOptions;

    use super::*;
    use crate::Site;

    fn guarded(allow: &[&str]) -> Http {
        let allow = allow.iter().map(|cidr| cidr.parse().expect("addresses")).collect();
        let guard = Guard::new(GuardOptions { https_only: false, ports: Vec::new(), allow });
        Http::new(&HttpOptions { guard: Some(guard), ..HttpOptions::default() }).expect("a client")
    }

    #[tokio::test]
    async fn only_whom_the_guard_lets_pass_is_called() {
        let site = Site::open(Router::new().route("/", get(async || "here"))).await.expect("a site");
        let (by_address, by_name) = (site.url(), site.url().replace("127.0.0.1", "localhost"));
        for url in [&by_address, &by_name] {
            let refused = guarded(&[]).get(url).await.expect_err("inside");
            assert!(refused.to_string().contains("refused"), "{refused}");
            let answer = guarded(&["127.0.0.0/8", "::1/128"]).get(url).await.expect("allowed");
            assert_eq!((answer.status, answer.body), (200, b"here".to_vec()));
        }
        // A name that looks well is judged by what it resolves to, where it is resolved.
        let inside =
            client(&HttpOptions { guard: Some(Guard::default()), ..HttpOptions::default() }).expect("a client");
        let error = inside.get(&by_name).send().await.expect_err("inside");
        assert!(refused_by_guard(&error), "{error}");
        assert!(!refused_by_guard(&std::io::Error::other("anything else")));
    }
}
