//! For stores in front of another store: the verbs of runs, access, webhooks and operations, passed on.

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

/// Implements [`AccessStore`](crate::AccessStore) by the store that `$inner` leads to.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_access {
    ($type:ty, $inner:ident) => {
        #[async_trait::async_trait]
        impl $crate::AccessStore for $type {
            async fn set_tenant(&self, request: $crate::access::SetTenant) -> Result<bool, StoreError> {
                $crate::AccessStore::set_tenant(&self.$inner, request).await
            }

            async fn list_tenants(
                &self,
                filter: &$crate::access::TenantFilter,
            ) -> Result<Vec<$crate::access::TenantRecord>, StoreError> {
                $crate::AccessStore::list_tenants(&self.$inner, filter).await
            }

            async fn show_tenant(
                &self,
                tenant: &tenure_core::TenantName,
            ) -> Result<$crate::access::TenantRecord, StoreError> {
                $crate::AccessStore::show_tenant(&self.$inner, tenant).await
            }

            async fn create_key(
                &self,
                request: $crate::access::NewKey,
            ) -> Result<$crate::access::KeyRecord, StoreError> {
                $crate::AccessStore::create_key(&self.$inner, request).await
            }

            async fn find_key(
                &self,
                key: &tenure_core::KeyId,
            ) -> Result<Option<$crate::access::KeyRecord>, StoreError> {
                $crate::AccessStore::find_key(&self.$inner, key).await
            }

            async fn list_keys(
                &self,
                filter: &$crate::access::KeyFilter,
            ) -> Result<Vec<$crate::access::KeyRecord>, StoreError> {
                $crate::AccessStore::list_keys(&self.$inner, filter).await
            }

            async fn revoke_key(&self, request: $crate::access::RevokeKey) -> Result<bool, StoreError> {
                $crate::AccessStore::revoke_key(&self.$inner, request).await
            }

            async fn use_keys(&self, keys: Vec<tenure_core::KeyId>) -> Result<(), StoreError> {
                $crate::AccessStore::use_keys(&self.$inner, keys).await
            }

            async fn register_remote(
                &self,
                request: $crate::access::NewRemote,
            ) -> Result<tenure_core::WorkerId, StoreError> {
                $crate::AccessStore::register_remote(&self.$inner, request).await
            }

            async fn find_remote(
                &self,
                worker: tenure_core::WorkerId,
            ) -> Result<Option<$crate::access::RemoteToken>, StoreError> {
                $crate::AccessStore::find_remote(&self.$inner, worker).await
            }

            async fn begin_session(&self, request: $crate::access::NewSession) -> Result<(), StoreError> {
                $crate::AccessStore::begin_session(&self.$inner, request).await
            }

            async fn find_session(
                &self,
                token: &tenure_core::key::SecretHash,
            ) -> Result<Option<$crate::access::SessionRecord>, StoreError> {
                $crate::AccessStore::find_session(&self.$inner, token).await
            }

            async fn end_session(&self, token: &tenure_core::key::SecretHash) -> Result<(), StoreError> {
                $crate::AccessStore::end_session(&self.$inner, token).await
            }
        }
    };
}

/// Implements [`WebhookStore`](crate::WebhookStore) by the store that `$inner` leads to.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_webhooks {
    ($type:ty, $inner:ident) => {
        #[async_trait::async_trait]
        impl $crate::WebhookStore for $type {
            async fn create_endpoint(
                &self,
                request: $crate::webhook::NewEndpoint,
            ) -> Result<$crate::webhook::EndpointRecord, StoreError> {
                $crate::WebhookStore::create_endpoint(&self.$inner, request).await
            }

            async fn list_endpoints(
                &self,
                filter: &$crate::webhook::EndpointFilter,
            ) -> Result<Vec<$crate::webhook::EndpointRecord>, StoreError> {
                $crate::WebhookStore::list_endpoints(&self.$inner, filter).await
            }

            async fn show_endpoint(
                &self,
                sight: &$crate::record::Sight,
                endpoint: tenure_core::EndpointId,
            ) -> Result<$crate::webhook::EndpointRecord, StoreError> {
                $crate::WebhookStore::show_endpoint(&self.$inner, sight, endpoint).await
            }

            async fn change_endpoint(
                &self,
                request: $crate::webhook::ChangeEndpoint,
            ) -> Result<$crate::webhook::EndpointRecord, StoreError> {
                $crate::WebhookStore::change_endpoint(&self.$inner, request).await
            }

            async fn remove_endpoint(&self, request: $crate::webhook::OperateEndpoint) -> Result<(), StoreError> {
                $crate::WebhookStore::remove_endpoint(&self.$inner, request).await
            }

            async fn ping_endpoint(&self, request: $crate::webhook::OperateEndpoint) -> Result<(), StoreError> {
                $crate::WebhookStore::ping_endpoint(&self.$inner, request).await
            }

            async fn find_cursor(&self) -> Result<$crate::webhook::Cursor, StoreError> {
                $crate::WebhookStore::find_cursor(&self.$inner).await
            }

            async fn list_subjects(
                &self,
                asked: Vec<(tenure_core::JobId, Option<tenure_core::LeaseNo>)>,
            ) -> Result<Vec<$crate::webhook::EventSubject>, StoreError> {
                $crate::WebhookStore::list_subjects(&self.$inner, asked).await
            }

            async fn put_deliveries(&self, request: $crate::webhook::PutDeliveries) -> Result<bool, StoreError> {
                $crate::WebhookStore::put_deliveries(&self.$inner, request).await
            }

            async fn list_deliveries(
                &self,
                filter: &$crate::webhook::DeliveryFilter,
            ) -> Result<Vec<$crate::webhook::DeliverySummary>, StoreError> {
                $crate::WebhookStore::list_deliveries(&self.$inner, filter).await
            }

            async fn show_delivery(
                &self,
                sight: &$crate::record::Sight,
                delivery: tenure_core::JobId,
            ) -> Result<$crate::webhook::DeliveryRecord, StoreError> {
                $crate::WebhookStore::show_delivery(&self.$inner, sight, delivery).await
            }

            async fn record_try(&self, request: $crate::webhook::RecordTry) -> Result<bool, StoreError> {
                $crate::WebhookStore::record_try(&self.$inner, request).await
            }

            async fn resend_deliveries(&self, request: $crate::webhook::ResendDeliveries) -> Result<u64, StoreError> {
                $crate::WebhookStore::resend_deliveries(&self.$inner, request).await
            }
        }
    };
}

/// Implements [`OperationStore`](crate::OperationStore) by the store that `$inner` leads to.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_operations {
    ($type:ty, $inner:ident) => {
        #[async_trait::async_trait]
        impl $crate::OperationStore for $type {
            async fn create_operation(
                &self,
                request: $crate::operation::NewOperation,
            ) -> Result<$crate::operation::OperationRecord, StoreError> {
                $crate::OperationStore::create_operation(&self.$inner, request).await
            }

            async fn list_operations(
                &self,
                filter: &$crate::operation::OperationFilter,
            ) -> Result<Vec<$crate::operation::OperationRecord>, StoreError> {
                $crate::OperationStore::list_operations(&self.$inner, filter).await
            }

            async fn show_operation(
                &self,
                sight: &$crate::record::Sight,
                operation: tenure_core::JobId,
            ) -> Result<$crate::operation::OperationRecord, StoreError> {
                $crate::OperationStore::show_operation(&self.$inner, sight, operation).await
            }

            async fn save_operation(&self, request: $crate::operation::SaveOperation) -> Result<bool, StoreError> {
                $crate::OperationStore::save_operation(&self.$inner, request).await
            }
        }
    };
}

/// Implements [`RollupStore`](crate::RollupStore) by the store that `$inner` leads to.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_rollups {
    ($type:ty, $inner:ident) => {
        #[async_trait::async_trait]
        impl $crate::RollupStore for $type {
            async fn fold_rollups(&self) -> Result<u64, StoreError> {
                $crate::RollupStore::fold_rollups(&self.$inner).await
            }

            async fn list_rollups(
                &self,
                filter: &$crate::rollup::RollupFilter,
            ) -> Result<Vec<$crate::rollup::Rollup>, StoreError> {
                $crate::RollupStore::list_rollups(&self.$inner, filter).await
            }

            async fn list_failing_gates(
                &self,
                sight: &$crate::record::Sight,
                since: tenure_core::Timestamp,
                limit: u32,
            ) -> Result<Vec<$crate::rollup::GateFailures>, StoreError> {
                $crate::RollupStore::list_failing_gates(&self.$inner, sight, since, limit).await
            }
        }
    };
}
