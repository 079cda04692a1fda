//! A catalogue comes in page by page, and is published once, when all of it is there.

use tenure_core::{RunId, RunState};
use tenure_store::record::Sight;
use tenure_worker::Client;

use super::orders::{Producer, SHELF_ITEMS, SHELVES};
use super::story::Story;
use crate::failure::Failure;

/// The run, once it has ended.
pub(super) struct Catalogue {
    pub(super) run: RunId,
    pub(super) items: u64,
}

impl Story {
    /// Two shelves as partitions of a run, ten items a page; then the catalogue is published.
    pub(super) async fn a_catalogue_comes_in(&mut self) -> Result<(), Failure> {
        let producer = Producer::new(Client::new(&self.stage.store), self.board.clone());
        let run = producer.catalogue().await?;
        self.board.say(format!(
            "The catalogue comes in as a run: {SHELVES} shelves, page by page, each page's items commit with its progress"
        ));
        let ended = self
            .until("the run has ended", async |story| {
                let record = story.stage.store.show_run(&Sight::All, run).await?;
                Ok(Some(record).filter(|record| !record.run.state.is_open()))
            })
            .await?;
        let items = ended.rows;
        self.board.say(match ended.run.state {
            RunState::Succeeded => format!(
                "All {items} of {} items are there, and the catalogue was published once",
                SHELVES * SHELF_ITEMS
            ),
            state => format!("The run is {}", state.as_str()),
        });
        self.catalogue = Some(Catalogue { run, items });
        self.breathe().await;
        Ok(())
    }
}
