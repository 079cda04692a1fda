//! Which handler gets which kind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::classify::RuleTable;
use tenure_core::{Json, KindName};

use crate::answer::Answer;
use crate::ctx::Ctx;
use crate::fail::Fail;
use crate::handler::{Handler, Running};
use crate::job::Job;

/// How handlers of one kind are run, where that differs from the job's type and the worker.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct HandleOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) rules: Option<RuleTable>,
}

impl HandleOptions {
    /// Nothing differs.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a handler may run, instead of what `#[job(timeout = …)]` says.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What its errors mean, instead of the worker's own table.
    pub fn rules(mut self, rules: RuleTable) -> Self {
        self.rules = Some(rules);
        self
    }
}

/// Reads the payload and begins.
type Call = Box<dyn Fn(&Json, &Ctx) -> Running + Send + Sync>;

/// What is wrong with a payload and where, without any of its values: this goes into logs.
fn misfit(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.starts_with("missing field ") {
        // Names a field of the type, nothing of the payload.
        true => text,
        false => format!("another type or value is expected at line {} column {}", error.line(), error.column()),
    }
}

/// A kind's handler, its type forgotten.
pub(crate) struct Route {
    call: Call,
    pub(crate) timeout: Option<Duration>,
    pub(crate) rules: Option<RuleTable>,
    pub(crate) queue: &'static str,
}

pub(crate) type Routes = HashMap<KindName, Arc<Route>>;

impl Route {
    pub(crate) fn new<H, J, T, S>(handler: H, state: S, options: HandleOptions) -> Self
    where
        H: Handler<J, T, S>,
        J: Job,
        S: Send + Sync + 'static,
    {
        let call = move |payload: &Json, ctx: &Ctx| -> Running {
            match serde_json::from_str::<J>(payload.as_str()) {
                Ok(job) => handler.call(job, ctx, &state),
                Err(error) => {
                    let fail = Fail::permanent(format!("the payload is not a {}: {}", J::KIND, misfit(&error)));
                    Box::pin(std::future::ready(Answer::Failed(fail)))
                }
            }
        };
        let timeout = options.timeout.or(J::DEFAULTS.timeout);
        Self { call: Box::new(call), timeout, rules: options.rules, queue: J::DEFAULTS.queue }
    }

    pub(crate) fn call(&self, payload: &Json, ctx: &Ctx) -> Running {
        (self.call)(payload, ctx)
    }
}
