//! The right that a call needs, as a type: it is checked before the body is read.
//!
//! A body is taken by [`Json<R, T>`](crate::body::Json) or [`Text<R>`](crate::body::Text), and there is no form without an
//! `R`: a handler that reads a body names the scope, and the scope is checked before the first byte of the body.

use std::marker::PhantomData;

use tenure_core::Scope;

use crate::caller::Caller;
use crate::problem::Problem;

/// A right that a call needs.
pub(crate) trait Right {
    /// Refuses a caller without it.
    fn check(caller: &Caller) -> Result<(), Problem>;
}

macro_rules! rights {
    ($($name:ident = $scope:ident;)*) => {
        $(#[doc = concat!("The scope `", stringify!($scope), "`.")]
        pub(crate) struct $name;

        impl Right for $name {
            fn check(caller: &Caller) -> Result<(), Problem> {
                caller.need(Scope::$scope)
            }
        }

        impl Right for Operators<$name> {
            fn check(caller: &Caller) -> Result<(), Problem> {
                caller.need_operator(Scope::$scope)
            }
        })*
    };
}

/// A scope by a key that belongs to no tenant.
pub(crate) struct Operators<R>(PhantomData<R>);

/// Two rights together.
pub(crate) struct Both<A, B>(PhantomData<(A, B)>);

impl<A: Right, B: Right> Right for Both<A, B> {
    fn check(caller: &Caller) -> Result<(), Problem> {
        A::check(caller)?;
        B::check(caller)
    }
}

rights! {
    Enqueue = Enqueue;
    Operate = Operate;
    Work = Worker;
    Admin = Admin;
}
