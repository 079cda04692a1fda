//! Statements of the user's own with the values that both stores know; [`crate::own`] runs them.
//!
//! The server says what each parameter is to be (`$1` is a `uuid` where it is compared with one), so a text goes into a
//! `uuid` or a `jsonb` as it is, and an integer into whatever integer the column is.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::GenericClient;
use tenure_core::Json;
use tenure_store::StoreError;
use tenure_store::sink::Value;
use tenure_store::table::Record;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use crate::error::refused;
use crate::value::{Moment, get, time};

/// What a refusal names: a statement has no name, and its text may be long.
const WHAT: &str = "a statement";

/// Runs a statement; answers how many rows it changed.
pub(crate) async fn execute(
    tx: &impl GenericClient,
    sql: &str,
    params: &[Value],
    is_pooled: bool,
) -> Result<u64, StoreError> {
    let statement = prepare(tx, sql, is_pooled).await?;
    check_count(&statement, params)?;
    tx.execute_raw(&statement, params.iter().map(Param)).await.map_err(refused_statement)
}

/// Runs a statement that answers rows.
pub(crate) async fn query(
    tx: &impl GenericClient,
    sql: &str,
    params: &[Value],
    is_pooled: bool,
) -> Result<Vec<Record>, StoreError> {
    let statement = prepare(tx, sql, is_pooled).await?;
    check_count(&statement, params)?;
    let params: Vec<Param<'_>> = params.iter().map(Param).collect();
    let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| param as _).collect();
    let rows = tx.query(&statement, &params).await.map_err(refused_statement)?;
    let columns: Arc<[String]> = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    rows.iter().map(|row| Ok(Record::new(Arc::clone(&columns), values(row)?))).collect()
}

/// Runs several statements without parameters.
pub(crate) async fn execute_all(tx: &impl GenericClient, sql: &str) -> Result<(), StoreError> {
    tx.batch_execute(sql).await.map_err(refused_statement)
}

/// What the server says of a statement of the user's own, and what does not fit one.
pub(crate) fn refused_statement(error: tokio_postgres::Error) -> StoreError {
    match error.source().and_then(|source| source.downcast_ref::<Misfit>()) {
        Some(misfit) => StoreError::Schema(format!("{WHAT} does not fit the database: {misfit}")),
        None => refused(WHAT, error),
    }
}

/// Behind a pooler a name lasts until the transaction ends, and is gone with its value.
async fn prepare(tx: &impl GenericClient, sql: &str, is_pooled: bool) -> Result<Statement, StoreError> {
    let prepared = if is_pooled { tx.prepare(sql).await } else { tx.prepare_cached(sql).await };
    prepared.map_err(refused_statement)
}

/// The driver would panic.
fn check_count(statement: &Statement, params: &[Value]) -> Result<(), StoreError> {
    let asked = statement.params().len();
    match params.len() == asked {
        true => Ok(()),
        false => Err(StoreError::Schema(format!("a statement has {asked} parameters and was given {}", params.len()))),
    }
}

fn values(row: &Row) -> Result<Vec<Value>, StoreError> {
    (0..row.len()).map(|place| value(row, place)).collect()
}

fn value(row: &Row, place: usize) -> Result<Value, StoreError> {
    let column = &row.columns()[place];
    let some = |it: Option<Value>| it.unwrap_or(Value::Null);
    Ok(match *column.type_() {
        Type::BOOL => some(get::<Option<bool>>(row, place)?.map(Value::from)),
        Type::INT2 => some(get::<Option<i16>>(row, place)?.map(|it| Value::Int(it.into()))),
        Type::INT4 => some(get::<Option<i32>>(row, place)?.map(Value::from)),
        Type::INT8 => some(get::<Option<i64>>(row, place)?.map(Value::from)),
        Type::FLOAT4 => some(get::<Option<f32>>(row, place)?.map(|it| Value::Float(it.into()))),
        Type::FLOAT8 => some(get::<Option<f64>>(row, place)?.map(Value::from)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => {
            some(get::<Option<String>>(row, place)?.map(Value::from))
        }
        Type::UUID => some(get::<Option<Uuid>>(row, place)?.map(|it| Value::Text(it.to_string()))),
        Type::JSON | Type::JSONB => some(get::<Option<Document>>(row, place)?.map(|it| Value::Json(it.0))),
        Type::BYTEA => some(get::<Option<Vec<u8>>>(row, place)?.map(Value::from)),
        Type::TIMESTAMPTZ => match get::<Option<Moment>>(row, place)? {
            Some(_) => Value::Time(time(row, place)?),
            None => Value::Null,
        },
        ref other => {
            let name = column.name();
            return Err(StoreError::Schema(format!("column `{name}` is of type {other}: cast it, to bigint or text")));
        }
    })
}

/// A JSON document as it travels: `jsonb` has a version before its text.
struct Document(Json);

impl<'a> tokio_postgres::types::FromSql<'a> for Document {
    fn from_sql(holds: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text = match (holds, raw) {
            (&Type::JSONB, [1, text @ ..]) => text,
            (&Type::JSONB, _) => return Err("a version of jsonb that is not known".into()),
            _ => raw,
        };
        Ok(Self(Json::from_store(std::str::from_utf8(text)?)))
    }
    tokio_postgres::types::accepts!(JSON, JSONB);
}

/// A value on its way to whatever the server wants it to be.
#[derive(Debug)]
struct Param<'v>(&'v Value);

/// A value that a parameter cannot be.
#[derive(Debug)]
struct Misfit(String, Type);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was given where it wants a {}", self.0, self.1)
    }
}

impl Error for Misfit {}

impl ToSql for Param<'_> {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let misfit = |what: &dyn fmt::Display| Misfit(what.to_string(), wanted.clone());
        match (self.0, wanted) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Int(it), &Type::INT2) => i16::try_from(*it).map_err(|_| misfit(it))?.to_sql(wanted, out),
            (Value::Int(it), &Type::INT4) => i32::try_from(*it).map_err(|_| misfit(it))?.to_sql(wanted, out),
            (Value::Int(it), &Type::INT8) => it.to_sql(wanted, out),
            // As SQLite does it.
            (Value::Int(it), &Type::FLOAT8) => (*it as f64).to_sql(wanted, out),
            (Value::Int(_), _) => Err(misfit(&"an integer").into()),
            (Value::Float(it), &Type::FLOAT8) => it.to_sql(wanted, out),
            (Value::Float(_), _) => Err(misfit(&"a float").into()),
            (Value::Text(it), &Type::UUID) => {
                it.parse::<Uuid>().map_err(|_| misfit(&"another text"))?.to_sql(wanted, out)
            }
            (Value::Text(it), &Type::JSON | &Type::JSONB) => document(it, wanted, out),
            (Value::Text(it), _) if <&str as ToSql>::accepts(wanted) => it.as_str().to_sql(wanted, out),
            (Value::Text(_), _) => Err(misfit(&"a text").into()),
            (Value::Bool(it), &Type::BOOL) => it.to_sql(wanted, out),
            (Value::Bool(_), _) => Err(misfit(&"yes or no").into()),
            (Value::Json(it), &Type::JSON | &Type::JSONB) => document(it.as_str(), wanted, out),
            (Value::Json(it), &Type::TEXT) => it.as_str().to_sql(wanted, out),
            (Value::Json(_), _) => Err(misfit(&"a document").into()),
            (Value::Time(it), &Type::TIMESTAMPTZ) => Moment(*it).to_sql(wanted, out),
            (Value::Time(_), _) => Err(misfit(&"a moment").into()),
            (Value::Bytes(it), &Type::BYTEA) => it.to_sql(wanted, out),
            (Value::Bytes(_), _) => Err(misfit(&"bytes").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true // decided by the value
    }

    to_sql_checked!();
}

fn document(text: &str, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    if *wanted == Type::JSONB {
        out.extend_from_slice(&[1]);
    }
    out.extend_from_slice(text.as_bytes());
    Ok(IsNull::No)
}
