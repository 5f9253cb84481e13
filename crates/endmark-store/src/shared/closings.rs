//! Ensures that at most one instance makes the closing call of a session.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::database::escape_nul;
use super::sql::Parameter;

/// Closes a session for its closing call, unless the session is already closed. Returns whether this request
/// may make the call. Repeating the request returns the same result.
pub(crate) async fn close_session(
    client: &mut Client,
    session: &str,
    request_id: &str,
) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    // Lock rows in a fixed order, to prevent a deadlock with another instance.
    let sql = "SELECT closed_by FROM em_budgets WHERE scope = 'session' AND subject = $1 ORDER BY span, unit FOR UPDATE";
    let session = escape_nul(session);
    let budgets = transaction.query_typed(sql, &[(&session, Type::TEXT)]).await?;
    let is_open = |closed_by: &str| closed_by.is_empty() || closed_by == request_id;
    if budgets.is_empty() || !budgets.iter().all(|budget| is_open(budget.get(0))) {
        return Ok(false);
    }
    let sql = "UPDATE em_budgets SET closed_by = $2 WHERE scope = 'session' AND subject = $1";
    let parameters: [Parameter<'_>; 2] = [(&session, Type::TEXT), (&request_id, Type::TEXT)];
    transaction.execute_typed(sql, &parameters).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Reopens a session whose closing call was not made.
pub(crate) async fn reopen_session(client: &Client, request_id: &str) -> Result<(), Error> {
    let sql = "UPDATE em_budgets SET closed_by = '' WHERE scope = 'session' AND closed_by = $1";
    client.execute_typed(sql, &[(&request_id, Type::TEXT)]).await.map(|_| ())
}
