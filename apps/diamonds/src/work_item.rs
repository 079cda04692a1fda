//! `WORK_ITEM`: the message that asks for one page of a partition.
//!
//! ```json
//! {
//!   "type": "WORK_ITEM", "runId": "019aa0c4-…", "traceId": "nightly-7", "partitionId": "100000-200000",
//!   "minPrice": 100000, "maxPrice": 200000, "offset": 0, "limit": 30, "totalRecords": 4711, "asOf": 3
//! }
//! ```
//!
//! | field | means |
//! |---|---|
//! | `runId` | the run, a uuid |
//! | `traceId` | what ties the logs of one run together |
//! | `partitionId` | one stream of pages of the run |
//! | `minPrice`, `maxPrice` | its prices in cents, the second not included |
//! | `offset` | where the page begins; always said, never guessed |
//! | `limit` | rows of a full page, 30 unless said |
//! | `totalRecords` | what the scheduler counted: shown, and nothing else |
//! | `asOf` | the supplier's revision that the run reads; ours, older messages have none |
//! | `offsetStart`, `offsetEnd` | of older messages: accepted whatever they hold, ignored, never written |
//!
//! Other fields are ignored: a newer scheduler may say more. A page's stable id is `runId:partitionId:offset`.
//!
//! It is also the job of a partition. The jobs of all its pages have the body of the first one, offset 0 included; which
//! page a job is stands beside the body, in that stable id. [`WorkItem::of`] puts the two together.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use tenure::core::run::{PARTITION_OFFSET_MAX, Part};
use tenure::{Invalid, Job, Page, PartitionName, PartitionRecord, RunId};

use crate::fields::{Fields, check_text};
use crate::price_range::PriceRange;

/// What the message says it is.
pub const TYPE: &str = "WORK_ITEM";
/// Rows of a full page when a message does not say.
pub const LIMIT_DEFAULT: u32 = 30;
/// Most rows of a page.
pub const LIMIT_MAX: u32 = 1_000;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1_024;
/// Longest trace id.
pub const TRACE_ID_BYTES_MAX: usize = 100;
/// What a partition may be called.
const PARTITION_RULE: &str = "it is a name of 1 to 100 of a-z A-Z 0-9 . _ - : /";

/// One page to fetch. As the seed has it, a page is tried five times unless that is set, at once, and has a minute.
#[derive(Debug, Clone, PartialEq, Eq, Job)]
#[job(kind = "diamonds.page", queue = "diamonds.pages", max_attempts = 5, backoff = "none", timeout = "60s")]
pub struct WorkItem {
    /// Of which run.
    pub run_id: RunId,
    /// What ties the logs together.
    pub trace_id: String,
    /// Of which partition.
    pub partition_id: PartitionName,
    /// Its prices: `minPrice` to below `maxPrice`.
    pub prices: PriceRange,
    /// Where the page begins.
    pub offset: u64,
    /// Rows of a full page.
    pub limit: u32,
    /// How many stones the scheduler counted. Only shown: where a partition ends is said by its last page.
    pub total_records: Option<u64>,
    /// The supplier's revision that is read.
    pub as_of: Option<u32>,
}

impl WorkItem {
    /// Reads a message as it came.
    pub fn read(message: &[u8]) -> Result<Self, Invalid> {
        if message.len() > MESSAGE_BYTES_MAX {
            let limit = format!("it is at most {MESSAGE_BYTES_MAX} bytes long");
            return Err(Invalid::new("message", format!("{} bytes", message.len()), limit));
        }
        let refuse = |error: serde_json::Error| {
            Invalid::new("message", String::from_utf8_lossy(message), format!("it is JSON ({error})"))
        };
        Self::from_json(&serde_json::from_slice(message).map_err(refuse)?)
    }

    /// The same for a message that has been parsed.
    pub fn from_json(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of("message", value)?;
        fields.word("type", TYPE, |word| (word == TYPE).then_some(()))?;
        let limit = fields.whole_if_there("limit", 1..=u64::from(LIMIT_MAX))?;
        let as_of = fields.whole_if_there("asOf", 0..=u64::from(u32::MAX))?;
        Ok(Self {
            run_id: fields.parsed("runId", "it is a uuid")?,
            trace_id: fields.text("traceId", TRACE_ID_BYTES_MAX)?.to_owned(),
            partition_id: fields.parsed("partitionId", PARTITION_RULE)?,
            prices: read_prices(fields)?,
            offset: fields.whole("offset", 0..=PARTITION_OFFSET_MAX)?,
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(LIMIT_DEFAULT),
            total_records: fields.whole_if_there("totalRecords", 0..=PARTITION_OFFSET_MAX)?,
            as_of: as_of.and_then(|as_of| u32::try_from(as_of).ok()),
        })
    }

    /// The message.
    pub fn to_json(&self) -> Value {
        let mut message = json!({
            "type": TYPE,
            "runId": self.run_id.to_string(),
            "traceId": self.trace_id,
            "partitionId": self.partition_id.as_str(),
            "minPrice": self.prices.min_cents(),
            "maxPrice": self.prices.max_cents(),
            "offset": self.offset,
            "limit": self.limit,
        });
        if let Some(total) = self.total_records {
            message["totalRecords"] = total.into();
        }
        if let Some(as_of) = self.as_of {
            message["asOf"] = as_of.into();
        }
        message
    }

    /// The item of a page: that of its partition's first page, but for the offset.
    pub fn of(first: Self, page: &Page) -> Self {
        Self { offset: page.offset(), limit: page.limit(), ..first }
    }

    /// The message of a page of one of our partitions, as somebody by hand would send it.
    pub fn by_hand(partition: &PartitionRecord, offset: u64) -> Result<Self, Invalid> {
        Ok(Self {
            run_id: partition.run,
            trace_id: "by-hand".to_owned(),
            partition_id: partition.name.clone(),
            prices: partition.name.as_str().parse()?,
            offset,
            limit: partition.limit,
            total_records: None,
            as_of: None,
        })
    }

    /// The stable id, `run:partition:offset`: a page that is sent twice has one.
    pub fn message_id(&self) -> String {
        let (run, partition) = (self.run_id, self.partition_id.clone());
        Part::Page { run, partition, offset: self.offset }.to_string()
    }

    /// The page that follows when this one had so many rows: the same but for its offset. `None` when it was the last one,
    /// because it was shorter than its limit.
    pub fn after(&self, rows: u64) -> Option<Self> {
        let is_full = rows >= u64::from(self.limit);
        is_full.then(|| Self { offset: self.offset.saturating_add(rows), ..self.clone() })
    }
}

/// Refuses a trace id that no message could carry.
pub fn check_trace(trace_id: &str) -> Result<(), Invalid> {
    check_text("traceId", trace_id, TRACE_ID_BYTES_MAX)
}

fn read_prices(fields: Fields<'_>) -> Result<PriceRange, Invalid> {
    let end = PriceRange::ALL.max_cents();
    let (min, max) = (fields.whole("minPrice", 0..=end - 1)?, fields.whole("maxPrice", 1..=end)?);
    let refuse = |_| Invalid::new("maxPrice", max, format!("it is greater than minPrice, which is {min}"));
    PriceRange::new(min, max).map_err(refuse)
}

impl Serialize for WorkItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WorkItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "019aa0c4-7b5a-7000-8000-000000000001";

    fn message() -> Value {
        json!({
            "type": "WORK_ITEM", "runId": RUN, "traceId": "nightly-7", "partitionId": "partition-1",
            "minPrice": 1_000, "maxPrice": 2_000, "offset": 0, "limit": 30, "totalRecords": 95, "asOf": 3,
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut message = message();
        message[field] = value;
        message
    }

    fn item() -> WorkItem {
        WorkItem::from_json(&message()).unwrap()
    }

    /// Shows: S2.12 S2.13 S2.14
    #[test]
    fn a_message_is_read_and_written_with_the_names_of_the_contract() {
        let item = WorkItem::read(message().to_string().as_bytes()).unwrap();
        assert_eq!((item.offset, item.limit, item.total_records), (0, 30, Some(95)));
        assert_eq!((item.prices.min_cents(), item.prices.max_cents()), (1_000, 2_000));
        assert_eq!((item.trace_id.as_str(), item.partition_id.as_str()), ("nightly-7", "partition-1"));
        assert_eq!(item.to_json(), message());
        let text = serde_json::to_string(&item).unwrap();
        assert_eq!(serde_json::from_str::<WorkItem>(&text).unwrap(), item);
    }

    /// Shows: S2.17
    #[test]
    fn legacy_offsets_are_accepted_whatever_they_hold_and_change_nothing() {
        for old in [json!(0), json!(3_000), json!(-1), json!("30"), json!(null), json!({ "a": 1 })] {
            let mut message = with("offsetStart", old.clone());
            message["offsetEnd"] = old;
            let read = WorkItem::from_json(&message).unwrap();
            assert_eq!(read, item());
            assert!(!read.to_json().to_string().contains("offsetStart"));
        }
    }

    /// Shows: S2.13
    #[test]
    fn a_message_without_a_limit_has_thirty() {
        for missing in [with("limit", Value::Null), {
            let mut message = message();
            message.as_object_mut().unwrap().remove("limit");
            message
        }] {
            assert_eq!(WorkItem::from_json(&missing).unwrap().limit, 30);
        }
        assert_eq!(WorkItem::from_json(&with("limit", json!(100))).unwrap().limit, 100);
    }

    #[test]
    fn fields_that_nobody_knows_are_tolerated() {
        assert_eq!(WorkItem::from_json(&with("region", json!({ "deep": [1, 2] }))), Ok(item()));
    }

    #[test]
    fn bad_messages_are_refused_and_the_field_is_named() {
        for (field, bad) in [
            ("type", json!("WORK_DONE")),
            ("type", json!(null)),
            ("runId", json!("abc-123")),
            ("runId", json!(null)),
            ("traceId", json!("")),
            ("traceId", json!("x".repeat(TRACE_ID_BYTES_MAX + 1))),
            ("partitionId", json!("a b")),
            ("partitionId", json!(7)),
            ("minPrice", json!(-1)),
            ("minPrice", json!(10.5)),
            ("maxPrice", json!(1_000)),
            ("maxPrice", json!(u64::MAX)),
            ("offset", json!(null)),
            ("offset", json!("0")),
            ("offset", json!(u64::MAX)),
            ("limit", json!(0)),
            ("limit", json!(LIMIT_MAX + 1)),
            ("totalRecords", json!(-5)),
            ("asOf", json!("latest")),
        ] {
            assert_eq!(WorkItem::from_json(&with(field, bad.clone())).unwrap_err().field, field, "{bad}");
        }
        for not_one in [&b"{"[..], b"[]", b"null", b"\xff", b""] {
            assert_eq!(WorkItem::read(not_one).unwrap_err().field, "message");
        }
        let mut long = message().to_string();
        long.extend(std::iter::repeat_n(' ', MESSAGE_BYTES_MAX - long.len()));
        assert!(WorkItem::read(long.as_bytes()).is_ok());
        long.push(' ');
        assert_eq!(WorkItem::read(long.as_bytes()).unwrap_err().value, "`16385 bytes`");
    }

    /// Shows: S2.31
    #[test]
    fn the_message_id_is_run_partition_and_offset() {
        let at = |offset| WorkItem { offset, ..item() }.message_id();
        assert_eq!(at(60), format!("{RUN}:partition-1:60"));
        assert_eq!((at(60) == at(60), at(60) == at(30)), (true, false));
    }

    /// Shows: S2.25 S2.26
    #[test]
    fn a_full_page_is_followed_by_one_that_begins_behind_it_and_a_short_one_by_none() {
        let next = item().after(30).unwrap();
        assert_eq!(next, WorkItem { offset: 30, ..item() });
        assert_eq!(next.after(30).unwrap().offset, 60);
        assert_eq!((item().after(29), item().after(0)), (None, None));
    }
}
