//! Conversions to and from the integers of SQLite and PostgreSQL, which are signed.

/// Converts a count or a length. No real value comes near the maximum.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts back. Only another program can have written a negative value.
pub(crate) fn natural(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
