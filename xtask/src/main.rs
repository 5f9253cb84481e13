//! The tasks of the project:
//!
//! - `cargo xtask check` checks the structure of the project in seconds.
//! - `cargo xtask models` builds the table of models.
//! - `cargo xtask fit` fits the weights of the stitcher.
//! - `cargo xtask dist` builds and packs the published programs.
//!
//! Each check has its own file in `check/`. Each failure names the affected line or file and a next step.

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
        "dist" => dist::build_and_pack(names).map(|()| true),
        "fit" => fit::fit_and_write(names).map(|()| true),
        "models" if names.is_empty() => models::write_table().map(|()| true),
        "models" => Err(USAGE.to_owned()),
        _ => Err(format!("there is no task `{command}`; {USAGE}")),
    }
}

/// Runs the chosen checks. Returns whether all of them passed.
fn run_checks(names: &[String]) -> Result<bool, String> {
    let chosen = choose_checks(names)?;
    let workspace = Workspace::load().map_err(|error| error.to_string())?;
    let mut passed = true;
    for check in chosen {
        let started = Instant::now();
        let failures = (check.run)(&workspace).map_err(|error| format!("{}: {error}", check.name))?;
        let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
        print_line(&format!("{:<14} {verdict} ({:.1} s)", check.name, started.elapsed().as_secs_f64()))?;
        for failure in &failures {
            print_line(&format!("  {failure}"))?;
        }
        passed &= failures.is_empty();
    }
    Ok(passed)
}

/// Returns the checks with these names, or all checks if there are no names.
fn choose_checks(names: &[String]) -> Result<Vec<&'static Check>, String> {
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

fn print_line(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("cannot write to standard output: {error}"))
}
