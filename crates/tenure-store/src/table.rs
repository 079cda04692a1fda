//! Rows of tables of the user's own, as a statement of theirs answers them, the same from both databases.
//!
//! The two differ in how they keep things: SQLite has no word for yes and no, for moments and for documents. So a value is
//! read as what the reader asks for, and refused where it cannot be that: `record.get::<bool>("enabled")?`.

use std::sync::Arc;

use tenure_core::{JobId, Json, Timestamp};

use crate::error::StoreError;
use crate::sink::Value;

/// One row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

/// What a column can be read as; `Option` of it where the column may be null.
pub trait FromValue: Sized {
    /// Reads a value; `None` when it is something else.
    fn from_value(value: &Value) -> Option<Self>;
}

impl Record {
    /// A row, for stores: as many values as columns.
    pub fn new(columns: Arc<[String]>, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// The column of this name. `Schema` when there is none, or when it holds something else.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T, StoreError> {
        let place = self.columns.iter().position(|name| name == column);
        let Some(value) = place.and_then(|place| self.values.get(place)) else {
            return Err(StoreError::Schema(format!(
                "no column `{column}` was asked for, only {}",
                self.columns.join(", ")
            )));
        };
        T::from_value(value).ok_or_else(|| {
            let found = value.of().map_or("null", |holds| holds.word());
            StoreError::Schema(format!("column `{column}` holds {found}, which is no {}", std::any::type_name::<T>()))
        })
    }

    /// The values with the names of their columns.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.columns.iter().map(String::as_str).zip(&self.values)
    }
}

/// How values are read.
macro_rules! from_value {
    ($($type:ty: $($value:pat => $it:expr),*;)*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $($value => $it,)*
                    _ => None,
                }
            }
        })*
    };
}

from_value! {
    i64: Value::Int(it) => Some(*it);
    i32: Value::Int(it) => i32::try_from(*it).ok();
    u16: Value::Int(it) => u16::try_from(*it).ok();
    u32: Value::Int(it) => u32::try_from(*it).ok();
    u64: Value::Int(it) => u64::try_from(*it).ok();
    f64: Value::Float(it) => Some(*it);
    String: Value::Text(it) => Some(it.clone()), Value::Json(it) => Some(it.as_str().to_owned());
    bool: Value::Bool(it) => Some(*it), Value::Int(0) => Some(false), Value::Int(1) => Some(true);
    Timestamp: Value::Time(it) => Some(*it), Value::Int(it) => Some(Timestamp::from_micros(*it));
    Json: Value::Json(it) => Some(it.clone()), Value::Text(it) => Json::parse("document", it.as_str()).ok();
    Vec<u8>: Value::Bytes(it) => Some(it.clone());
    JobId: Value::Text(it) => it.parse().ok();
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let columns: Arc<[String]> = ["id", "on", "at", "none"].map(str::to_owned).into();
        Record::new(columns, vec![Value::from(7), Value::Int(1), Value::Int(5), Value::Null])
    }

    #[test]
    fn a_value_is_read_as_what_is_asked_for() {
        let record = record();
        assert_eq!((record.get::<u32>("id").unwrap(), record.get::<i64>("id").unwrap()), (7, 7));
        assert!(record.get::<bool>("on").unwrap());
        assert_eq!(record.get::<Timestamp>("at").unwrap(), Timestamp::from_micros(5));
        assert_eq!(record.get::<Option<String>>("none").unwrap(), None);
        assert_eq!(record.get::<Option<i64>>("id").unwrap(), Some(7));
    }

    #[test]
    fn what_is_not_there_or_something_else_is_named() {
        let words = |answer: Result<String, StoreError>| answer.unwrap_err().to_string();
        assert_eq!(words(record().get("it")), "no column `it` was asked for, only id, on, at, none");
        assert_eq!(words(record().get("id")), "column `id` holds an integer, which is no alloc::string::String");
        assert!(record().get::<bool>("id").is_err());
        assert!(record().get::<i64>("none").is_err());
    }
}
