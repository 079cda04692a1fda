//! `tenure gates set`: what a gate allows, or all whose name begins alike.

use clap::Args;
use tenure_core::gate::{Breaker, GateRule, Pattern, Rate};
use tenure_store::gate::SetRule;

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
  tenure gates set source:ebay --remove

The rule of the name itself holds, else the one of the longest beginning; it holds whole, rules are not added up.
Without --burst a tenth of a second's worth may pass at once, at least one job.
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
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u32>,
    /// Tokens of the rate that a job takes [default: 1]
    #[arg(long, value_name = "N", requires = "rate")]
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
    /// Begin with a known rule: source (30/m, 5:5m) or domain (2 at once)
    #[arg(long, value_name = "NAME", value_parser = preset)]
    preset: Option<GateRule>,
    /// Remove the rule
    #[arg(long, conflicts_with_all = ["rate", "concurrency", "breaker", "weight", "preset"])]
    remove: bool,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let word = session.word(args.word);
    let pattern = args.gate;
    if args.remove {
        session.store_to_add().await?.set_rule(SetRule { pattern: pattern.clone(), rule: None, word }).await?;
        match session.out.is_json() {
            true => session.out.json(&serde_json::json!({ "rule": pattern.as_str(), "removed": true }))?,
            false => session.out.line(format!("The rule for {pattern} is removed.")),
        }
        return Ok(Answer::Done);
    }
    let mut rule = args.preset.clone().unwrap_or_default();
    let said = args.rate.is_some() || args.concurrency.is_some() || args.breaker.is_some() || args.weight.is_some();
    if !said && args.preset.is_none() {
        return Err(Failure::usage(
            "usage",
            "say what the gate allows: --rate, --concurrency, --breaker, --weight or --preset; or --remove the rule",
        ));
    }
    rule.rate = args.rate.map(|rate| rate.with(args.burst, args.cost)).or(rule.rate);
    rule.concurrency = args.concurrency.or(rule.concurrency);
    rule.breaker = args.breaker.or(rule.breaker);
    rule.weight = args.weight.unwrap_or(rule.weight);
    rule.check()?;
    let request = SetRule { pattern: pattern.clone(), rule: Some(rule.clone()), word };
    session.store_to_add().await?.set_rule(request).await?;
    match session.out.is_json() {
        true => session.out.json(&RuleLine::from(&(pattern, rule)))?,
        false => session.out.line(format!("{pattern} allows {}.", allows(&rule))),
    }
    Ok(Answer::Done)
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
