//! The async runtime, for callers that have none.

use std::future::Future;

use endmark_failure::CommandError;
use tokio::runtime::{Builder, Runtime};

/// A runtime with a thread for each processor.
pub fn new() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| CommandError::Upstream {
        message: format!("the system gives no threads: {error}"),
        hint: None,
    })
}

/// Runs this to its end on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    Ok(new()?.block_on(future))
}
