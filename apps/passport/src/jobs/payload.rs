//! [`Payload`]: a job's payload that may turn out to be none.
//!
//! Whoever writes jobs by SQL or HTTP may write anything. The worker would refuse what it cannot read without the
//! product's code; read here, it is a `VALIDATION_ERROR` like any other malformed input.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::code::Refusal;

/// What is asked for, or why that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload<T>(Result<T, String>);

impl<T> Payload<T> {
    /// What is asked for.
    pub fn new(asked: T) -> Self {
        Self(Ok(asked))
    }

    /// What is asked for; `VALIDATION_ERROR` when it cannot be read.
    pub fn read(self) -> Result<T, Refusal> {
        self.0.map_err(|why| Refusal::invalid(format!("the job's payload is refused: {why}")))
    }
}

impl<T: Serialize> Serialize for Payload<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(asked) => asked.serialize(serializer),
            Err(why) => Err(serde::ser::Error::custom(why)),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Payload<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(serde_json::from_value(value).map_err(|error| error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_when_it_is_read() {
        let payload: Payload<u32> = serde_json::from_str("7").unwrap();
        assert_eq!(serde_json::to_string(&payload).unwrap(), "7");
        assert_eq!(payload.read(), Ok(7));
        let payload: Payload<u32> = serde_json::from_str("\"seven\"").unwrap();
        assert!(serde_json::to_string(&payload).is_err());
        let refused = payload.read().unwrap_err();
        assert!(refused.message.contains("the job's payload is refused: invalid type"), "{refused}");
    }
}
