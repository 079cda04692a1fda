//! What can be used as a store.

use std::sync::Arc;

use crate::store::Store;

/// What can be used as a store by clients and workers: each store itself, or one that is shared already.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "a store is a `PgStore`, a `SqliteStore` or an `Arc<dyn Store>`, or a reference to one"
)]
pub trait IntoStore {
    /// The shared handle.
    fn into_store(self) -> Arc<dyn Store>;
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl IntoStore for &Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::clone(self)
    }
}
