//! The error of a program that cannot be started.

use std::io;

use endmark_envelope::ErrorBody;

use crate::ExitStatus;

/// Returns the error of a program that cannot be started.
pub fn start_error(program: &str, error: &io::Error) -> ErrorBody {
    let failed = |code: &str, message: String, hint: &str| {
        ErrorBody::new(code, ExitStatus::Upstream.code(), message).with_hint(hint)
    };
    match error.kind() {
        io::ErrorKind::NotFound => failed(
            "not_found",
            format!("the command `{program}` was not found, or its interpreter is missing"),
            "Check its spelling and `PATH`. For a script, also check its first line.",
        ),
        io::ErrorKind::PermissionDenied => failed(
            "not_executable",
            format!("`{program}` is not executable: {error}"),
            "Make the file executable with `chmod +x`.",
        ),
        io::ErrorKind::ArgumentListTooLong => failed(
            "arguments_too_large",
            format!("the system does not accept arguments this large for `{program}`"),
            "Give it the data on standard input or in a file.",
        ),
        // `io::ErrorKind` has no variant for `ENOEXEC`.
        _ if error.raw_os_error() == Some(8) => failed(
            "not_executable",
            format!("`{program}` is not a program"),
            "A script must begin with `#!` and the path of its interpreter.",
        ),
        _ => failed(
            "not_started",
            format!("`{program}` cannot be started: {error}"),
            "Nothing was done. Check whether the system has enough free memory and processes.",
        ),
    }
}
