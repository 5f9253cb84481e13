//! Decides whether a tool succeeded, and returns the error if it did not. (EN-1)

use std::borrow::Cow;
use std::time::Duration;

use endmark_envelope::{ErrorBody, FieldPath, Phase};
use endmark_failure::{ExitStatus, to_safe_lines};
use endmark_process::{CapturedStream, FinishedCommand, ForcedEnd, ProcessExit, signals};
use rustix::process::Signal;

use super::manifest::{ExitMeaning, Manifest};
use super::output::JsonFault;

/// Maximum number of bytes from the end of standard error that an error contains.
const MAX_SHOWN_ERROR_BYTES: usize = 1000;

/// Returns the error of a tool that has ended. Returns `None` if it succeeded. A forced end takes precedence
/// over the exit code, and the exit code over faults of the output.
pub(crate) fn error_of_run(
    manifest: &Manifest,
    program: &str,
    ran: &FinishedCommand,
    fault: Option<&JsonFault>,
) -> Option<ErrorBody> {
    let timeout = manifest.timeout.unwrap_or_default();
    let error = match (ran.forced, ran.end) {
        (Some(ForcedEnd::Signalled(signal)), _) => interrupt_error(program, signal),
        // Only the time limit can force an end here.
        (Some(_), _) => timeout_error(program, timeout),
        (None, ProcessExit::Killed(signal)) => kill_error(program, signal),
        (None, ProcessExit::Unknown) => {
            let message = format!("it is unknown how `{program}` ended");
            ErrorBody::new("lost", ExitStatus::Upstream.code(), message)
        }
        (None, ProcessExit::Exited(code)) => return exit_error(manifest, program, code, &ran.errors, fault),
    };
    Some(with_end_of_stderr(error, &ran.errors))
}

fn timeout_error(program: &str, timeout: Duration) -> ErrorBody {
    let message = format!("`{program}` took longer than {} s, and was ended", timeout.as_secs_f64());
    let mut error = ErrorBody::new("timeout", ExitStatus::Upstream.code(), message)
        .about(FieldPath::root().key("timeout_seconds"))
        .with_hint(
            "Ask it for less, or raise `timeout_seconds` in the manifest. What it wrote is in `data`.",
        );
    // A limit in a response is an integer, so a time limit with a fraction of a second is omitted.
    error.limit = (timeout.subsec_nanos() == 0).then_some(timeout.as_secs());
    error
}

/// Returns the error of a tool that was ended because Endmark received a signal.
fn interrupt_error(program: &str, signal: Signal) -> ErrorBody {
    let message =
        format!("{} was received, and forwarded to `{program}`", signals::signal_name(signal.as_raw()));
    let (code, exit) = signal_code(signal);
    ErrorBody::new(code, exit.code(), message)
}

/// Returns the error code and the exit code for a signal. All commands use the same codes.
pub(crate) fn signal_code(signal: Signal) -> (&'static str, ExitStatus) {
    match signal {
        Signal::INT => ("interrupted", ExitStatus::Interrupted),
        Signal::HUP => ("hung_up", ExitStatus::HungUp),
        _ => ("terminated", ExitStatus::Terminated),
    }
}

fn kill_error(program: &str, signal: i32) -> ErrorBody {
    let message = format!("`{program}` was killed by {}", signals::signal_name(signal));
    let mut error = ErrorBody::new("killed", ExitStatus::Upstream.code(), message)
        .about(FieldPath::root().key("signal"))
        .with_hint("What it wrote before is in `data`.");
    error.actual = u64::try_from(signal).ok();
    error
}

fn exit_error(
    manifest: &Manifest,
    program: &str,
    code: i32,
    errors: &CapturedStream,
    fault: Option<&JsonFault>,
) -> Option<ErrorBody> {
    let ended = format!("`{program}` ended with exit code {code}");
    let mut error = match manifest.exit_codes.get(&code) {
        Some(ExitMeaning::Success) => return fault.map(|fault| fault_error(program, fault)),
        None if code == 0 => return fault.map(|fault| fault_error(program, fault)),
        None => {
            with_end_of_stderr(ErrorBody::new("command_failed", ExitStatus::Upstream.code(), ended), errors)
        }
        Some(ExitMeaning::Error { code, exit, message, hint }) => {
            let message = message.clone().unwrap_or(ended);
            let error = ErrorBody::new(code.as_str(), exit.code(), message);
            match hint {
                Some(hint) => error.with_hint(hint.as_str()),
                None => with_end_of_stderr(error, errors),
            }
        }
    };
    error.phase = Phase::Execution;
    error.field = Some(FieldPath::root().key("exit_code"));
    error.actual = u64::try_from(code).ok();
    Some(error)
}

/// Returns the error of a tool that exits with success although its output is faulty.
fn fault_error(program: &str, fault: &JsonFault) -> ErrorBody {
    match fault {
        JsonFault::Truncated { bytes } => {
            let message =
                format!("the JSON that `{program}` wrote is cut: it ends in the middle after {bytes} bytes");
            ErrorBody::new("truncated", ExitStatus::Negative.code(), message)
                .with_hint("`data` has its beginning, with brackets closed. Warnings list unfinished values.")
        }
        JsonFault::Malformed { index, reason } => {
            let message = format!("`{program}` wrote no JSON: byte {index}: {reason}");
            ErrorBody::new("malformed", ExitStatus::Upstream.code(), message).with_hint(
                "The output is in `data.text`. With `kind = \"text\"` or `\"auto\"` in the manifest, it is accepted.",
            )
        }
    }
}

/// Adds the end of standard error to the message. Does nothing if it is empty.
fn with_end_of_stderr(error: ErrorBody, errors: &CapturedStream) -> ErrorBody {
    let kept: Cow<'_, [u8]> = match &errors.tail {
        Some(tail) => tail.into(),
        None => errors.head.as_slice().into(),
    };
    let shown = &kept[kept.len().saturating_sub(MAX_SHOWN_ERROR_BYTES)..];
    let text = String::from_utf8_lossy(shown);
    let text = to_safe_lines(text.trim_start_matches(char::REPLACEMENT_CHARACTER).trim());
    if text.is_empty() {
        return error;
    }
    let hint = match &error.hint {
        Some(hint) => format!("{hint} Its standard error ends with: {text}"),
        None => format!("Its standard error ends with: {text}"),
    };
    error.with_hint(hint)
}
