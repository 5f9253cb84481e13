//! The command `endmark`.

mod arguments;
mod batch;
mod checks;
mod client;
mod commands;
mod console;
mod context;
mod criteria;
mod definition;
mod demo;
mod format;
mod input;
mod logging;
mod pieces;
mod progress;
mod run;
mod saved;
#[cfg(test)]
mod schemas;
mod serving;
mod standard_error;
mod supervision;
mod telemetry;
mod time_span;
mod view;

use std::process::ExitCode;

/// Static builds would use musl's allocator, which has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run::run(std::env::args_os().collect(), endmark_config::Environment::new(std::env::vars_os())).into()
}
