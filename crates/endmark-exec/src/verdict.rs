//! Interprets how a tool ended: success, or an error with a code. (EN-1)

use std::borrow::Cow;
use std::time::Duration;

use endmark_envelope::{ErrorBody, FieldPath, Phase};
use endmark_failure::{Exit, to_safe_lines};
use endmark_process::{Captured, End, FinishedCommand, ForcedEnd, signals};
use rustix::process::Signal;

use super::manifest::{ExitMeaning, Manifest};
use super::output::JsonFault;

/// Maximum bytes from the end of standard error that an error repeats.
const SHOWN_ERROR_BYTES: usize = 1000;

/// Returns the error of a finished tool, if any. A forced end takes precedence over the exit code, and that
/// over the output.
pub(crate) fn verdict(
    manifest: &Manifest,
    program: &str,
    ran: &FinishedCommand,
    fault: Option<&JsonFault>,
) -> Option<ErrorBody> {
    let timeout = manifest.timeout.unwrap_or_default();
    let error = match (ran.forced, ran.end) {
        (Some(ForcedEnd::Signalled(signal)), _) => interrupt_error(program, signal),
        // The only limit that can stop a tool here is the time limit.
        (Some(_), _) => timeout_error(program, timeout),
        (None, End::Killed(signal)) => kill_error(program, signal),
        (None, End::Unknown) => {
            let message = format!("it is unknown how `{program}` ended");
            ErrorBody::new("lost", Exit::Upstream.code(), message)
        }
        (None, End::Exited(code)) => return exit_error(manifest, program, code, &ran.errors, fault),
    };
    Some(with_last_words(error, &ran.errors))
}

fn timeout_error(program: &str, timeout: Duration) -> ErrorBody {
    let message = format!("`{program}` took longer than {} s, and was ended", timeout.as_secs_f64());
    let mut error = ErrorBody::new("timeout", Exit::Upstream.code(), message)
        .about(FieldPath::root().key("timeout_seconds"))
        .with_hint(
            "Ask it for less, or raise `timeout_seconds` in the manifest. What it wrote is in `data`.",
        );
    // The limit in a response is an integer, so a fractional time limit is omitted.
    error.limit = (timeout.subsec_nanos() == 0).then_some(timeout.as_secs());
    error
}

/// Returns the error of a run that ended because Endmark received a signal.
fn interrupt_error(program: &str, signal: Signal) -> ErrorBody {
    let message = format!("{} came, and was passed on to `{program}`", signals::name(signal.as_raw()));
    let (code, exit) = signal_code(signal);
    ErrorBody::new(code, exit.code(), message)
}

/// Returns the error code and the exit code for a signal, the same as in all other commands.
pub(crate) fn signal_code(signal: Signal) -> (&'static str, Exit) {
    match signal {
        Signal::INT => ("interrupted", Exit::Interrupted),
        Signal::HUP => ("hung_up", Exit::HungUp),
        _ => ("terminated", Exit::Terminated),
    }
}

fn kill_error(program: &str, signal: i32) -> ErrorBody {
    let message = format!("`{program}` was killed by {}", signals::name(signal));
    let mut error = ErrorBody::new("killed", Exit::Upstream.code(), message)
        .about(FieldPath::root().key("signal"))
        .with_hint("What it wrote before is in `data`.");
    error.actual = u64::try_from(signal).ok();
    error
}

fn exit_error(
    manifest: &Manifest,
    program: &str,
    code: i32,
    errors: &Captured,
    fault: Option<&JsonFault>,
) -> Option<ErrorBody> {
    let ended = format!("`{program}` ended with exit code {code}");
    let mut error = match manifest.exit_codes.get(&code) {
        Some(ExitMeaning::Success) => return fault.map(|fault| fault_error(program, fault)),
        None if code == 0 => return fault.map(|fault| fault_error(program, fault)),
        None => with_last_words(ErrorBody::new("command_failed", Exit::Upstream.code(), ended), errors),
        Some(ExitMeaning::Error { code, exit, message, hint }) => {
            let message = message.clone().unwrap_or(ended);
            let error = ErrorBody::new(code.as_str(), exit.code(), message);
            match hint {
                Some(hint) => error.with_hint(hint.as_str()),
                None => with_last_words(error, errors),
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
            ErrorBody::new("truncated", Exit::No.code(), message)
                .with_hint("`data` is its beginning, closed; the warnings say what in it is unfinished.")
        }
        JsonFault::Malformed { index, reason } => {
            let message = format!("`{program}` wrote no JSON: byte {index}: {reason}");
            ErrorBody::new("malformed", Exit::Upstream.code(), message).with_hint(
                "What it wrote is in `data.text`; `kind = \"text\"` or `\"auto\"` in the manifest takes it as it is.",
            )
        }
    }
}

/// Adds the end of standard error to the error, if there is any.
fn with_last_words(error: ErrorBody, errors: &Captured) -> ErrorBody {
    let kept: Cow<'_, [u8]> = match &errors.tail {
        Some(tail) => tail.into(),
        None => errors.head.as_slice().into(),
    };
    let shown = &kept[kept.len().saturating_sub(SHOWN_ERROR_BYTES)..];
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
