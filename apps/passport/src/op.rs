//! [`Op`]: how a rule compares.

use std::cmp::Ordering;

use crate::value::Value;

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `in`
    In,
}

impl Op {
    /// Every operator.
    pub const ALL: [Self; 7] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual, Self::In];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }

    /// The operator that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == text)
    }

    /// Whether it is about less and more.
    pub const fn needs_order(self) -> bool {
        matches!(self, Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual)
    }

    /// Whether `found` compares so with the one value of a rule, or with any of an `in`. All are of one type.
    pub fn holds(self, found: &Value, values: &[Value]) -> bool {
        let order = || values.first().and_then(|value| found.order(value));
        match self {
            Self::Equal | Self::In => values.contains(found),
            Self::NotEqual => !values.contains(found),
            Self::Less => order().is_some_and(Ordering::is_lt),
            Self::LessOrEqual => order().is_some_and(Ordering::is_le),
            Self::Greater => order().is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_their_own_inverse() {
        for op in Op::ALL {
            assert_eq!(Op::parse(op.as_str()), Some(op));
        }
        assert_eq!(Op::ALL.map(Op::as_str), ["=", "!=", "<", "<=", ">", ">=", "in"]);
        assert_eq!(Op::parse("=="), None);
    }

    #[test]
    fn nothing_is_less_than_what_has_no_order() {
        let (yes, no) = (Value::Bool(true), Value::Bool(false));
        for op in Op::ALL.into_iter().filter(|op| op.needs_order()) {
            assert!(!op.holds(&yes, std::slice::from_ref(&no)) && !op.holds(&no, std::slice::from_ref(&yes)), "{op:?}");
        }
        assert!(Op::In.holds(&yes, &[no.clone(), yes.clone()]) && Op::NotEqual.holds(&yes, &[no]));
    }
}
