//! [`SendError`]: why there is no answer, grouped by what the caller does next.

use std::fmt;

use url::Host;

use crate::guard::Refused;

/// Why there is no answer. The texts name the host and never path, query, headers or body.
///
/// A tenant reads them, so one text covers a name that cannot be resolved and a name that leads to a refused address: the
/// difference would tell which names exist inside. [`detail`](Self::detail) has the difference, for an operator's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The guard did not let it out; not a byte was sent. Trying again helps only if the name resolves to something else.
    #[error("{}", refused(host, why))]
    Refused {
        /// Host of the URL.
        host: String,
        /// What is wrong with it.
        #[source]
        why: Refused,
    },
    /// There was no way to it, or it ended the conversation before it answered. Try again.
    #[error("{}", unreachable(host, *stage, why))]
    Unreachable {
        /// Host of the URL.
        host: String,
        /// How far it came.
        stage: Stage,
        /// What the system, TLS or HTTP said.
        why: String,
    },
    /// The deadline passed. It may have taken the event all the same. Try again.
    #[error("{}", timed_out(host, *stage, *status))]
    TimedOut {
        /// Host of the URL.
        host: String,
        /// What was going on.
        stage: Stage,
        /// Its status, if that much had come.
        status: Option<u16>,
    },
    /// It answered something that is not an answer, or one larger than allowed. Try again.
    #[error("{host} answered what cannot be read: {why}{}", told(*status))]
    Unreadable {
        /// Host of the URL.
        host: String,
        /// Its status, if that much had come.
        status: Option<u16>,
        /// What is wrong with it.
        why: String,
    },
}

/// How far a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Looking the name up.
    Resolve,
    /// Connecting to an address.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending the request and waiting for the head of the answer.
    Head,
    /// Reading the body of the answer.
    Body,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "the lookup of its name",
            Self::Connect => "the connection",
            Self::Tls => "the TLS handshake",
            Self::Head => "the request",
            Self::Body => "the body of its answer",
        })
    }
}

impl SendError {
    /// The whole reason, for operators: it may name addresses and what the resolver said.
    pub fn detail(&self) -> String {
        match self {
            Self::Refused { host, why: why @ Refused::Address { address, .. } } => {
                format!("{host} is not called at {address}: {why}")
            }
            Self::Refused { host, why } => format!("{host} is not called: {why}"),
            Self::Unreachable { host, stage, why } => format!("{host} cannot be reached: {stage} failed: {why}"),
            Self::TimedOut { host, stage: Stage::Resolve, .. } => {
                format!("{host} took too long: {} did not end in time", Stage::Resolve)
            }
            other => other.to_string(),
        }
    }
}

/// The text for every name without an address that may be called, whatever the resolver said.
fn without_address(host: &str) -> String {
    format!("{host} cannot be reached: its name leads to no address that may be called")
}

fn refused(host: &str, why: &Refused) -> String {
    // The class of an address is told only where the URL itself holds that address.
    let is_written = Host::parse(host).is_ok_and(|host| !matches!(host, Host::Domain(_)));
    match why {
        Refused::Address { .. } | Refused::NoAddress if !is_written => without_address(host),
        why => format!("{host} is not called: {why}"),
    }
}

fn unreachable(host: &str, stage: Stage, why: &str) -> String {
    match stage {
        Stage::Resolve => without_address(host),
        stage => format!("{host} cannot be reached: {stage} failed: {why}"),
    }
}

fn timed_out(host: &str, stage: Stage, status: Option<u16>) -> String {
    match stage {
        Stage::Resolve => without_address(host),
        stage => format!("{host} took too long: {stage} did not end in time{}", told(status)),
    }
}

fn told(status: Option<u16>) -> String {
    status.map(|status| format!(" (status {status})")).unwrap_or_default()
}
