//! [`Value`]: what rules compare, with its type. Values of two types never meet: that is checked before.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use tenure::core::dedupe::Day;

use crate::canonical::INTEGER_MAX;
use crate::decimal::Decimal;

/// Longest text, in characters.
pub const TEXT_CHARS_MAX: usize = 500;

/// What can be compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A whole number up to 2^53; in JSON a number without a fraction.
    Int,
    /// An exact decimal; in JSON text such as `"12.5"`, or a number without a fraction.
    Decimal,
    /// Text, compared letter by letter.
    Text,
    /// `true` or `false`.
    Bool,
    /// A day; in JSON text such as `"2027-02-18"`.
    Date,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// An exact decimal.
    Decimal(Decimal),
    /// Text.
    Text(String),
    /// A truth.
    Bool(bool),
    /// A day.
    Date(Day),
}

impl Type {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Decimal => "decimal",
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Date => "date",
        }
    }

    /// Whether one of it is less than another. Text has as many orders as there are languages: none here.
    pub const fn is_ordered(self) -> bool {
        match self {
            Self::Int | Self::Decimal | Self::Date => true,
            Self::Text | Self::Bool => false,
        }
    }

    /// How one is written in a rule.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Int => "a whole number up to 2^53 without quotes, such as 500",
            Self::Decimal => "a decimal in quotes, such as \"12.5\"",
            Self::Text => "text in quotes",
            Self::Bool => "true or false without quotes",
            Self::Date => "a day in quotes, such as \"2027-02-18\"",
        }
    }

    /// Reads one of this type, if `json` is one.
    pub fn read(self, json: &Json) -> Option<Value> {
        match (self, json) {
            (Self::Int, Json::Number(_)) => whole(json).map(Value::Int),
            (Self::Decimal, Json::Number(_)) => whole(json).and_then(Decimal::whole).map(Value::Decimal),
            (Self::Decimal, Json::String(text)) => Decimal::parse("value", text).ok().map(Value::Decimal),
            (Self::Text, Json::String(text)) if text.chars().count() <= TEXT_CHARS_MAX => {
                Some(Value::Text(text.clone()))
            }
            (Self::Bool, Json::Bool(flag)) => Some(Value::Bool(*flag)),
            (Self::Date, Json::String(text)) => Day::parse(text).ok().map(Value::Date),
            _ => None,
        }
    }
}

fn whole(json: &Json) -> Option<i64> {
    json.as_i64().filter(|number| number.unsigned_abs() <= INTEGER_MAX)
}

/// What a JSON value is, in the words of [`Type`], for the sentence that it is something else.
pub fn found(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) if whole(json).is_some() => "int",
        Json::Number(number) if number.is_f64() => "a number with a fraction",
        Json::Number(_) => "a number beyond 2^53",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

impl Value {
    /// Its type.
    pub const fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::Int,
            Self::Decimal(_) => Type::Decimal,
            Self::Text(_) => Type::Text,
            Self::Bool(_) => Type::Bool,
            Self::Date(_) => Type::Date,
        }
    }

    /// How it compares with another one of its type; `None` for another type, and for types without an order.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.cmp(b)),
            (Self::Date(a), Self::Date(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As it stands in a passport: decimals and days are text.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Decimal(number) => serializer.collect_str(number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Date(day) => serializer.collect_str(day),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_by_its_type_and_written_back() {
        for (kind, json) in [
            (Type::Int, json!(-5)),
            (Type::Decimal, json!("12.5")),
            (Type::Text, json!("EV")),
            (Type::Bool, json!(true)),
            (Type::Date, json!("2027-02-18")),
        ] {
            let value = kind.read(&json).unwrap();
            assert_eq!(value.kind(), kind);
            assert_eq!(serde_json::to_value(&value).unwrap(), json);
        }
        assert_eq!(Type::Decimal.read(&json!(12)), Type::Decimal.read(&json!("12.0")));
    }

    #[test]
    fn what_is_of_another_type_is_not_read() {
        let all =
            [json!(null), json!(7), json!(1.5), json!("x"), json!(false), json!([]), json!({}), json!(1_u64 << 54)];
        let reads = |kind: Type| -> Vec<usize> { (0..all.len()).filter(|i| kind.read(&all[*i]).is_some()).collect() };
        assert_eq!(reads(Type::Int), [1]);
        assert_eq!(reads(Type::Decimal), [1]);
        assert_eq!(reads(Type::Text), [3]);
        assert_eq!(reads(Type::Bool), [4]);
        assert_eq!(reads(Type::Date), [] as [usize; 0]);
        let words =
            ["null", "int", "a number with a fraction", "text", "bool", "a list", "an object", "a number beyond 2^53"];
        assert_eq!(all.each_ref().map(found), words);
        for bad in ["2027-2-18", "18.02.2027", "2027-02-30", "2027-02-18T00:00:00Z"] {
            assert_eq!(Type::Date.read(&json!(bad)), None, "{bad}");
        }
        assert_eq!(Type::Text.read(&json!("x".repeat(TEXT_CHARS_MAX + 1))), None);
    }

    #[test]
    fn order_is_known_where_there_is_one() {
        let date = |text: &str| Type::Date.read(&json!(text)).unwrap();
        assert_eq!(date("2026-12-31").order(&date("2027-01-01")), Some(Ordering::Less));
        assert_eq!(Value::Int(2).order(&Value::Int(10)), Some(Ordering::Less));
        assert_eq!(Value::Bool(true).order(&Value::Bool(false)), None);
        assert_eq!(Value::Int(2).order(&date("2027-01-01")), None);
    }
}
