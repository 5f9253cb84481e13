//! Numbers as SQLite has them: its integers are signed.

/// A count or a length; none comes near the end of what can be written.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The way back; a negative one can only be another program's doing.
pub(crate) fn natural(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
