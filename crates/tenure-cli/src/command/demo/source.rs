//! A source that jobs share goes down, and comes back: its breaker opens, a probe finds it up, its jobs go on.

use std::time::Duration;

use tenure_core::gate::{Admit, Breaker, GateRule, Why};
use tenure_core::{GateName, JobId};
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;
use tenure_worker::Client;

use super::kinds::PRICES;
use super::orders::Producer;
use super::story::Story;
use crate::failure::Failure;

/// Jobs that ask the source.
const ASKED: u32 = 8;
/// It rests for so long after so many failures in a row.
const BREAKER: Breaker = Breaker { failures: 3, cooldown: Duration::from_millis(900) };

impl Story {
    /// Prices come from a source that is down: after three failures nobody asks it any more, until it is up again.
    pub(super) async fn a_source_goes_down(&mut self) -> Result<(), Failure> {
        let gate = GateName::new(PRICES)?;
        let rule = GateRule { breaker: Some(BREAKER), concurrency: Some(2), ..GateRule::default() };
        let request = SetRule { pattern: gate.as_str().parse()?, rule: Some(rule), word: Word::default() };
        self.stage.store.set_rule(request).await?;
        let producer = Producer::new(Client::new(&self.stage.store), self.board.clone());
        let mut asked: Vec<JobId> = Vec::new();
        for item in 1..=ASKED {
            asked.push(producer.price(item).await?);
        }
        self.board.say(format!("{ASKED} prices are asked for at {PRICES}, which is down"));
        self.until("the breaker of the source is open", async |story| {
            let admit = story.stage.store.show_gate(&gate).await?.admit;
            Ok(matches!(admit, Admit::Closed { why: Why::Open, .. }).then_some(()))
        })
        .await?;
        self.board.say(format!(
            "{PRICES} failed {} times in a row: its breaker is open, its jobs wait, and no slot waits with them",
            BREAKER.failures
        ));
        self.breathe().await;
        self.stage.open_gate("prices")?;
        self.until("the prices are there", async |story| {
            for job in &asked {
                if !story.show(*job).await?.summary.state.is_terminal() {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await?;
        self.board.say(format!("{PRICES} is up again: one probe closed its breaker, and all {ASKED} prices are there"));
        self.asked = asked;
        self.breathe().await;
        Ok(())
    }
}
