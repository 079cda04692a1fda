//! Statements with one predicate dropped: a test-only switch that proves the suite would notice.

use std::borrow::Cow;

use crate::statement::Statement;

/// One change to one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// The statement's name.
    pub statement: &'static str,
    /// A predicate of it, as it is written there.
    pub find: &'static str,
    /// What stands there instead.
    pub replace: &'static str,
}

/// Every fence of our own statements, dropped one at a time.
pub const FENCES: &[Mutant] = &[
    Mutant { statement: "complete_jobs", find: "and l.worker = $1::int", replace: "" },
    Mutant {
        statement: "complete_jobs",
        find: "on conflict do nothing",
        replace: "on conflict (job, lease) do update set ended_at = excluded.ended_at",
    },
    Mutant { statement: "end_jobs", find: "and l.worker = $1::int", replace: "" },
    Mutant {
        statement: "end_jobs",
        find: "on conflict do nothing",
        replace: "on conflict (job, lease) do update set how = excluded.how, final = excluded.final",
    },
    Mutant {
        statement: "end_jobs",
        find: "from ended e join decided d on d.job = e.job\n  where e.how in (2, 6, 7)",
        replace: "from decided d cross join lateral (select d.how) e\n  where e.how in (2, 6, 7)",
    },
    Mutant { statement: "renew_leases", find: "and l.worker = $1::int", replace: "" },
    Mutant { statement: "drop_leases", find: "and l.worker = $1::int", replace: "" },
    Mutant { statement: "look_up_endings", find: "and a.lease = $2::bigint", replace: "" },
    Mutant { statement: "claim_jobs", find: "and not paused", replace: "" },
];

impl Mutant {
    pub(crate) fn apply(&self, statement: Statement) -> Cow<'static, str> {
        if statement.name != self.statement {
            return Cow::Borrowed(statement.sql);
        }
        assert!(statement.sql.contains(self.find), "{} has no `{}`", self.statement, self.find);
        Cow::Owned(statement.sql.replace(self.find, self.replace))
    }
}
