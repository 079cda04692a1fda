//! The port's [`UserTx`] for a user's transaction of tokio-postgres, deadpool-postgres and sqlx.

use std::pin::Pin;

use tenure_core::NewJob;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::{CompleteJob, UserTx};

use crate::store::PgStore;

/// What these drivers answer: nothing before it is awaited.
type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One transaction of one driver; `$at` leads from it to what the two verbs take.
macro_rules! user_tx {
    ($($transaction:ty, $verbs:path, |$tx:ident| $at:expr;)*) => {$(
        impl<'a> UserTx<PgStore> for $transaction {
            type Reply<T: Send + 'static> = Reply<'a, T>;

            fn enqueue_jobs<T, F>(self, jobs: Vec<NewJob>, then: F) -> Reply<'a, T>
            where
                T: Send + 'static,
                F: FnOnce(Result<Vec<Enqueued>, StoreError>) -> T + Send + 'static,
            {
                use $verbs as verbs;
                let $tx = self;
                Box::pin(async move { then(verbs::enqueue_within($at, &jobs).await) })
            }

            fn complete_job<T, F>(self, request: CompleteJob, then: F) -> Reply<'a, T>
            where
                T: Send + 'static,
                F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
            {
                use $verbs as verbs;
                let $tx = self;
                Box::pin(async move { then(verbs::complete_in($at, &request).await) })
            }

            fn advance_page<T, F>(self, request: AdvancePage, then: F) -> Reply<'a, T>
            where
                T: Send + 'static,
                F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
            {
                use $verbs as verbs;
                let $tx = self;
                Box::pin(async move { then(verbs::advance_page($at, &request).await) })
            }
        }
    )*};
}

user_tx! {
    &'a tokio_postgres::Transaction<'_>, crate::tx, |tx| tx;
    &'a mut tokio_postgres::Transaction<'_>, crate::tx, |tx| &*tx;
    &'a deadpool_postgres::Transaction<'_>, crate::tx, |tx| &**tx;
    &'a mut deadpool_postgres::Transaction<'_>, crate::tx, |tx| &**tx;
}

#[cfg(feature = "sqlx")]
user_tx! {
    &'a mut sqlx::PgConnection, crate::sqlx_tx, |tx| tx;
    &'a mut sqlx::Transaction<'_, sqlx::Postgres>, crate::sqlx_tx, |tx| &mut **tx;
}
