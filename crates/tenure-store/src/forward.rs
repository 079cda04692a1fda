//! For stores in front of another store: the verbs of runs, passed on.

/// Implements [`RunStore`](crate::RunStore) by the store that `$inner` leads to.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_runs {
    ($type:ty, $inner:ident) => {
        #[async_trait::async_trait]
        impl $crate::RunStore for $type {
            async fn create_run(&self, request: $crate::run::NewRun) -> Result<$crate::run::RunCreated, StoreError> {
                $crate::RunStore::create_run(&self.$inner, request).await
            }

            async fn add_to_run(&self, request: $crate::run::AddToRun) -> Result<$crate::run::Added, StoreError> {
                $crate::RunStore::add_to_run(&self.$inner, request).await
            }

            async fn seal_run(&self, request: $crate::run::SealRun) -> Result<(), StoreError> {
                $crate::RunStore::seal_run(&self.$inner, request).await
            }

            async fn list_runs(
                &self,
                filter: &$crate::run::RunFilter,
            ) -> Result<Vec<$crate::run::RunRecord>, StoreError> {
                $crate::RunStore::list_runs(&self.$inner, filter).await
            }

            async fn show_run(
                &self,
                sight: &$crate::record::Sight,
                run: tenure_core::RunId,
            ) -> Result<$crate::run::RunRecord, StoreError> {
                $crate::RunStore::show_run(&self.$inner, sight, run).await
            }

            async fn list_partitions(
                &self,
                filter: &$crate::run::PartitionFilter,
            ) -> Result<Vec<$crate::run::PartitionRecord>, StoreError> {
                $crate::RunStore::list_partitions(&self.$inner, filter).await
            }

            async fn cancel_run(&self, request: $crate::run::CancelRun) -> Result<bool, StoreError> {
                $crate::RunStore::cancel_run(&self.$inner, request).await
            }

            async fn operate_partition(&self, request: $crate::run::OperatePartition) -> Result<(), StoreError> {
                $crate::RunStore::operate_partition(&self.$inner, request).await
            }

            async fn begin_page(&self, job: tenure_core::JobId) -> Result<$crate::run::PageFound, StoreError> {
                $crate::RunStore::begin_page(&self.$inner, job).await
            }

            async fn advance_page(&self, request: $crate::run::AdvancePage) -> Result<(), StoreError> {
                $crate::RunStore::advance_page(&self.$inner, request).await
            }

            async fn fold_runs(&self) -> Result<$crate::run::FoldedRuns, StoreError> {
                $crate::RunStore::fold_runs(&self.$inner).await
            }
        }
    };
}
