//! What `#[job(…)]` says, checked key by key with the rules of `tenure-core`.

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{LitInt, LitStr, Path};
use tenure_core::duration;
use tenure_core::new_job::{ATTEMPTS_MAX, LOSSES_MAX};
use tenure_core::{Backoff, Invalid, KindName, QueueName};

use crate::mistakes::Mistakes;
use crate::pairs::Pair;

const KEYS: &str = "kind, queue, priority, max_attempts, max_losses, backoff, timeout and crate";

/// The words for `tenure_core::Priority`, and its constants.
const PRIORITIES: [(&str, &str); 4] =
    [("critical", "CRITICAL"), ("high", "HIGH"), ("normal", "NORMAL"), ("low", "LOW")];

/// What a type says about its jobs. A value that was refused is missing here and noted as a mistake.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) kind: Option<LitStr>,
    pub(crate) queue: Option<LitStr>,
    /// The constant's name.
    pub(crate) priority: Option<Ident>,
    pub(crate) max_attempts: Option<LitInt>,
    pub(crate) max_losses: Option<LitInt>,
    pub(crate) backoff: Option<LitStr>,
    pub(crate) timeout: Option<Duration>,
    /// Where this crate is, if not at `::tenure`.
    pub(crate) krate: Option<Path>,
    /// Whether a kind was named at all, a wrong one too.
    pub(crate) has_kind: bool,
}

impl Said {
    /// Checks every pair.
    pub(crate) fn new(pairs: &[Pair], mistakes: &mut Mistakes) -> Self {
        let mut said = Self::default();
        let mut seen = HashSet::new();
        for pair in pairs {
            if !seen.insert(pair.key.to_string()) {
                mistakes.at(&pair.key, format!("`{}` is given twice: keep one of them", pair.key));
            } else if let Err(mistake) = said.take(pair) {
                mistakes.add(mistake);
            }
        }
        said.has_kind = seen.contains("kind");
        said
    }

    fn take(&mut self, pair: &Pair) -> syn::Result<()> {
        let Pair { key, value } = pair;
        match key.to_string().as_str() {
            "kind" => self.kind = Some(text(pair, "invoice.send", |kind| KindName::new(kind))?),
            "queue" => self.queue = Some(text(pair, "mail", |queue| QueueName::new(queue))?),
            "backoff" => self.backoff = Some(text(pair, "exponential 1m..24h by failures", str::parse::<Backoff>)?),
            "timeout" => self.timeout = Some(checked(pair, "5m", timeout)?.1),
            "priority" => self.priority = Some(checked(pair, "high", priority)?.1),
            "max_attempts" => self.max_attempts = Some(count(pair, "max_attempts", ATTEMPTS_MAX)?),
            "max_losses" => self.max_losses = Some(count(pair, "max_losses", LOSSES_MAX)?),
            "crate" => self.krate = Some(path(value)?),
            unknown => {
                let message = format!("there is no key `{unknown}`: the keys are {KEYS}");
                return Err(syn::Error::new_spanned(key, message));
            }
        }
        Ok(())
    }
}

/// A text that passes `check`, as it was written.
fn text<T>(pair: &Pair, example: &str, check: impl FnOnce(&str) -> Result<T, Invalid>) -> syn::Result<LitStr> {
    Ok(checked(pair, example, check)?.0)
}

/// A text and what `check` makes of it. A refusal points at the text.
fn checked<T>(pair: &Pair, example: &str, check: impl FnOnce(&str) -> Result<T, Invalid>) -> syn::Result<(LitStr, T)> {
    let Pair { key, value } = pair;
    let text: LitStr = syn::parse2(value.clone())
        .map_err(|_| refuse(value, format!("`{key}` takes a text in quotes: `{key} = \"{example}\"`")))?;
    let checked = check(&text.value()).map_err(|invalid| refuse(&text, invalid))?;
    Ok((text, checked))
}

fn count(pair: &Pair, field: &'static str, max: u16) -> syn::Result<LitInt> {
    let Pair { key, value } = pair;
    let limit = format!("it is 1 to {max}");
    let digits: LitInt = syn::parse2(value.clone())
        .map_err(|_| refuse(value, format!("`{key}` takes a whole number without quotes: {limit}")))?;
    match digits.base10_parse::<u16>() {
        Ok(number) if (1..=max).contains(&number) && matches!(digits.suffix(), "" | "u16") => Ok(digits),
        _ => Err(refuse(&digits, Invalid::new(field, &digits, limit))),
    }
}

fn timeout(text: &str) -> Result<Duration, Invalid> {
    match duration::parse("timeout", text)? {
        Duration::ZERO => Err(Invalid::new("timeout", text, "a handler needs some time, such as 5m")),
        timeout => Ok(timeout),
    }
}

fn priority(word: &str) -> Result<Ident, Invalid> {
    let found = PRIORITIES.iter().find(|(known, _)| *known == word);
    let refuse = || Invalid::new("priority", word, "it is critical, high, normal or low");
    found.map(|(_, constant)| Ident::new(constant, Span::call_site())).ok_or_else(refuse)
}

fn path(value: &TokenStream) -> syn::Result<Path> {
    let refused =
        || refuse(value, "`crate` takes the path of the crate tenure in quotes: `crate = \"::jobs::tenure\"`");
    let text: LitStr = syn::parse2(value.clone()).map_err(|_| refused())?;
    text.parse_with(Path::parse_mod_style).map_err(|_| refused())
}

fn refuse(tokens: impl ToTokens, message: impl Display) -> syn::Error {
    syn::Error::new_spanned(tokens, message)
}

#[cfg(test)]
mod tests {
    use tenure_core::Priority;

    use super::*;

    #[test]
    fn there_is_a_word_for_every_priority() {
        assert_eq!(PRIORITIES.len(), Priority::ALL.len());
        assert!(PRIORITIES.iter().all(|(word, constant)| word.to_uppercase() == *constant));
    }
}
