//! `tenure gates pause`, `resume`, `trip` and `reset`.

use std::time::Duration;

use clap::Args;
use tenure_core::duration;
use tenure_core::name::GateName;
use tenure_store::gate::{GateAct, OperateGate};

use crate::args::{WordArgs, gate, limit};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::wire::gate::GateLine;

#[derive(Debug, Args)]
pub(super) struct OperateArgs {
    /// The gate; one that no job has passed yet is known from now on
    #[arg(value_name = "GATE", value_parser = gate)]
    gate: GateName,
    #[command(flatten)]
    word: WordArgs,
}

#[derive(Debug, Args)]
pub(super) struct TimedArgs {
    #[command(flatten)]
    pub(super) gate: OperateArgs,
    /// For how long, such as 10m; otherwise until it is taken back
    #[arg(long = "for", value_name = "DURATION", value_parser = time)]
    pub(super) time: Option<Duration>,
}

pub(super) async fn run(args: OperateArgs, act: GateAct, session: &mut Session) -> Result<Answer, Failure> {
    let request = OperateGate { gate: args.gate.clone(), act, word: session.word(args.word) };
    let store = session.store_to_add().await?;
    store.operate_gate(request).await?;
    if session.out.is_json() {
        let record = store.show_gate(&args.gate).await?;
        session.out.json(&GateLine::from(&record))?;
        return Ok(Answer::Done);
    }
    let gate = args.gate;
    let lasts = |time: Option<Duration>, otherwise: &str| match time {
        Some(time) => format!("for {}", duration::format(time)),
        None => format!("until it is {otherwise}"),
    };
    session.out.line(match act {
        GateAct::Pause(time) => {
            format!("Gate {gate} is paused {}: nothing passes, jobs inside go on.", lasts(time, "resumed"))
        }
        GateAct::Resume => format!("Gate {gate} is no longer paused."),
        GateAct::Trip(time) => format!("The breaker of gate {gate} is open {}.", lasts(time, "reset")),
        GateAct::Reset => {
            format!("The breaker of gate {gate} is closed, its failures are forgotten, and its bucket is full.")
        }
    });
    Ok(Answer::Done)
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse("for", text).map_err(limit)
}
