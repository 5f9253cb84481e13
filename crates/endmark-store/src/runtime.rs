//! Creates an async runtime for callers without one.

use std::future::Future;

use endmark_failure::CommandError;
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime with one thread for each processor.
pub fn new() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| CommandError::Upstream {
        message: format!("the system cannot start threads: {error}"),
        hint: None,
    })
}

/// Runs a future to its end on a new runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    Ok(new()?.block_on(future))
}
