//! `tenure gates set`: what a gate allows, or all whose name begins alike.

use clap::Args;
use tenure_core::gate::{Breaker, GateRule, Part, Pattern, Rate, RulePatch};
use tenure_store::gate::{PatchRule, SetRule};

use crate::args::{WordArgs, limit, pattern};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::gate_words::allows;
use tenure_server::wire::gate::RuleLine;

const EXAMPLES: &str = "\
Examples:
  tenure gates set 'domain:*' --concurrency 2
  tenure gates set source:ebay --rate 30/m --breaker 5:5m
  tenure gates set 'source:*' --preset source --rate 60/m     five failures, five minutes, sixty a minute
  tenure gates set 'domain:*' --preset domain                 two at once
  tenure gates set tenant:acme --weight 3                     three times the share in fair queues
  tenure gates set source:ebay --rate 60/m                    the rest of its rule stays as it is
  tenure gates set source:ebay --no-breaker                   takes one limit away
  tenure gates set source:ebay --remove                       takes the whole rule away

What is not named stays as it is; a gate without a rule of its own begins with one that limits nothing.
The rule of the name itself holds, else the one of the longest beginning; it holds whole, rules are not added up.
Unless a --burst was set, a tenth of a second's worth may pass at once, at least one job.
The breaker opens after so many failures in a row, and after its cooldown one job tries whether all is well.";

/// Set what a gate allows, or all whose name begins alike
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SetArgs {
    /// The gate, or a beginning such as 'domain:*'
    #[arg(value_name = "GATE", value_parser = pattern)]
    gate: Pattern,
    /// So many per time: 50/s, 30/m, 5/10s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<Rate>,
    /// Most that may pass at once after a quiet time
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Tokens of the rate that a job takes [default: 1]
    #[arg(long, value_name = "N")]
    cost: Option<u32>,
    /// Jobs inside at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Failures in a row that open its breaker, and for how long nothing passes then: 5:5m
    #[arg(long, value_name = "N:TIME", value_parser = breaker)]
    breaker: Option<Breaker>,
    /// Its share beside the other lines of a queue [default: 1]
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// No rate, no burst and no cost
    #[arg(long, conflicts_with_all = ["rate", "burst", "cost"])]
    no_rate: bool,
    /// No limit of jobs inside at once
    #[arg(long, conflicts_with = "concurrency")]
    no_concurrency: bool,
    /// No breaker
    #[arg(long, conflicts_with = "breaker")]
    no_breaker: bool,
    /// Set the limits of a known rule: source (30/m, 5:5m) or domain (2 at once)
    #[arg(long, value_name = "NAME", value_parser = preset)]
    preset: Option<GateRule>,
    /// Remove the rule
    #[arg(long, conflicts_with_all = ["rate", "burst", "cost", "concurrency", "breaker", "weight", "preset",
        "no_rate", "no_concurrency", "no_breaker"])]
    remove: bool,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let patch = patch(&args);
    let (word, pattern) = (session.word(args.word), args.gate);
    if args.remove {
        session.store_to_add().await?.set_rule(SetRule { pattern: pattern.clone(), rule: None, word }).await?;
        match session.out.is_json() {
            true => session.out.json(&serde_json::json!({ "rule": pattern.as_str(), "removed": true }))?,
            false => session.out.line(format!("The rule for {pattern} is removed.")),
        }
        return Ok(Answer::Done);
    }
    if patch.is_empty() {
        return Err(Failure::usage(
            "usage",
            "say what changes: --rate, --burst, --cost, --concurrency, --breaker, --weight or --preset; --no-rate, \
             --no-concurrency or --no-breaker; or --remove the rule",
        ));
    }
    let request = PatchRule { pattern: pattern.clone(), patch, word };
    // Before a store is opened, or made.
    request.check()?;
    let rule = session.store_to_add().await?.patch_rule(request).await?;
    match session.out.is_json() {
        true => session.out.json(&RuleLine::from(&(pattern, rule)))?,
        false => session.out.line(format!("{pattern} allows {}.", allows(&rule))),
    }
    Ok(Answer::Done)
}

/// What the flags name; a flag goes before the same part of a preset.
fn patch(args: &SetArgs) -> RulePatch {
    let mut patch = args.preset.as_ref().map(RulePatch::from).unwrap_or_default();
    set(&mut patch.rate, args.rate, args.no_rate);
    set(&mut patch.burst, args.burst, false);
    set(&mut patch.cost, args.cost, false);
    set(&mut patch.concurrency, args.concurrency, args.no_concurrency);
    set(&mut patch.breaker_failures, args.breaker.map(|breaker| breaker.failures), args.no_breaker);
    set(&mut patch.breaker_cooldown, args.breaker.map(|breaker| breaker.cooldown), args.no_breaker);
    set(&mut patch.weight, args.weight, false);
    patch
}

fn set<T>(part: &mut Part<T>, value: Option<T>, is_cleared: bool) {
    match value {
        Some(value) => *part = Part::Set(value),
        None if is_cleared => *part = Part::Clear,
        None => {}
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse().map_err(limit)
}

fn breaker(text: &str) -> Result<Breaker, String> {
    text.parse().map_err(limit)
}

fn preset(text: &str) -> Result<GateRule, String> {
    GateRule::preset(text).map_err(limit)
}
