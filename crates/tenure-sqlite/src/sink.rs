//! A page of rows into a table of the user's, inside of their transaction.
//!
//! ```
//! use tenure_sqlite::{SqliteOptions, SqliteStore};
//! use tenure_store::sink::{Sink, Type, Upserted};
//! use tenure_store::{AdminStore, StoreError, row};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = SqliteStore::in_memory(SqliteOptions::default())?;
//! store.migrate().await?;
//! let sink = Sink::table("price").key("id", Type::Text).value("cents", Type::Int).keep_stronger("strength")?;
//! let upserted = store
//!     .transaction(move |tx| {
//!         let table = "create table price (id text primary key, cents integer, strength integer)";
//!         tx.connection().execute_batch(table).map_err(StoreError::unavailable)?;
//!         sink.upsert(tx, vec![row!["ext_1", 100, 50], row!["ext_1", 120, 90], row!["ext_2", 7, 1]])
//!     })
//!     .await?;
//! assert_eq!(upserted, Upserted { inserted: 2, updated: 0, kept: 0, folded: 1 });
//! # Ok::<(), StoreError>(()) }).unwrap();
//! ```
//!
//! The page is one parameter, a JSON array of rows, so one statement writes it however many rows it has. SQLite does not
//! tell an insert from an update, so the keys that are there are counted before, in the same transaction: nobody else
//! writes in between. The statements are put together of checked and quoted names; [`tenure_store::sink`] says why.

use tenure_core::json;
use tenure_store::StoreError;
use tenure_store::sink::{Column, Keeps, Page, Row, Sink, Type, UpsertTx, Upserted, Value};

use crate::fault::refused;
use crate::store::SqliteStore;
use crate::transaction::Transaction;

/// Writes one page in the user's transaction: [`Sink::upsert`] by another name.
pub fn upsert(tx: &Transaction<'_, '_>, sink: &Sink, rows: &[Row]) -> Result<Upserted, StoreError> {
    let conn = tx.open_tx()?.conn();
    let page = sink.page(rows)?;
    if page.rows.is_empty() {
        return Ok(Upserted::default());
    }
    let document = document(&page);
    let write = || {
        let known: i64 = conn.prepare_cached(&count_known(sink))?.query_row([&document], |row| row.get(0))?;
        let written = conn.prepare_cached(&statement(sink))?.execute([&document])?;
        Ok((known.unsigned_abs(), written as u64))
    };
    let (known, written) =
        write().map_err(|error| refused(&format!("table {}", sink.table_name().join(".")), error))?;
    let inserted = (page.rows.len() as u64).saturating_sub(known);
    let updated = written.saturating_sub(inserted);
    Ok(Upserted { inserted, updated, kept: known.saturating_sub(updated), folded: page.folded })
}

impl UpsertTx<SqliteStore> for &Transaction<'_, '_> {
    type Reply<T: Send + 'static> = T;

    fn upsert_rows(self, sink: &Sink, rows: Vec<Row>) -> Result<Upserted, StoreError> {
        upsert(self, sink, &rows)
    }
}

/// How many keys of the page are in the table.
fn count_known(sink: &Sink) -> String {
    let table = table(sink);
    let same: Vec<String> = (0..)
        .zip(sink.columns())
        .filter(|(_, column)| column.is_key)
        .map(|(place, column)| format!("target.{} = page.value ->> {place}", quoted(&column.name)))
        .collect();
    format!(
        "select count(*) from json_each(?1) as page where exists (select 1 from {table} as target where {})",
        same.join(" and ")
    )
}

/// Writes the page. `where true` is SQLite's own advice: without it `on conflict` reads like a join.
fn statement(sink: &Sink) -> String {
    let columns = sink.columns();
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let key: Vec<String> = columns.iter().filter(|column| column.is_key).map(|column| quoted(&column.name)).collect();
    let values: Vec<String> = (0..)
        .zip(columns)
        .map(|(place, column)| match column.holds {
            Type::Json => format!("json(page.value ->> {place})"),
            Type::Bytes => format!("unhex(page.value ->> {place})"),
            _ => format!("page.value ->> {place}"),
        })
        .collect();
    format!(
        "insert into {} as target ({}) select {} from json_each(?1) as page where true order by page.key \
         on conflict ({}) do {}",
        table(sink),
        names.join(", "),
        values.join(", "),
        key.join(", "),
        action(sink)
    )
}

/// What happens to a row whose key is there.
fn action(sink: &Sink) -> String {
    let rest: Vec<&Column> = sink.columns().iter().filter(|column| !column.is_key).collect();
    let Some(last) = rest.last() else {
        return "nothing".to_owned();
    };
    let sets: Vec<String> = rest.iter().map(|column| format!("{0} = excluded.{0}", quoted(&column.name))).collect();
    let condition = match sink.keeps() {
        Keeps::Stronger => format!("coalesce(excluded.{0} > target.{0}, true)", quoted(&last.name)),
        Keeps::Last => {
            let differs = rest.iter().map(|column| format!("target.{0} is not excluded.{0}", quoted(&column.name)));
            differs.collect::<Vec<_>>().join(" or ")
        }
    };
    format!("update set {} where {condition}", sets.join(", "))
}

fn table(sink: &Sink) -> String {
    sink.table_name().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".")
}

/// The name was checked and has no quote inside.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// The page as an array of arrays.
fn document(page: &Page<'_>) -> String {
    let mut document = String::from("[");
    for (no, row) in page.rows.iter().enumerate() {
        document.push_str(if no == 0 { "[" } else { ",[" });
        for (place, value) in row.iter().enumerate() {
            if place > 0 {
                document.push(',');
            }
            document.push_str(&to_json(value));
        }
        document.push(']');
    }
    document.push(']');
    document
}

fn to_json(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(value) => value.to_string(),
        // With a point or an exponent always, so that it is read as a float; the shortest text that means this very one.
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) => json::quote(value),
        Value::Bool(value) => value.to_string(),
        // A document is text on its way, for JSON's own null must not become nothing.
        Value::Json(value) => json::quote(value.as_str()),
        Value::Time(value) => value.as_micros().to_string(),
        Value::Bytes(value) => format!("\"{}\"", hex(value)),
    }
}

/// JSON has no bytes.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink() -> Sink {
        let begun = Sink::table("main.order").key("group", Type::Int).value("doc", Type::Json);
        begun.key("user", Type::Text).keep_stronger("s").unwrap()
    }

    #[test]
    fn a_statement_has_quoted_names_and_no_value() {
        let written = statement(&sink());
        for part in [
            r#"insert into "main"."order" as target ("group", "doc", "user", "s") "#,
            r#"select page.value ->> 0, json(page.value ->> 1), page.value ->> 2, page.value ->> 3 "#,
            r#"on conflict ("group", "user") do update set "doc" = excluded."doc", "s" = excluded."s" "#,
            r#"where coalesce(excluded."s" > target."s", true)"#,
        ] {
            assert!(written.contains(part), "{part}\n{written}");
        }
    }

    #[test]
    fn keys_that_are_there_are_found_by_their_index() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        let table =
            r#"create table "order" ("group" integer, "user" text, doc text, s integer, unique ("group", "user"))"#;
        conn.execute_batch(table).unwrap();
        let mut explain = conn.prepare(&format!("explain query plan {}", count_known(&sink()))).unwrap();
        let plan: Vec<String> = explain.query_map(["[]"], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        assert!(plan.iter().any(|step| step.ends_with("(group=? AND user=?)")), "{plan:?}");
    }
}
