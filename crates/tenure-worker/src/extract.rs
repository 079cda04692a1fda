//! Extractors: what a handler may ask for beside its job.

use crate::ctx::Ctx;
use crate::fail::Fail;

/// Something a handler can take as an argument: [`State`], [`Ctx`], [`Attempt`](crate::Attempt), [`Page`](crate::Page), or a type of your own.
#[diagnostic::on_unimplemented(
    message = "a handler cannot take `{Self}` as an argument",
    label = "has an argument `{Self}`",
    note = "a handler's arguments are its job, then `State<…>`, `Ctx`, `Attempt`, `Page` or types with `FromContext<{S}>`"
)]
pub trait FromContext<S>: Sized {
    /// Makes it. An error ends the attempt as if the handler had returned it.
    fn from_context(ctx: &Ctx, state: &S) -> Result<Self, Fail>;
}

/// What was given to the worker with `.state(…)`, or a part of it ([`FromRef`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<T>(pub T);

/// A part of the worker's state that can be asked for by itself.
#[diagnostic::on_unimplemented(
    message = "a handler takes `State<{Self}>`, but the state of this worker is `{S}`",
    label = "has an argument `State<{Self}>`",
    note = "give the worker its state before its handlers, `.state(…).handle(…)`, \
            or implement `FromRef<{S}>` for `{Self}` when it is a part of it"
)]
pub trait FromRef<S> {
    /// Takes the part, usually by a cheap clone.
    fn from_ref(state: &S) -> Self;
}

impl<T: Clone> FromRef<T> for T {
    fn from_ref(state: &T) -> T {
        state.clone()
    }
}

impl<S, T: FromRef<S>> FromContext<S> for State<T> {
    fn from_context(_: &Ctx, state: &S) -> Result<Self, Fail> {
        Ok(Self(T::from_ref(state)))
    }
}

impl<S> FromContext<S> for Ctx {
    fn from_context(ctx: &Ctx, _: &S) -> Result<Self, Fail> {
        Ok(ctx.clone())
    }
}
