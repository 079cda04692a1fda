//! What SQLite says, translated into what the caller does next.

use rusqlite::{Error, ErrorCode, ffi};
use tenure_core::Invalid;
use tenure_store::StoreError;

/// A verb's failure on its way out. Exists because neither side of the translation is ours.
#[derive(Debug)]
pub(crate) struct Fault(StoreError);

/// The result of everything below the port.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::SqliteFailure(failure, message) => {
                if message.as_deref().is_some_and(|m| m.starts_with("no such table") || m.starts_with("no such column"))
                {
                    return Self(StoreError::Schema(format!("{error}: run `tenure migrate` first")));
                }
                failure.code
            }
            Error::SqlInputError { msg, .. }
                if msg.starts_with("no such table") || msg.starts_with("no such column") =>
            {
                return Self(StoreError::Schema(format!("{msg}: run `tenure migrate` first")));
            }
            _ => return Self(StoreError::Corrupt(error.to_string())),
        };
        Self(match code {
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::ApiMisuse
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::Unknown => StoreError::Corrupt(error.to_string()),
            // Busy, locked, full, unreadable, read-only, out of memory, interrupted: it may be better later.
            _ => StoreError::unavailable(error),
        })
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<Invalid> for Fault {
    fn from(refused: Invalid) -> Self {
        Self(refused.into())
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}

/// What SQLite says of a table or a statement of the user's own: theirs to mend, not `tenure migrate`'s.
pub(crate) fn refused(what: &str, error: Error) -> StoreError {
    let not_so = |message: &str| StoreError::Schema(format!("{what} does not fit the database: {message}"));
    let (failure, message) = match &error {
        Error::SqlInputError { msg, .. } => return not_so(msg),
        Error::SqliteFailure(failure, message) => (failure, message.clone().unwrap_or_else(|| error.to_string())),
        _ => return Fault::from(error).into(),
    };
    match (failure.code, failure.extended_code) {
        (ErrorCode::Unknown, _) => not_so(&message),
        (ErrorCode::TypeMismatch, _)
        | (
            _,
            ffi::SQLITE_CONSTRAINT_NOTNULL
            | ffi::SQLITE_CONSTRAINT_CHECK
            | ffi::SQLITE_CONSTRAINT_DATATYPE
            | ffi::SQLITE_CONSTRAINT_TRIGGER,
        ) => StoreError::Invalid(Invalid::new("row of", what, message)),
        (ErrorCode::ConstraintViolation, _) => StoreError::Conflict(format!("{what}: a row was refused: {message}")),
        _ => Fault::from(error).into(),
    }
}

/// Whether somebody else holds the file's lock.
pub(crate) fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether a table refused what was written.
pub(crate) fn is_constraint(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// Something in a table that no verb can have written.
pub(crate) fn corrupt(what: impl Into<String>) -> Fault {
    Fault(StoreError::Corrupt(what.into()))
}
