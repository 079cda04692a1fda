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

impl Mutant {
    pub(crate) fn apply(&self, statement: Statement) -> Cow<'static, str> {
        if statement.name != self.statement {
            return Cow::Borrowed(statement.sql);
        }
        assert!(statement.sql.contains(self.find), "{} has no `{}`", self.statement, self.find);
        Cow::Owned(statement.sql.replace(self.find, self.replace))
    }
}
