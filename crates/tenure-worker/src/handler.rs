//! Handlers: async functions of a job and extractors.
//!
//! There is one implementation of [`Handler`], and only the number of arguments is looked at to choose among the
//! [`Function`]s. So what a function lacks to be a handler is said by itself: an argument that nobody can extract, a
//! state the worker does not have, a return type that is no answer.

use std::future::Future;
use std::pin::Pin;

use crate::answer::sealed::IntoAnswer as _;
use crate::answer::{Answer, IntoAnswer};
use crate::ctx::Ctx;
use crate::extract::FromContext;
use crate::fail::Fail;
use crate::job::Job;

pub(crate) type Running = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// An async function whose first argument is a [`Job`], whose others are extractors, and whose return type is an
/// [`IntoAnswer`]. Nobody implements it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a handler is an `async fn(job, …) -> Result<(), Fail>`: its first argument derives `Job`, \
            the others (at most six) are `State<…>`, `Ctx`, `Attempt` or types with `FromContext`"
)]
pub trait Handler<J, T, S>: Send + Sync + 'static {
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only this crate calls and implements it")]
    fn call(&self, job: J, ctx: &Ctx, state: &S) -> Running;
}

impl<F, J, T, S> Handler<J, T, S> for F
where
    F: Function<J, T> + Send + Sync + 'static,
    F::Called: Future<Output: IntoAnswer> + Send + 'static,
    J: Job,
    T: Extractors<S>,
{
    #[expect(private_interfaces, reason = "only this crate calls and implements it")]
    fn call(&self, job: J, ctx: &Ctx, state: &S) -> Running {
        match T::extract(ctx, state) {
            Ok(extracted) => {
                let called = self.call(job, extracted);
                Box::pin(async move { called.await.into_answer() })
            }
            Err(fail) => Box::pin(std::future::ready(Answer::Failed(fail))),
        }
    }
}

/// A function of a job and of up to six more arguments.
pub trait Function<J, T> {
    #[doc(hidden)]
    type Called;

    #[doc(hidden)]
    fn call(&self, job: J, extracted: T) -> Self::Called;
}

/// The arguments after the job, each made by itself.
pub trait Extractors<S>: Sized {
    #[doc(hidden)]
    fn extract(ctx: &Ctx, state: &S) -> Result<Self, Fail>;
}

macro_rules! functions {
    ($($extractor:ident)*) => {
        impl<F, Called, J, $($extractor,)*> Function<J, ($($extractor,)*)> for F
        where
            F: Fn(J, $($extractor,)*) -> Called,
        {
            type Called = Called;

            #[allow(non_snake_case, clippy::allow_attributes, reason = "one macro for every number of extractors")]
            fn call(&self, job: J, ($($extractor,)*): ($($extractor,)*)) -> Called {
                self(job, $($extractor,)*)
            }
        }

        impl<S, $($extractor: FromContext<S>,)*> Extractors<S> for ($($extractor,)*) {
            #[allow(unused_variables, clippy::allow_attributes, reason = "one macro for every number of extractors")]
            fn extract(ctx: &Ctx, state: &S) -> Result<Self, Fail> {
                Ok(($($extractor::from_context(ctx, state)?,)*))
            }
        }
    };
}

functions!();
functions!(A);
functions!(A B);
functions!(A B C);
functions!(A B C D);
functions!(A B C D E);
functions!(A B C D E G);
