//! Roles with few rights, and what row-level security lets a tenant see (docs/SECURITY.md).
//!
//! Not a migration: roles belong to the cluster, and who may make them is seldom who may migrate. Once installed, each
//! migration binds them anew, so that what it adds is theirs as well.

use std::time::Duration;

use tenure_store::StoreError;
use tenure_store::record::SecondWall;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::call::begin;
use crate::error::{is_locked_out, is_retryable, translate};
use crate::migrate::{LOCK_WAIT_MS, MIGRATE_LOCK, TRIES};
use crate::pool::Desk;
use crate::store::PgStore;

const CREATE: &str = include_str!("sql/create_roles.sql");
const BIND: &str = include_str!("sql/bind_roles.sql");

/// Everything that [`PgStore::install_roles`] runs, for whoever wants to read it first or has it run by others.
pub fn text() -> String {
    format!("begin;\n{CREATE}\n{BIND}\ncommit;\n")
}

impl PgStore {
    /// Makes the roles and binds them; answers whether the second wall stands for this user now. It may be run twice, and
    /// by two at once. A store that was opened before does not use the wall.
    ///
    /// `Schema` when the schema is not there, or when a right is missing.
    pub async fn install_roles(&self) -> Result<SecondWall, StoreError> {
        self.bind(&[CREATE, BIND]).await?;
        self.look_at_wall().await
    }

    /// Binds the roles to what a migration has added, where they are installed.
    pub(crate) async fn bind_again(&self) -> Result<(), StoreError> {
        let bound = self.look_at_wall().await? != SecondWall::Missing(crate::wall::NOT_INSTALLED);
        if bound { self.bind(&[BIND]).await } else { Ok(()) }
    }

    /// In one transaction, behind whoever migrates; what is not had within three seconds lets everybody pass first.
    async fn bind(&self, texts: &[&str]) -> Result<(), StoreError> {
        let mut connection = self.pools().get(Desk::Long).await?;
        let settings = self.local_settings(Desk::Long);
        for attempt in 1.. {
            let whole = async {
                let tx = begin(&mut connection, settings.as_deref()).await?;
                tx.query_typed("select pg_advisory_xact_lock($1)", &[(&MIGRATE_LOCK, Type::INT8)]).await?;
                tx.batch_execute(&format!(
                    "set local lock_timeout = {LOCK_WAIT_MS}; set local client_min_messages = warning"
                ))
                .await?;
                for text in texts {
                    tx.batch_execute(text).await?;
                }
                tx.commit().await
            };
            match whole.await {
                Err(error) if may_try_again(&error) && attempt < TRIES => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(explain(error)),
                Ok(()) => break,
            }
        }
        Ok(())
    }
}

/// A table's lock was not had, or two transactions waited for each other's, or two databases of one cluster have entered rights of one role at the same time.
fn may_try_again(error: &tokio_postgres::Error) -> bool {
    is_locked_out(error)
        || is_retryable(error)
        || error.as_db_error().is_some_and(|said| said.message().contains("concurrently"))
}

/// A right that is missing is named by the server; the way out is ours to say.
fn explain(error: tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(said) if *said.code() == SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Schema(format!(
            "the roles cannot be installed: {}. It needs the owner of the schema tenure, and CREATEROLE as long as roles are missing: \
             let a superuser run what `tenure migrate dry-run --roles` prints",
            said.message()
        )),
        _ => translate(error),
    }
}
