//! One open transaction as the verbs see it: statements by their text, the time, and a word for sleepers.

use std::cell::Cell;

use rusqlite::{CachedStatement, Connection, Row, ToSql};
use tenure_core::Timestamp;

use crate::fault::Result;

/// Named parameters of a statement.
pub(crate) type Params<'p> = &'p [(&'p str, &'p dyn ToSql)];

/// An open transaction. It is committed or rolled back by whoever opened it.
pub(crate) struct Tx<'c> {
    conn: &'c Connection,
    /// The store's clock when the verb's turn began.
    pub(crate) now: Timestamp,
    woke: Cell<bool>,
    #[cfg(feature = "mutants")]
    mutation: Option<crate::Mutation>,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(
        conn: &'c Connection,
        now: Timestamp,
        #[cfg(feature = "mutants")] mutation: Option<crate::Mutation>,
    ) -> Self {
        Self {
            conn,
            now,
            woke: Cell::new(false),
            #[cfg(feature = "mutants")]
            mutation,
        }
    }

    /// The connection under it.
    pub(crate) fn conn(&self) -> &'c Connection {
        self.conn
    }

    /// Sleepers look for work once this is committed.
    pub(crate) fn wake(&self) {
        self.woke.set(true);
    }

    /// Whether [`wake`](Self::wake) was called.
    pub(crate) fn woke(&self) -> bool {
        self.woke.get()
    }

    /// The prepared statement of this text. Loops take it once: finding it costs about as much as running it.
    pub(crate) fn statement(&self, sql: &'static str) -> Result<CachedStatement<'c>> {
        #[cfg(feature = "mutants")]
        if let Some(mutation) = self.mutation
            && sql.contains(mutation.find)
        {
            return Ok(self.conn.prepare_cached(&sql.replace(mutation.find, mutation.replace))?);
        }
        Ok(self.conn.prepare_cached(sql)?)
    }

    /// Runs a statement; answers how many rows it changed.
    pub(crate) fn execute(&self, sql: &'static str, params: Params<'_>) -> Result<usize> {
        Ok(self.statement(sql)?.execute(params)?)
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &'static str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params)?;
        let row = rows.next()?;
        row.map(read).transpose()
    }

    /// Every row.
    pub(crate) fn all<T>(
        &self,
        sql: &'static str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}
