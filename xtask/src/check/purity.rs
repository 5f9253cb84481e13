//! Checks that pure crates use no runtime, sockets, files, clocks or environment variables, directly or
//! through dependencies.

use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

/// Crates in which every decision is a function of its arguments.
const PURE_CRATES: &[&str] = &[
    "endmark-context",
    "endmark-envelope",
    "endmark-findings",
    "endmark-guard",
    "endmark-recovery",
    "endmark-text",
    "endmark-wire",
];

/// Impure modules of pure crates. Such a module is behind a feature, and may use process state and the listed
/// packages.
///
/// `endmark-envelope` has one, so that authors of commands need only one crate.
const IMPURE_MODULES: &[(&str, &str, &[&str])] = &[("endmark-envelope", "run", &["signal-hook"])];

/// Packages that read clocks and files only with their feature `std`, each with the pure crate that uses it
/// without this feature.
const PURE_WITHOUT_STD: &[(&str, &str)] = &[("endmark-context", "jiff")];

/// Packages that do I/O, read clocks or keep process state. A pure crate must not depend on them.
const IMPURE_PACKAGES: &[&str] = &[
    "async-std",
    "axum",
    "chrono",
    "getrandom",
    "http-body",
    "hyper",
    "hyper-rustls",
    "hyper-util",
    "jiff",
    "log",
    "mio",
    "postgres",
    "rand",
    "reqwest",
    "rusqlite",
    "rustls",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tokio-postgres",
    "tower",
    "tracing",
    "ureq",
];

/// Modules of the standard library that a pure crate must not use.
const FORBIDDEN_STD_MODULES: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

/// Clocks of the standard library.
const CLOCKS: &[&str] = &["Instant", "SystemTime"];

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut failures = Vec::new();
    let files = workspace.rust_files()?;
    for name in PURE_CRATES {
        let package = workspace.member(name)?;
        let below = workspace.dependency_closure(package, is_exempt);
        let has_std =
            PURE_WITHOUT_STD.iter().filter(|(of, other)| of == name && workspace.has_feature(other, "std"));
        failures.extend(has_std.map(|(_, other)| {
            format!("`{name}` is pure, but `{other}` is built with its feature `std`, which reads the clock")
        }));
        failures.extend(IMPURE_PACKAGES.iter().filter(|name| below.contains(*name)).map(|name| {
            format!(
                "`{}` is pure, but `{name}` is among its dependencies: remove the feature or crate that needs it (`cargo tree -p {} -e normal,build -i {name}`)",
                package.name, package.name
            )
        }));
        let source = package.folder(workspace).join("src");
        let is_judged = |file: &Path| {
            file.strip_prefix(&source)
                .is_ok_and(|inside| !is_test_file(file) && !is_in_impure_module(name, inside))
        };
        for (file, text) in files.iter().filter(|(file, _)| is_judged(file)) {
            failures.extend(impurities(text).into_iter().map(|(line, name)| failure(file, line, &name)));
        }
    }
    Ok(failures)
}

/// Whether a pure crate may have this dependency: for its impure module, or without the impure feature.
fn is_exempt(package: &str, dependency: &str) -> bool {
    PURE_WITHOUT_STD.contains(&(package, dependency))
        || IMPURE_MODULES.iter().any(|(name, _, packages)| *name == package && packages.contains(&dependency))
}

/// Whether a file in a package's `src` belongs to its impure module.
fn is_in_impure_module(package: &str, file: &Path) -> bool {
    let first = file.iter().next().map(Path::new).and_then(Path::file_stem);
    IMPURE_MODULES
        .iter()
        .any(|(name, module, _)| *name == package && first.is_some_and(|first| first == *module))
}

fn failure(file: &Path, line: usize, name: &str) -> String {
    format!(
        "{}:{line} names `{name}` in a pure crate: let the caller pass in what it needs to know",
        file.display()
    )
}

/// Returns the line and the name of each forbidden item in a text, except in tests.
fn impurities(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_group_of_std = false;
    for (number, line) in lines_without_tests(text) {
        let code = line.split("//").next().unwrap_or_default();
        let words = words(code);
        if code.trim_start().starts_with("use std::{") || code.trim_start().starts_with("pub use std::{") {
            in_group_of_std = true;
        }
        for (at, word) in words.iter().enumerate() {
            let of_std = at > 0 && words[at - 1] == "std" && code.contains(&format!("std::{word}"));
            if FORBIDDEN_STD_MODULES.contains(word) && (in_group_of_std || of_std) {
                found.push((number, format!("std::{word}")));
            }
            if CLOCKS.contains(word) {
                found.push((number, (*word).to_owned()));
            }
        }
        in_group_of_std &= !code.contains(';');
    }
    found
}

fn words(code: &str) -> Vec<&str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    code.split(|character| !is_part(character)).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impure_module_is_exempt_by_crate_and_name() {
        for (package, file, expected) in [
            ("endmark-envelope", "run.rs", true),
            ("endmark-envelope", "run/signals.rs", true),
            ("endmark-envelope", "rules.rs", false),
            ("endmark-envelope", "cap/run.rs", false),
            ("endmark-text", "run.rs", false),
        ] {
            assert_eq!(is_in_impure_module(package, Path::new(file)), expected, "{package} {file}");
        }
        assert!(is_exempt("endmark-envelope", "signal-hook") && !is_exempt("endmark-text", "signal-hook"));
    }

    #[test]
    fn files_sockets_clocks_and_the_environment_are_found() {
        for (text, names) in [
            ("use std::fs;", vec!["std::fs"]),
            ("    let x = std::env::var(\"A\");", vec!["std::env"]),
            ("use std::{\n    fmt,\n    net::TcpStream,\n};\nlet fs = 1;", vec!["std::net"]),
            ("use std::time::{Duration, Instant};", vec!["Instant"]),
            ("let now: SystemTime = now();", vec!["SystemTime"]),
            ("use std::time::Duration; // not std::fs", vec![]),
            ("let instant = env!(\"X\"); offset(process);", vec![]),
            ("#[cfg(test)]\nmod tests {\n    use std::fs;\n}", vec![]),
        ] {
            let found: Vec<String> = impurities(text).into_iter().map(|(_, name)| name).collect();
            assert_eq!(found, names, "{text}");
        }
    }
}
