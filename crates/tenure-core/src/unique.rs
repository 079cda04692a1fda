//! Which enqueue finds an earlier job instead of creating one.
//!
//! A unique key belongs to a tenant and a scope (the kind, unless said otherwise) and points at the job that holds it.
//! **Endings touch no key**: a key whose holder has let go is taken over by the next enqueue that meets it.

use std::time::Duration;

use crate::invalid::Invalid;
use crate::lifecycle::State;
use crate::name::check_text;

/// How long a job holds its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// While it is waiting, queued, retryable or running.
    WhileActive,
    /// That, and after it succeeded.
    UnlessFailed,
    /// For ever, in any state; a dead job is requeued, never created again.
    Forever,
    /// From its enqueue on for this long, in any state.
    Window(Duration),
}

/// A key and its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// Keys of different scopes never meet; `None` is the job's kind.
    pub scope: Option<String>,
    /// What must not be there twice.
    pub key: String,
    /// For how long.
    pub policy: Policy,
}

impl Unique {
    /// `key` under `policy`, scoped by the job's kind.
    pub fn new(key: impl Into<String>, policy: Policy) -> Self {
        Self { scope: None, key: key.into(), policy }
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        check_text("unique key", &self.key)?;
        if let Some(scope) = &self.scope {
            check_text("unique scope", scope)?;
        }
        match self.policy {
            Policy::Window(window) if window.is_zero() || window > crate::backoff::DELAY_MAX => {
                let value = crate::duration::format(window);
                Err(Invalid::new("unique window", value, "a window is longer than zero and at most 365d"))
            }
            _ => Ok(()),
        }
    }
}

impl Policy {
    /// Whether a holder in `state` still has its key. `expired` says that a window is over.
    pub const fn holds(self, state: State, expired: bool) -> bool {
        match self {
            Self::WhileActive => !state.is_terminal(),
            Self::UnlessFailed => !matches!(state, State::Failed | State::Dead | State::Canceled),
            Self::Forever => true,
            Self::Window(_) => !expired,
        }
    }

    /// The word used in commands and in plain SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WhileActive => "while_active",
            Self::UnlessFailed => "unless_failed",
            Self::Forever => "forever",
            Self::Window(_) => "window",
        }
    }

    /// 1..=4, what the `unique_key` table stores.
    pub const fn code(self) -> i16 {
        match self {
            Self::WhileActive => 1,
            Self::UnlessFailed => 2,
            Self::Forever => 3,
            Self::Window(_) => 4,
        }
    }

    /// The window, if it is one.
    pub const fn window(self) -> Option<Duration> {
        match self {
            Self::Window(window) => Some(window),
            Self::WhileActive | Self::UnlessFailed | Self::Forever => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_held_in_its_own_states() {
        let held = |policy: Policy| State::ALL.into_iter().filter(|s| policy.holds(*s, false)).count();
        assert_eq!(held(Policy::WhileActive), 4);
        assert_eq!(held(Policy::UnlessFailed), 5);
        assert_eq!(held(Policy::Forever), 8);
        let window = Policy::Window(Duration::from_secs(600));
        assert_eq!(held(window), 8);
        assert!(State::ALL.into_iter().all(|s| !window.holds(s, true)));
    }

    #[test]
    fn empty_keys_and_endless_windows_are_refused() {
        assert_eq!(Unique::new("", Policy::Forever).check().unwrap_err().field, "unique key");
        for window in [Duration::ZERO, Duration::MAX] {
            let refused = Unique::new("k", Policy::Window(window)).check().unwrap_err();
            assert_eq!(refused.field, "unique window");
        }
        assert_eq!(Unique::new("inv:42", Policy::Window(Duration::from_secs(600))).check(), Ok(()));
    }
}
