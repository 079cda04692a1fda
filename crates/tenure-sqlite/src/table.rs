//! Statements of the user's own, in their transaction, with the values that both stores know.
//!
//! Parameters are written as Postgres has them, `$1`, `$2` …, each as often as wanted, so that one text serves both.

use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};
use tenure_store::StoreError;
use tenure_store::sink::Value;
use tenure_store::table::Record;

use crate::fault::refused;
use crate::transaction::Transaction;

/// What a refusal names: a statement has no name, and its text may be long.
const WHAT: &str = "a statement";

impl Transaction<'_, '_> {
    /// Runs a statement; answers how many rows it changed. `Conflict` when a row broke a rule about other rows, `Invalid`
    /// for what a table's checks refuse, `Schema` for a statement that does not fit the database.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, StoreError> {
        let mut statement = self.prepared(sql, params)?;
        statement.raw_execute().map(|changed| changed as u64).map_err(|error| refused(WHAT, error))
    }

    /// Runs a statement that answers rows.
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Record>, StoreError> {
        let mut statement = self.prepared(sql, params)?;
        let columns: Arc<[String]> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.raw_query();
        let mut records = Vec::new();
        while let Some(row) = rows.next().map_err(|error| refused(WHAT, error))? {
            let values = (0..columns.len()).map(|place| value(&columns[place], row.get_ref(place)));
            records.push(Record::new(Arc::clone(&columns), values.collect::<Result<_, _>>()?));
        }
        Ok(records)
    }

    /// Runs several statements without parameters, such as those that make tables.
    pub fn execute_all(&self, sql: &str) -> Result<(), StoreError> {
        self.open_tx()?.conn().execute_batch(sql).map_err(|error| refused(WHAT, error))
    }

    fn prepared(&self, sql: &str, params: &[Value]) -> Result<rusqlite::CachedStatement<'_>, StoreError> {
        let mut statement = self.open_tx()?.conn().prepare_cached(sql).map_err(|error| refused(WHAT, error))?;
        bind(&mut statement, params)?;
        Ok(statement)
    }
}

/// Gives each parameter its value, by its number.
fn bind(statement: &mut Statement<'_>, params: &[Value]) -> Result<(), StoreError> {
    let mut highest = 0;
    for place in 1..=statement.parameter_count() {
        let name = statement.parameter_name(place).unwrap_or("?").to_owned();
        let number: usize = name.strip_prefix('$').and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let Some(value) = number.checked_sub(1).and_then(|at| params.get(at)) else {
            let given = params.len();
            return Err(StoreError::Schema(format!("parameter {name} has no value: {given} were given, from $1 on")));
        };
        highest = highest.max(number);
        statement.raw_bind_parameter(place, Param(value)).map_err(|error| refused(WHAT, error))?;
    }
    match highest == params.len() {
        true => Ok(()),
        false => {
            Err(StoreError::Schema(format!("a statement has {highest} parameters and was given {}", params.len())))
        }
    }
}

/// As the sink writes them: yes is 1, a moment is its microseconds, a document its text.
struct Param<'v>(&'v Value);

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(it) => ValueRef::Integer(*it),
            Value::Float(it) => ValueRef::Real(*it),
            Value::Text(it) => ValueRef::Text(it.as_bytes()),
            Value::Bool(it) => ValueRef::Integer((*it).into()),
            Value::Json(it) => ValueRef::Text(it.as_str().as_bytes()),
            Value::Time(it) => ValueRef::Integer(it.as_micros()),
            Value::Bytes(it) => ValueRef::Blob(it),
        }))
    }
}

fn value(column: &str, found: rusqlite::Result<ValueRef<'_>>) -> Result<Value, StoreError> {
    Ok(match found.map_err(|error| refused(WHAT, error))? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(it) => Value::Int(it),
        ValueRef::Real(it) => Value::Float(it),
        ValueRef::Text(it) => match std::str::from_utf8(it) {
            Ok(text) => Value::from(text),
            Err(_) => return Err(StoreError::Corrupt(format!("column `{column}` holds a text that is no UTF-8"))),
        },
        ValueRef::Blob(it) => Value::Bytes(it.to_vec()),
    })
}
