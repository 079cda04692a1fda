//! The port's verbs of runs and partitions.

use async_trait::async_trait;
use tenure_core::{JobId, RunId};
use tenure_store::record::Sight;
use tenure_store::run::{
    AddToRun, Added, AdvancePage, CancelRun, FoldedRuns, NewRun, OperatePartition, PageFound, PartitionFilter,
    PartitionRecord, RunCreated, RunFilter, RunRecord, SealRun,
};
use tenure_store::{AdminStore, RunStore, StoreError};

use crate::lane::Urgency;
use crate::store::SqliteStore;
use crate::{fold, page, run};

#[async_trait]
impl RunStore for SqliteStore {
    async fn create_run(&self, request: NewRun) -> Result<RunCreated, StoreError> {
        request.check(self.now().await?)?;
        self.write(Urgency::Bulk, move |tx| run::create_run(tx, &request)).await
    }

    async fn add_to_run(&self, request: AddToRun) -> Result<Added, StoreError> {
        self.write(Urgency::Bulk, move |tx| run::add_to_run(tx, &request)).await
    }

    async fn seal_run(&self, request: SealRun) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| run::seal_run(tx, &request)).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| run::list_runs(tx, &filter)).await
    }

    async fn show_run(&self, sight: &Sight, run: RunId) -> Result<RunRecord, StoreError> {
        let sight = sight.clone();
        self.read(move |tx| run::find_run(tx, &sight, run)).await
    }

    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| page::list_partitions(tx, &filter)).await
    }

    async fn cancel_run(&self, request: CancelRun) -> Result<bool, StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| run::cancel_run(tx, &request)).await
    }

    async fn operate_partition(&self, request: OperatePartition) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| page::operate_partition(tx, &request)).await
    }

    async fn begin_page(&self, job: JobId) -> Result<PageFound, StoreError> {
        self.write(Urgency::Verb, move |tx| page::begin_page(tx, job)).await
    }

    async fn advance_page(&self, request: AdvancePage) -> Result<(), StoreError> {
        self.write(Urgency::Verb, move |tx| page::advance_page(tx, &request)).await
    }

    async fn fold_runs(&self) -> Result<FoldedRuns, StoreError> {
        self.write(Urgency::Bulk, fold::fold_runs).await
    }
}
