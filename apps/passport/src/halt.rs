//! [`Halt`]: why a handler stops, with every error in the words of the product.
//!
//! The product's rule table knows codes and nothing else, and what it does not know is permanent. So a database that is
//! away has to be called by its code, or a job would fail for good because of it.

use tenure::{Fail, Invalid, StoreError};

use crate::code::{Code, Refusal};

/// What a handler answers instead of being done. It is no [`std::error::Error`], for the same reason as [`Refusal`].
#[derive(Debug)]
pub enum Halt {
    /// Something of the product's own is refused.
    Refused(Refusal),
    /// The library's word.
    Answered(Fail),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Invalid> for Halt {
    fn from(invalid: Invalid) -> Self {
        Refusal::from(invalid).into()
    }
}

impl From<StoreError> for Halt {
    /// A lost lease and a full queue keep the meaning that the worker gives them.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(..) => Refusal::new(Code::DbUnavailable, error).into(),
            StoreError::Invalid(invalid) => invalid.into(),
            other => Self::Answered(other.into()),
        }
    }
}

impl From<Fail> for Halt {
    fn from(fail: Fail) -> Self {
        Self::Answered(fail)
    }
}

impl From<Halt> for Fail {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Refused(refusal) => refusal.into(),
            Halt::Answered(fail) => fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S4.21
    #[test]
    fn a_database_that_is_away_is_called_by_its_code() {
        let halt = Halt::from(StoreError::Unavailable("no route".to_owned(), None));
        let Halt::Refused(refusal) = halt else { panic!("{halt:?}") };
        assert_eq!((refusal.code, refusal.code.class()), (Code::DbUnavailable, tenure::Class::Transient));
        assert!(refusal.message.contains("no route"), "{refusal}");
    }

    #[test]
    fn what_a_table_refuses_is_a_malformed_input_and_the_rest_keeps_its_meaning() {
        let invalid = Halt::from(StoreError::Invalid(Invalid::new("status", "LOST", "it is PENDING or so")));
        assert!(matches!(invalid, Halt::Refused(refusal) if refusal.code == Code::ValidationError));
        assert!(matches!(Halt::from(StoreError::Full("come again".to_owned())), Halt::Answered(_)));
    }
}
