//! Parts of SQL statements: typed parameters and lists of columns.

use tokio_postgres::types::{ToSql, Type};

/// A parameter of a statement with its PostgreSQL type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// SQL for the first two parameters of a statement: the start and the end of a span in UTC.
pub(super) const SINCE_SQL: &str = "($1::text::timestamp AT TIME ZONE 'UTC')";
pub(super) const UNTIL_SQL: &str = "($2::text::timestamp AT TIME ZONE 'UTC')";

/// Returns the names of columns, separated by commas.
pub(super) fn column_names(columns: &[(&str, &str)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Returns the names of columns with their types, for `jsonb_to_recordset`.
pub(super) fn column_definitions(columns: &[(&str, &str)]) -> String {
    columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>().join(", ")
}
