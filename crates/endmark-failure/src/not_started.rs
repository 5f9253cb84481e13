//! The error of a program that cannot be started.

use std::io;

use endmark_envelope::ErrorBody;

use crate::Exit;

/// The error of a program that cannot be started.
pub fn not_started(program: &str, error: &io::Error) -> ErrorBody {
    let failed = |code: &str, message: String, hint: &str| {
        ErrorBody::new(code, Exit::Upstream.code(), message).with_hint(hint)
    };
    match error.kind() {
        io::ErrorKind::NotFound => failed(
            "not_found",
            format!("there is no command `{program}`, or what should run it is missing"),
            "Check its spelling and `PATH`; of a script, also its first line.",
        ),
        io::ErrorKind::PermissionDenied => failed(
            "not_executable",
            format!("`{program}` may not be run: {error}"),
            "`chmod +x` makes a file a command.",
        ),
        io::ErrorKind::ArgumentListTooLong => failed(
            "arguments_too_large",
            format!("the system does not accept arguments this large for `{program}`"),
            "Give it the data on standard input or in a file.",
        ),
        // ENOEXEC has no kind of its own.
        _ if error.raw_os_error() == Some(8) => failed(
            "not_executable",
            format!("`{program}` is nothing that can be run"),
            "A script begins with `#!` and the program that runs it.",
        ),
        _ => failed(
            "not_started",
            format!("`{program}` cannot be started: {error}"),
            "Nothing was done; see whether the system has enough memory and processes left.",
        ),
    }
}
