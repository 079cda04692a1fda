//! Rows and their values, as small as both databases allow.

use tenure_core::{DedupeKey, JobId, Json, RunId, Timestamp};

/// The values of one row, in the order of the sink's columns.
pub type Row = Vec<Value>;

/// A [`Row`] of anything that becomes a [`Value`]: `row![7, "ext_1", None::<i64>, 90]`.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { ::std::vec![$($crate::sink::Value::from($value)),*] };
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `bigint`, and any column it can be assigned to; `integer` on SQLite.
    Int,
    /// `double precision`; `real`.
    Float,
    /// `text`.
    Text,
    /// `boolean`; 0 or 1.
    Bool,
    /// `jsonb` or `json`, equal as `jsonb` is; `text` without spaces between its parts, equal by the byte.
    Json,
    /// `timestamptz`; microseconds since 1970 as an `integer`, as in Tenure's own tables.
    Time,
    /// `bytea`; `blob`.
    Bytes,
}

/// One value. `Null` goes into any column but those of the key and the strength.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// An integer.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// A text without NUL.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A document. Its `null` is a value, not the absence of one.
    Json(Json),
    /// A moment.
    Time(Timestamp),
    /// Bytes of any kind.
    Bytes(Vec<u8>),
}

impl Type {
    /// The word for it in a refusal.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Int => "an integer",
            Self::Float => "a float",
            Self::Text => "a text",
            Self::Bool => "true or false",
            Self::Json => "JSON",
            Self::Time => "a time",
            Self::Bytes => "bytes",
        }
    }
}

impl Value {
    /// What it is; `None` for null.
    pub const fn of(&self) -> Option<Type> {
        match self {
            Self::Null => None,
            Self::Int(_) => Some(Type::Int),
            Self::Float(_) => Some(Type::Float),
            Self::Text(_) => Some(Type::Text),
            Self::Bool(_) => Some(Type::Bool),
            Self::Json(_) => Some(Type::Json),
            Self::Time(_) => Some(Type::Time),
            Self::Bytes(_) => Some(Type::Bytes),
        }
    }

    /// As it is shown in a refusal.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::Text(value) => value.clone(),
            Self::Bool(value) => value.to_string(),
            Self::Json(value) => value.to_string(),
            Self::Time(value) => value.to_string(),
            Self::Bytes(value) => format!("{} bytes", value.len()),
        }
    }
}

/// What becomes a value by itself.
macro_rules! from {
    ($($given:ty => |$it:ident| $value:expr;)*) => {
        $(impl From<$given> for Value {
            fn from($it: $given) -> Self {
                $value
            }
        })*
    };
}

from! {
    i64 => |it| Self::Int(it);
    i32 => |it| Self::Int(it.into());
    u32 => |it| Self::Int(it.into());
    f64 => |it| Self::Float(it);
    String => |it| Self::Text(it);
    &str => |it| Self::Text(it.to_owned());
    bool => |it| Self::Bool(it);
    Json => |it| Self::Json(it);
    Timestamp => |it| Self::Time(it);
    Vec<u8> => |it| Self::Bytes(it);
    JobId => |it| Self::Text(it.to_string());
    RunId => |it| Self::Text(it.to_string());
    DedupeKey => |it| Self::Text(it.into());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(it: Option<T>) -> Self {
        it.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_made_of_plain_values() {
        let key = DedupeKey::external("1").unwrap();
        let row =
            crate::row![7, 7_i64, 7_u32, "a", key, 0.5, true, Json::null(), Timestamp::EPOCH, None::<i64>, Some("b")];
        let types: Vec<Option<Type>> = row.iter().map(Value::of).collect();
        let int = Some(Type::Int);
        let text = Some(Type::Text);
        let rest = [Some(Type::Float), Some(Type::Bool), Some(Type::Json), Some(Type::Time), None, text];
        assert_eq!(types, [[int, int, int, text, text].as_slice(), &rest].concat());
        assert_eq!(row[4], Value::Text("ext_1".into()));
    }
}
