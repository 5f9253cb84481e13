//! Finds or installs the tools that link for another architecture.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::run;

/// The oldest supported glibc for Python's module. Wheels with the tag `manylinux2014` require it.
pub(super) const OLDEST_GLIBC: &str = "2.17";

/// Returns the glibc target of the same architecture.
pub(super) fn with_glibc(target: &str) -> String {
    target.replace("-musl", "-gnu")
}

/// Installs `cargo zigbuild` and the standard libraries of these targets if they are missing. Returns the
/// `PATH` for builds.
pub(super) fn make_available(root: &Path, targets: &[String]) -> Result<OsString, String> {
    let own = root.join("target/zig");
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([own.join("bin")].into_iter().chain(env::split_paths(&inherited)));
    let path = path.map_err(|error| format!("{} cannot be in PATH: {error}", own.display()))?;
    if !succeeds(Command::new("cargo-zigbuild").arg("--version").env("PATH", &path)) {
        install_zigbuild(&own)?;
    }
    let targets = targets.iter().flat_map(|target| [target.clone(), with_glibc(target)]);
    for target in targets.filter(|target| !has_standard_library(target)) {
        print_message(&format!("installing Rust's standard library for {target}"));
        let mut add = Command::new("rustup");
        add.args(["target", "add", &target]);
        run(add).map_err(|problem| {
            format!(
                "{problem}: install Rust's standard library for {target}, with rustup from https://rustup.rs"
            )
        })?;
    }
    Ok(path)
}

/// Installs the linker and its driver into a separate Python environment.
fn install_zigbuild(folder: &Path) -> Result<(), String> {
    print_message(&format!(
        "installing cargo-zigbuild and zig into {} (about 100 MB, the first time only)",
        folder.display()
    ));
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(folder);
    run(make).map_err(|problem| {
        format!("{problem}: install Python and its venv (Debian, Ubuntu: `apt install python3-venv`)")
    })?;
    let mut install = Command::new(folder.join("bin/python3"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "cargo-zigbuild",
        "ziglang",
    ]);
    run(install)
}

fn has_standard_library(target: &str) -> bool {
    let printed = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    printed.is_ok_and(|printed| {
        printed.status.success() && PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim()).is_dir()
    })
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn print_message(message: &str) {
    // If standard error is closed, the failure cannot be reported.
    let _ = writeln!(io::stderr(), "{message}");
}
