//! Sinks: a page of rows goes into a table of the user's own, in their transaction, by one statement.
//!
//! A [`Sink`] describes the table once; [`Sink::upsert`] writes pages into it. Of rows with one key a single one stays:
//! first inside the page, then against what is there. The counts say what became of each row.
//!
//! ```
//! use tenure_store::sink::{Sink, Type};
//! # fn main() -> Result<(), tenure_core::Invalid> {
//! let prices = Sink::table("price_point")
//!     .key("source_id", Type::Int)
//!     .key("dedupe_key", Type::Text)
//!     .value("title", Type::Text)
//!     .value("cents", Type::Int)
//!     .keep_stronger("match_strength")?;
//! let rows = vec![tenure_store::row![7, "ext_1234", "Krugerrand 1974", 189_900, 90]];
//! // On Postgres: prices.upsert(&tx, rows).await?    On SQLite, inside of the closure: prices.upsert(tx, rows)?
//! # drop(rows); Ok(()) }
//! ```
//!
//! # Who stays
//! - [`keep_stronger`](SinkBuilder::keep_stronger): the row of greater strength; of equal ones the one that is there, or
//!   that came first. A row without a strength, written by somebody else, gives way.
//! - [`overwrite`](SinkBuilder::overwrite): the row that came last. One that equals what is there counts as kept and is
//!   not written, so that triggers and replicas hear nothing of it.
//!
//! Either way a page does what its rows would do one by one.
//!
//! # Why this SQL is put together
//! Statements of Tenure are files. Here the table and its columns are the user's, and no database takes names as
//! parameters: the text must be made of them. So every name is checked when the sink is described (`[a-z_][a-z0-9_]*`, at
//! most 63 bytes, a table may have a schema before it) and is quoted in the statement. Nothing else of a user is ever part
//! of a statement: values travel as parameters.

mod page;
mod row;

use tenure_core::Invalid;

use crate::error::StoreError;

pub use page::{Page, ROWS_MAX};
pub use row::{Row, Type, Value};

/// Longest name of a table or column; Postgres cuts longer ones.
const NAME_BYTES_MAX: usize = 63;
/// Most columns: a tuple of Postgres holds no more than about this many.
const COLUMNS_MAX: usize = 1_600;

/// A table that takes pages. Made by [`Sink::table`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    table: Vec<String>,
    columns: Vec<Column>,
    keeps: Keeps,
}

/// A column of a sink. A row has its values in the order in which the columns were named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Checked, not yet quoted.
    pub name: String,
    /// What it holds.
    pub holds: Type,
    /// Whether it is part of the key.
    pub is_key: bool,
}

/// Which of two rows with one key stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The one with the greater value in the last column.
    Stronger,
    /// The one that came last.
    Last,
}

/// What became of the rows of a page. The four add up to what was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Upserted {
    /// Were not there and are now.
    pub inserted: u64,
    /// Replaced what was there.
    pub updated: u64,
    /// Gave way to what was there.
    pub kept: u64,
    /// Gave way to another row of the same page.
    pub folded: u64,
}

/// A user's open transaction that can write a page, of any driver; see [`UserTx`](crate::UserTx) for its shape.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an open transaction that a sink can write in",
    label = "not a transaction",
    note = "on Postgres it is `&tx` of tokio-postgres or deadpool-postgres; on SQLite it is the `tx` that the closure of \
            `SqliteStore::transaction` gets"
)]
pub trait UpsertTx<S>: Sized {
    /// `T` itself where the driver blocks; a future of it where it does not.
    type Reply<T: Send + 'static>;

    /// Writes one page.
    fn upsert_rows(self, sink: &Sink, rows: Vec<Row>) -> Self::Reply<Result<Upserted, StoreError>>;
}

impl Sink {
    /// Begins a description: keys and values in the order of a row, then who stays.
    pub fn table(name: impl Into<String>) -> SinkBuilder {
        SinkBuilder { table: name.into(), columns: Vec::new() }
    }

    /// Writes one page in the caller's transaction, by one statement: all of its rows or none.
    ///
    /// Refused as `Invalid`: a row that does not fit the columns, text with a NUL, a number that is none, a key without
    /// a value, more than [`ROWS_MAX`] rows, and what the table's own checks refuse. `Schema`: the table is not as the
    /// sink says, or has no unique index on the key. `Conflict`: a row broke a rule about other rows, such as a second
    /// unique index or a foreign key. On Postgres the transaction can then only be rolled back.
    ///
    /// Rows are written in the order of their keys, so that pages that overlap wait for each other and never in a
    /// circle. That holds for one page in a transaction; who writes several orders them.
    pub fn upsert<S, X: UpsertTx<S>>(&self, tx: X, rows: Vec<Row>) -> X::Reply<Result<Upserted, StoreError>> {
        tx.upsert_rows(self, rows)
    }

    /// The table's name, the schema before it if there is one.
    pub fn table_name(&self) -> &[String] {
        &self.table
    }

    /// All columns, in the order of a row.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Which of two rows stays.
    pub fn keeps(&self) -> Keeps {
        self.keeps
    }
}

/// A sink that is being described.
#[derive(Debug, Clone)]
pub struct SinkBuilder {
    table: String,
    columns: Vec<(&'static str, Column)>,
}

impl SinkBuilder {
    /// A column of the key. The table has a unique index on exactly these. A key is an integer, a text, a time or yes
    /// or no; texts are one key only when they are the same to the byte.
    #[must_use]
    pub fn key(self, name: impl Into<String>, holds: Type) -> Self {
        self.column("key column", name.into(), holds, true)
    }

    /// A column that is replaced with its row.
    #[must_use]
    pub fn value(self, name: impl Into<String>, holds: Type) -> Self {
        self.column("value column", name.into(), holds, false)
    }

    /// The stronger row stays. The column is an integer, never null, and stands last in a row.
    pub fn keep_stronger(self, column: impl Into<String>) -> Result<Sink, Invalid> {
        self.column("strength column", column.into(), Type::Int, false).checked(Keeps::Stronger)
    }

    /// The later row stays.
    pub fn overwrite(self) -> Result<Sink, Invalid> {
        self.checked(Keeps::Last)
    }

    fn column(mut self, field: &'static str, name: String, holds: Type, is_key: bool) -> Self {
        self.columns.push((field, Column { name, holds, is_key }));
        self
    }

    fn checked(self, keeps: Keeps) -> Result<Sink, Invalid> {
        let table: Vec<String> = self.table.split('.').map(str::to_owned).collect();
        if table.len() > 2 || !table.iter().all(|name| is_name(name)) {
            let limit = "it is a name of a-z, 0-9 and _, at most 63 bytes, with a schema and a dot before it if wanted";
            return Err(Invalid::new("table", &self.table, limit));
        }
        for (at, (field, column)) in self.columns.iter().enumerate() {
            let refuse = |limit: &str| Err(Invalid::new(field, &column.name, limit));
            if !is_name(&column.name) {
                return refuse("it is a name of a-z, 0-9 and _ that does not begin with a digit, at most 63 bytes");
            }
            if self.columns[..at].iter().any(|(_, earlier)| earlier.name == column.name) {
                return refuse("a column is named once");
            }
            if column.is_key && matches!(column.holds, Type::Float | Type::Json | Type::Bytes) {
                return refuse("a key is an integer, a text, a time or yes or no");
            }
        }
        let columns: Vec<Column> = self.columns.into_iter().map(|(_, column)| column).collect();
        if !columns.iter().any(|column| column.is_key) || columns.len() > COLUMNS_MAX {
            let limit = format!("it has a key, and at most {COLUMNS_MAX} columns");
            return Err(Invalid::new("table", &self.table, limit));
        }
        Ok(Sink { table, columns, keeps })
    }
}

/// What needs no thought about quoting, folding or cutting in either database.
fn is_name(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_inner)
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> SinkBuilder {
        Sink::table("price_point").key("id", Type::Int).value("title", Type::Text)
    }

    #[test]
    fn a_bad_name_is_refused_by_its_field() {
        let long = "x".repeat(64);
        for bad in ["", "Price", "a b", "1a", "a\"b", "a'; drop table job; --", "a-b", "ä", "a\0", "a.b", &long] {
            let refused = [
                ("key column", prices().key(bad, Type::Int).overwrite()),
                ("value column", prices().value(bad, Type::Int).overwrite()),
                ("strength column", prices().keep_stronger(bad)),
            ];
            for (field, answer) in refused {
                assert_eq!(answer.unwrap_err().field, field, "{bad:?}");
            }
        }
        let long_table = format!("a.{long}");
        for bad in ["", ".", "a.", ".a", "a.b.c", "a.B", "a; b", "\"a\"", "pg_temp.a b", &long_table] {
            let refused = Sink::table(bad).key("id", Type::Int).overwrite().unwrap_err();
            assert_eq!(refused.field, "table", "{bad:?}");
        }
        let sink = Sink::table("shop.order").key("_id2", Type::Int).overwrite().unwrap();
        assert_eq!(sink.table_name(), ["shop", "order"]);
    }

    #[test]
    fn a_column_named_twice_a_loose_key_and_no_key_are_refused() {
        assert_eq!(prices().value("id", Type::Int).overwrite().unwrap_err().field, "value column");
        assert_eq!(prices().keep_stronger("title").unwrap_err().field, "strength column");
        for holds in [Type::Float, Type::Json, Type::Bytes] {
            assert_eq!(prices().key("k", holds).overwrite().unwrap_err().field, "key column");
        }
        let keyless = Sink::table("t").value("a", Type::Int).overwrite().unwrap_err();
        assert_eq!(keyless.to_string(), "table `t` is refused: it has a key, and at most 1600 columns");
    }
}
