//! The tasks of the project:
//!
//! - `cargo xtask check` checks the structure of the project in seconds.
//! - `cargo xtask models` builds the table of models.
//! - `cargo xtask fit` fits the weights of the stitcher.
//! - `cargo xtask dist` builds and packs the published programs.
//!
//! Each check is one file in `check/`. A failure states the place and a next step.

mod check;
mod dist;
mod fit;
mod models;
mod source;
mod workspace;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use check::{CHECKS, Check};
use workspace::Workspace;

const USAGE: &str =
    "usage: cargo xtask check [NAME…] | cargo xtask models | cargo xtask fit CASES… | cargo xtask dist …";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // If standard error is closed, the failure cannot be reported.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(2)
        }
    }
}

/// Runs a task. Returns whether it succeeded.
fn run(arguments: &[String]) -> Result<bool, String> {
    let (command, names) = arguments.split_first().ok_or(USAGE)?;
    match command.as_str() {
        "check" => run_checks(names),
        "dist" => dist::make(names).map(|()| true),
        "fit" => fit::make(names).map(|()| true),
        "models" if names.is_empty() => models::make().map(|()| true),
        "models" => Err(USAGE.to_owned()),
        _ => Err(format!("there is no task `{command}`; {USAGE}")),
    }
}

/// Runs the chosen checks. Returns whether all passed.
fn run_checks(names: &[String]) -> Result<bool, String> {
    let chosen = choose(names)?;
    let workspace = Workspace::load().map_err(|error| error.to_string())?;
    let mut passed = true;
    for check in chosen {
        let started = Instant::now();
        let failures = (check.run)(&workspace).map_err(|error| format!("{}: {error}", check.name))?;
        let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
        say(&format!("{:<14} {verdict} ({:.1} s)", check.name, started.elapsed().as_secs_f64()))?;
        for failure in &failures {
            say(&format!("  {failure}"))?;
        }
        passed &= failures.is_empty();
    }
    Ok(passed)
}

/// Returns the named checks, or all checks.
fn choose(names: &[String]) -> Result<Vec<&'static Check>, String> {
    if names.is_empty() {
        return Ok(CHECKS.iter().collect());
    }
    let find = |name: &String| {
        CHECKS.iter().find(|check| check.name == name).ok_or_else(|| {
            let known: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
            format!("there is no check `{name}`: use {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

fn say(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("cannot write to standard output: {error}"))
}
