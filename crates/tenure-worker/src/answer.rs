//! What a handler may return, and the one type it becomes.

use serde::Serialize;
use tenure_core::Json;

use crate::fail::Fail;
use crate::job::to_kept;

/// Proof that the job was completed inside the handler's own transaction.
///
/// Only [`Attempt::complete_in`](crate::Attempt::complete_in) makes one, so a handler that answers with it has at least
/// asked; the worker then looks whether the transaction was really committed.
#[derive(Debug)]
#[must_use = "return it from the handler: otherwise the worker completes the job a second time"]
pub struct Completed(pub(crate) ());

/// Done, with a result to keep: `Ok(Returned(receipt))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned<T>(pub T);

/// How a handler ended.
pub(crate) enum Answer {
    Done(Option<Json>),
    /// In a transaction of its own, it says.
    Completed,
    Failed(Fail),
}

/// A handler's return type: `()`, `Result<(), E>`, `Result<Completed, E>` or `Result<Returned<T>, E>`, where `E` is
/// [`Fail`] or any error.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "a handler returns `()`, `Result<(), E>`, `Result<Completed, E>` or `Result<Returned<T>, E>` with a serde type \
            `T` to keep, where `E` is `Fail` or any `std::error::Error` (a text: `Fail::transient(text)`)"
)]
pub trait IntoAnswer: sealed::IntoAnswer {}

#[diagnostic::do_not_recommend]
impl<T: sealed::IntoAnswer> IntoAnswer for T {}

pub(crate) mod sealed {
    use super::{Answer, Completed, Fail, Returned, Serialize, to_kept};

    pub trait IntoAnswer {
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
        fn into_answer(self) -> Answer;
    }

    /// What stands inside of `Ok`.
    pub trait IntoOutcome {
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
        fn into_outcome(self) -> Answer;
    }

    #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
    impl IntoAnswer for () {
        fn into_answer(self) -> Answer {
            Answer::Done(None)
        }
    }

    #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
    impl<T: IntoOutcome, E: Into<Fail>> IntoAnswer for Result<T, E> {
        fn into_answer(self) -> Answer {
            match self {
                Ok(outcome) => outcome.into_outcome(),
                Err(error) => Answer::Failed(error.into()),
            }
        }
    }

    #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
    impl IntoOutcome for () {
        fn into_outcome(self) -> Answer {
            Answer::Done(None)
        }
    }

    #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
    impl IntoOutcome for Completed {
        fn into_outcome(self) -> Answer {
            Answer::Completed
        }
    }

    #[expect(private_interfaces, reason = "sealed: nobody else calls it")]
    impl<T: Serialize> IntoOutcome for Returned<T> {
        fn into_outcome(self) -> Answer {
            match to_kept("result", &self.0) {
                Ok(json) => Answer::Done(Some(json)),
                // The work is done, but its result cannot be kept: tried again it would be done twice.
                Err(invalid) => Answer::Failed(Fail::permanent(invalid)),
            }
        }
    }
}
