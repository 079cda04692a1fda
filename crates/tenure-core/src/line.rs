//! A line: where a job waits inside its queue.
//!
//! Jobs without a gate in a queue without fairness all wait in one line. A gate makes a line of its own, and so does a
//! tenant in a fair queue; the lines of a queue are served in turn ([`crate::turns`]), so that a flood in one never
//! starves another. A line's text is the store's number of the tenant and the gate's name, each where there is one:
//!
//! ```text
//!   ''    '/source:ebay'    '7'    '7/source:ebay'
//! ```

use std::fmt;
use std::sync::Arc;

use crate::name::GateName;

/// One line of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line(Arc<str>);

impl Line {
    /// The line of a tenant, where the queue is fair, and of a gate, where the job has one.
    pub fn new(tenant: Option<i64>, gate: Option<&GateName>) -> Self {
        let mut text = tenant.map(|id| id.to_string()).unwrap_or_default();
        if let Some(gate) = gate {
            text.push('/');
            text.push_str(gate.as_str());
        }
        Self(text.into())
    }

    /// As a store keeps it.
    pub fn from_store(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tenant's part: empty where tenants share it.
    pub fn tenant(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(tenant, _)| tenant)
    }

    /// The gate its jobs pass.
    pub fn gate(&self) -> Option<&str> {
        self.0.split_once('/').map(|(_, gate)| gate)
    }

    /// Whether it is the one line of a queue that has no others.
    pub fn is_only(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_knows_its_tenant_and_its_gate_whatever_is_in_its_name() {
        let gate: GateName = "a/b:c".parse().unwrap();
        for (line, text, tenant, of) in [
            (Line::new(None, None), "", "", None),
            (Line::new(None, Some(&gate)), "/a/b:c", "", Some("a/b:c")),
            (Line::new(Some(7), None), "7", "7", None),
            (Line::new(Some(7), Some(&gate)), "7/a/b:c", "7", Some("a/b:c")),
        ] {
            assert_eq!((line.as_str(), line.tenant(), line.gate()), (text, tenant, of));
            assert_eq!(Line::from_store(text), line);
        }
    }
}
