//! A page of rows into a table of the user's, inside of their transaction: one statement, one round trip.
//!
//! ```no_run
//! # async fn f(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use tenure_store::sink::{Sink, Type};
//!
//! let sink = Sink::table("price_point").key("id", Type::Text).value("cents", Type::Int).keep_stronger("strength")?;
//! let tx = client.transaction().await?;
//! let upserted = sink.upsert(&tx, vec![tenure_store::row!["ext_1", 189_900, 90]]).await?;
//! tx.commit().await?;
//! println!("{} new, {} better than before", upserted.inserted, upserted.updated);
//! # Ok(()) }
//! ```
//!
//! Columns travel as arrays, so a page is as many parameters as the table has columns, however many rows it has. The
//! statement is put together of checked and quoted names; [`tenure_store::sink`] says why. A row that is updated is locked
//! first, which is how its `xmax` tells it from one that is new. A partitioned table shows no `xmax` and is refused as
//! `Schema`; its partitions are tables like others.

use std::pin::Pin;

use tenure_core::Invalid;
use tenure_store::StoreError;
use tenure_store::sink::{Column, Keeps, Page, Row, Sink, Type as Holds, UpsertTx, Upserted, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::error;
use crate::store::PgStore;
use crate::value::{Moment, get};

/// Writes one page in the caller's transaction, as [`Sink::upsert`] does for those who have the client only by its trait.
pub async fn upsert(tx: &impl GenericClient, sink: &Sink, rows: &[Row]) -> Result<Upserted, StoreError> {
    let page = sink.page(rows)?;
    if page.rows.is_empty() {
        return Ok(Upserted::default());
    }
    let arrays: Vec<Array<'_>> =
        sink.columns().iter().enumerate().map(|(place, column)| Array::new(column.holds, &page, place)).collect();
    let params: Vec<Param<'_>> = arrays.iter().map(Array::param).collect();
    let answer = tx.query_typed(&statement(sink), &params).await.map_err(|error| refused(sink, error))?;
    let [row] = answer.as_slice() else {
        return Err(StoreError::Corrupt(format!("a count came in {} rows", answer.len())));
    };
    let count = |column: &str| get::<i64>(row, column).map(i64::unsigned_abs);
    let (inserted, updated) = (count("inserted")?, count("updated")?);
    let kept = (page.rows.len() as u64).saturating_sub(inserted + updated);
    Ok(Upserted { inserted, updated, kept, folded: page.folded })
}

/// One transaction of one driver; `$at` leads from it to the client.
macro_rules! upsert_tx {
    ($($transaction:ty, |$tx:ident| $at:expr;)*) => {$(
        impl<'a> UpsertTx<PgStore> for $transaction {
            type Reply<T: Send + 'static> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

            fn upsert_rows(self, sink: &Sink, rows: Vec<Row>) -> Self::Reply<Result<Upserted, StoreError>> {
                let ($tx, sink) = (self, sink.clone());
                Box::pin(async move { upsert($at, &sink, &rows).await })
            }
        }
    )*};
}

upsert_tx! {
    &'a tokio_postgres::Transaction<'_>, |tx| tx;
    &'a mut tokio_postgres::Transaction<'_>, |tx| &*tx;
    &'a deadpool_postgres::Transaction<'_>, |tx| &**tx;
    &'a mut deadpool_postgres::Transaction<'_>, |tx| &**tx;
}

/// The statement of this sink. Inside of it a page's columns are `c1`, `c2` …, so no name of the user's meets ours.
fn statement(sink: &Sink) -> String {
    let columns = sink.columns();
    let each = |part: &dyn Fn(usize, &Column) -> String| {
        (1..).zip(columns).map(|(no, column)| part(no, column)).collect::<Vec<_>>().join(", ")
    };
    let table = sink.table_name().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".");
    let names = each(&|_, column| quoted(&column.name));
    let arrays = each(&|no, column| format!("${no}::{}[]", travels_as(column.holds)));
    let page = each(&|no, _| format!("c{no}"));
    let values =
        each(&|no, column| if column.holds == Holds::Json { format!("c{no}::jsonb") } else { format!("c{no}") });
    let key: Vec<String> = columns.iter().filter(|column| column.is_key).map(|column| quoted(&column.name)).collect();
    format!(
        "with written as (\
           insert into {table} as target ({names}) \
           select {values} from unnest({arrays}) with ordinality as page ({page}, place) order by place \
           on conflict ({key}) do {action} \
           returning target.xmax = 0 as inserted\
         ) \
         select count(*) filter (where inserted) as inserted, count(*) filter (where not inserted) as updated from written",
        key = key.join(", "),
        action = action(sink),
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
            let differs = rest.iter().map(|column| {
                // `json` cannot be compared, `jsonb` can.
                let cast = if column.holds == Holds::Json { "::jsonb" } else { "" };
                format!("target.{0}{cast} is distinct from excluded.{0}{cast}", quoted(&column.name))
            });
            differs.collect::<Vec<_>>().join(" or ")
        }
    };
    format!("update set {} where {condition}", sets.join(", "))
}

/// The name was checked and has no quote inside.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

const fn travels_as(holds: Holds) -> &'static str {
    match holds {
        Holds::Int => "bigint",
        Holds::Float => "double precision",
        Holds::Text | Holds::Json => "text",
        Holds::Bool => "boolean",
        Holds::Time => "timestamptz",
        Holds::Bytes => "bytea",
    }
}

/// One column of a page.
enum Array<'r> {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<&'r str>>),
    Bool(Vec<Option<bool>>),
    Time(Vec<Option<Moment>>),
    Bytes(Vec<Option<&'r [u8]>>),
}

impl<'r> Array<'r> {
    /// The page was checked: what is not of the column's type is null.
    fn new(holds: Holds, page: &Page<'r>, place: usize) -> Self {
        macro_rules! array {
            ($array:ident, $($value:pat => $it:expr),*) => {
                Self::$array(page.rows.iter().map(|row| match &row[place] { $($value => Some($it),)* _ => None }).collect())
            };
        }
        match holds {
            Holds::Int => array!(Int, Value::Int(it) => *it),
            Holds::Float => array!(Float, Value::Float(it) => *it),
            Holds::Text | Holds::Json => array!(Text, Value::Text(it) => it.as_str(), Value::Json(it) => it.as_str()),
            Holds::Bool => array!(Bool, Value::Bool(it) => *it),
            Holds::Time => array!(Time, Value::Time(it) => Moment(*it)),
            Holds::Bytes => array!(Bytes, Value::Bytes(it) => it.as_slice()),
        }
    }

    fn param(&self) -> Param<'_> {
        match self {
            Self::Int(array) => (array, Type::INT8_ARRAY),
            Self::Float(array) => (array, Type::FLOAT8_ARRAY),
            Self::Text(array) => (array, Type::TEXT_ARRAY),
            Self::Bool(array) => (array, Type::BOOL_ARRAY),
            Self::Time(array) => (array, Type::TIMESTAMPTZ_ARRAY),
            Self::Bytes(array) => (array, Type::BYTEA_ARRAY),
        }
    }
}

/// What the server says of a table that is not ours.
fn refused(sink: &Sink, error: tokio_postgres::Error) -> StoreError {
    let table = format!("table {}", sink.table_name().join("."));
    match error.as_db_error() {
        // Two keys that differ here are one there: `citext`, `char(n)`, a collation that ignores case.
        Some(said) if said.code().code() == "21000" => StoreError::Invalid(Invalid::new("key", table, said.message())),
        _ => error::refused(&table, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_quoted_names_and_no_value() {
        let sink = Sink::table("shop.order").key("user", Holds::Int).value("doc", Holds::Json);
        let last = statement(&sink.clone().overwrite().unwrap());
        for part in [
            r#"insert into "shop"."order" as target ("user", "doc") select c1, c2::jsonb "#,
            r#"from unnest($1::bigint[], $2::text[]) with ordinality as page (c1, c2, place) order by place "#,
            r#"on conflict ("user") do update set "doc" = excluded."doc" "#,
            r#"where target."doc"::jsonb is distinct from excluded."doc"::jsonb returning"#,
        ] {
            assert!(last.contains(part), "{part}\n{last}");
        }
        let stronger = statement(&sink.keep_stronger("s").unwrap());
        assert!(
            stronger.contains(r#""s" = excluded."s" where coalesce(excluded."s" > target."s", true) "#),
            "{stronger}"
        );
        let keys = statement(&Sink::table("t").key("k", Holds::Text).overwrite().unwrap());
        assert!(keys.contains(r#"on conflict ("k") do nothing returning"#), "{keys}");
    }
}
