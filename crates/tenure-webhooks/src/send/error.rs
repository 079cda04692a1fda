//! [`SendError`]: why there is no answer, grouped by what the caller does next.

use std::fmt;

use crate::guard::Refused;

/// Why there is no answer. The texts name the host and never path, query, headers or body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The guard did not let it out; not a byte was sent. Trying again helps only if the name resolves to something else.
    #[error("{host} is not called: {why}")]
    Refused {
        /// Host of the URL.
        host: String,
        /// What is wrong with it.
        #[source]
        why: Refused,
    },
    /// There was no way to it, or it ended the conversation before it answered. Try again.
    #[error("{host} cannot be reached: {stage} failed: {why}")]
    Unreachable {
        /// Host of the URL.
        host: String,
        /// How far it came.
        stage: Stage,
        /// What the system, TLS or HTTP said.
        why: String,
    },
    /// The deadline passed. It may have taken the event all the same. Try again.
    #[error("{host} took too long: {stage} did not end in time{}", told(*status))]
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

fn told(status: Option<u16>) -> String {
    status.map(|status| format!(" (status {status})")).unwrap_or_default()
}
