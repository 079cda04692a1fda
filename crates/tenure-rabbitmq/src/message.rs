//! What counts as a wake-up: a small JSON object whose `job_id` is a uuid. Nothing else is read of it.

use serde_json::Value;
use tenure_core::JobId;

/// Larger bodies are not looked at.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// What is published for a job.
pub(crate) fn encode(job: JobId) -> Vec<u8> {
    // An id has nothing to escape.
    format!("{{\"job_id\":\"{job}\"}}").into_bytes()
}

/// Whether this body wakes somebody.
pub(crate) fn is_wake_up(body: &[u8]) -> bool {
    if body.len() > BODY_BYTES_MAX {
        return false;
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return false };
    fields.get("job_id").and_then(Value::as_str).is_some_and(|id| id.parse::<JobId>().is_ok())
}

#[cfg(test)]
mod tests {
    use tenure_core::Timestamp;

    use super::*;

    #[test]
    fn what_is_published_wakes() {
        let job = JobId::from_parts(Timestamp::EPOCH, [7; 10]);
        assert!(is_wake_up(&encode(job)));
        assert!(is_wake_up(format!(" {{\"extra\": [1], \"job_id\": \"{job}\"}} ").as_bytes()));
    }

    #[test]
    fn the_largest_body_is_read_and_one_more_byte_is_not() {
        let mut body = encode(JobId::from_parts(Timestamp::EPOCH, [7; 10]));
        body.resize(BODY_BYTES_MAX, b' ');
        assert!(is_wake_up(&body));
        body.push(b' ');
        assert!(!is_wake_up(&body));
    }
}
