//! What the server says, in our words.

use tenure_core::Invalid;
use tenure_store::StoreError;
use tokio_postgres::error::SqlState;

/// Turns a driver's error into one a caller can act on.
pub(crate) fn translate(error: tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(said) => from_code(said.code().code(), said.message()).unwrap_or_else(|| StoreError::unavailable(error)),
        None => StoreError::unavailable(error),
    }
}

/// What the server says of a table or a statement of the user's own: theirs to mend, not `tenure migrate`'s.
pub(crate) fn refused(what: &str, error: tokio_postgres::Error) -> StoreError {
    let Some(said) = error.as_db_error() else {
        return translate(error);
    };
    match said.code().code() {
        "23502" | "23514" => StoreError::Invalid(Invalid::new("row of", what, said.message())),
        code if code.starts_with("23") => {
            StoreError::Conflict(format!("{what}: a row was refused: {}", said.message()))
        }
        // Not an outage: the same statement would take as long the next time.
        "57014" => StoreError::Conflict(format!("{what} was stopped by the server: {}", said.message())),
        code if code.starts_with("42") || code == "3F000" || code == "0A000" => {
            StoreError::Schema(format!("{what} does not fit the database: {}", said.message()))
        }
        _ => translate(error),
    }
}

/// What a code means to the caller; `None` is a passing trouble. Codes `TN…` are raised by our own functions.
pub(crate) fn from_code(code: &str, message: &str) -> Option<StoreError> {
    // 08 connection, 25006 read-only, 25P03 and 25P04 a transaction took too long, 40 rollback, 53 resources, 55P03 lock timeout,
    // 57 operator, 58 system, XX internal.
    const PASSING: [&str; 10] = ["08", "25006", "25P03", "25P04", "40", "53", "55P03", "57", "58", "XX"];
    match code {
        "TN404" => Some(StoreError::NotFound(message.trim_end_matches(" is not known here").to_owned())),
        "TN001" | "TN002" | "TN409" => Some(StoreError::Conflict(message.to_owned())),
        "TN429" => Some(StoreError::Full(message.to_owned())),
        "TN423" => Some(StoreError::Limit(message.to_owned())),
        "TN412" => Some(mismatch(message)),
        "TN421" => Some(StoreError::Schema(message.to_owned())),
        "TN422" => Some(StoreError::Invalid(input(message))),
        "3F000" | "42P01" | "42883" | "42703" => {
            Some(StoreError::Schema(format!("the schema is missing or too old ({message}): run `tenure migrate`")))
        }
        // Data that the server cannot hold, such as text it cannot encode: what was sent is at fault, not the store.
        code if code.starts_with("22") => Some(StoreError::Invalid(Invalid::new("input", code, message))),
        code if PASSING.iter().any(|class| code.starts_with(class)) => None,
        code => Some(StoreError::Corrupt(format!("{message} (SQLSTATE {code})"))),
    }
}

/// Whether the same statement may succeed at once: two transactions met, and ours was the one to give way.
pub(crate) fn is_retryable(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether a lock was not had in time: somebody's open transaction has it.
pub(crate) fn is_locked_out(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether a call failed because it met another open transaction, by a lock timeout or a deadlock. Its neighbours in a
/// shared call have no part in that.
pub(crate) fn met_a_lock(error: &StoreError) -> bool {
    let StoreError::Unavailable(_, Some(source)) = error else { return false };
    source.downcast_ref::<tokio_postgres::Error>().is_some_and(|error| is_locked_out(error) || is_retryable(error))
}

/// Whether a row with this key is there already.
pub(crate) fn is_taken(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Whether this connection is of no more use: closed, shut down, or led to a server that no longer takes writes.
pub(crate) fn is_disconnect(error: &tokio_postgres::Error) -> bool {
    error.is_closed()
        || error.as_db_error().is_none()
        || error.code().is_some_and(|code| {
            let code = code.code();
            matches!(code, "25006" | "25P03" | "25P04") || code.starts_with("57P") || code.starts_with("08")
        })
}

/// `offset_mismatch: 60, 30`
fn mismatch(message: &str) -> StoreError {
    let numbers = message.split_once(": ").and_then(|(_, numbers)| numbers.split_once(", "));
    match numbers.map(|(expected, got)| (expected.parse(), got.parse())) {
        Some((Ok(expected), Ok(got))) => StoreError::OffsetMismatch { expected, got },
        _ => StoreError::Corrupt(message.to_owned()),
    }
}

/// Our functions refuse inputs in the words of [`Invalid`].
fn input(message: &str) -> Invalid {
    let parts = message.split_once(" `").and_then(|(field, rest)| Some((field, rest.split_once("` is refused: ")?)));
    match parts {
        Some((field, (value, limit))) => {
            const FIELDS: [&str; 12] = [
                "id",
                "job",
                "rows",
                "kind",
                "queue",
                "tenant",
                "tokens",
                "payload",
                "priority",
                "reason",
                "unique key",
                "idempotency key",
            ];
            let field = FIELDS.into_iter().find(|known| *known == field).unwrap_or("input");
            Invalid::new(field, value, limit)
        }
        None => Invalid::new("input", message, "see the message"),
    }
}
