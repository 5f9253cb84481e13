//! The async runtime, for the commands that need one.

use std::future::Future;

use crate::error::CommandError;

/// Runs this to its end on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::Upstream {
        message: format!("the system gives no threads: {error}"),
        hint: None,
    })?;
    Ok(runtime.block_on(future))
}
