//! What a worker process is called when nobody says.

use tenure_core::Invalid;
use tenure_core::name::WorkerName;

use crate::random;

/// `WORKER_ID`, or the machine, the process and some random digits: two starts never share a default name.
pub(crate) fn default_name() -> Result<WorkerName, Invalid> {
    if let Some(name) = std::env::var("WORKER_ID").ok().filter(|name| !name.is_empty()) {
        return WorkerName::new(name);
    }
    let (host, pid, digits) = (host(), std::process::id(), random::roll().0 & 0xffff);
    WorkerName::new(format!("{host}-{pid}-{digits:04x}"))
}

/// The machine's name in the letters of ours, or `localhost`.
pub(crate) fn host() -> String {
    let told = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let told = told.unwrap_or_default();
    let kept: String =
        told.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(60).collect();
    if kept.is_empty() { "localhost".into() } else { kept }
}
