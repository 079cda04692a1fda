//! The port's [`UserTx`] for a [`Transaction`]: it is answered at once.

use tenure_core::NewJob;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::{CompleteJob, UserTx};

use crate::store::SqliteStore;
use crate::transaction::Transaction;

impl UserTx<SqliteStore> for &Transaction<'_, '_> {
    type Reply<T: Send + 'static> = T;

    fn enqueue_jobs<T, F>(self, jobs: Vec<NewJob>, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<Vec<Enqueued>, StoreError>) -> T + Send + 'static,
    {
        then(self.enqueue(jobs))
    }

    fn complete_job<T, F>(self, request: CompleteJob, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
    {
        then(self.complete(&request))
    }

    fn advance_page<T, F>(self, request: AdvancePage, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
    {
        then(Transaction::advance_page(self, &request))
    }
}
