//! Conversions to and from the signed integers of SQLite and PostgreSQL.

/// Converts a count or a length to a signed integer. Larger values become the maximum, but do not occur.
pub(crate) fn to_sql_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts an integer back to a count. Negative values become 0: only another program can have written them.
pub(crate) fn from_sql_integer(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
