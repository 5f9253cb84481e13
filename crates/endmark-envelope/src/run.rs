//! Runs a process that always answers with one envelope and one exit code. (EN-1)
//!
//! This is the only part of the library that uses a clock, standard output, signals and the process.

mod panics;
#[cfg(unix)]
mod signals;

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::document::Document;
use crate::envelope::Envelope;
use crate::error::{BUG_EXIT_CODE, ErrorBody, Phase};

/// The exit code if the answer cannot be written, which is an external failure.
const WRITE_FAILURE_EXIT_CODE: u8 = 3;

/// Whether a thread has already claimed the right to answer.
static IS_ANSWER_CLAIMED: AtomicBool = AtomicBool::new(false);

/// Runs a command. The result is one envelope on standard output, and the exit code of its error or 0.
///
/// - The result of `main` is checked for cuts, capped and written. An error becomes the envelope's `error`.
/// - A panic results in exit code 70 and the code `internal_error`. Its message goes to standard error as
///   usual. With `panic = "abort"`, no answer is possible.
/// - `SIGTERM`, `SIGINT` and `SIGHUP` result in exit codes 143, 130 and 129, on Unix. A separate thread waits
///   for these signals, and answers unless `main` is already answering. No async runtime is needed.
/// - If the answer cannot be written, standard error reports this, and the exit code is 3 or that of the
///   error. It is not a failure if the reader closed its input before the first byte.
///
/// `main` itself must not print to standard output.
///
/// ```no_run
/// use endmark_envelope::{Envelope, ErrorBody, run};
///
/// fn main() -> std::process::ExitCode {
///     run(|| {
///         let name = std::env::args().nth(1).ok_or_else(|| ErrorBody::new("usage", 2, "a name is missing"))?;
///         Ok::<_, ErrorBody>(Envelope::success(format!("Hello, {name}")))
///     })
/// }
/// ```
pub fn run<T, E>(main: impl FnOnce() -> Result<Envelope<T>, E>) -> ExitCode
where
    T: Serialize,
    E: Into<ErrorBody>,
{
    let started = Instant::now();
    panics::record_panic_locations();
    if let Err(error) = answer_signals(started) {
        write_to_stderr(&format!("cannot watch signals: {error}"));
    }
    let envelope = match panic::catch_unwind(AssertUnwindSafe(main)) {
        Ok(Ok(envelope)) => envelope,
        Ok(Err(error)) => Envelope::failure(error.into()),
        Err(panic) => Envelope::failure(internal_error(panics::message(&*panic))),
    };
    let document = envelope.with_duration(started.elapsed()).document().unwrap_or_else(|error| {
        let error = internal_error(format!("the answer cannot be JSON: {error}")).in_phase(Phase::Output);
        Document { data: serde_json::Value::Null, error: Some(error), warnings: Vec::new(), duration_ms: 0 }
    });
    AnswerRight::claim_or_wait().write(&document).into()
}

fn internal_error(message: String) -> ErrorBody {
    ErrorBody::new("bug", BUG_EXIT_CODE, message).with_hint("This is a bug: please report it.")
}

/// Answers signals that end the process from now on, on Unix; see [`run`].
///
/// Call it once, before any other code starts threads that handle signals.
pub fn answer_signals(started: Instant) -> io::Result<()> {
    #[cfg(unix)]
    return signals::answer_pending_signals(started);
    #[cfg(not(unix))]
    {
        let _ = started;
        Ok(())
    }
}

/// The right to answer. It exists only once, so that a signal and an answer do not both write a document.
#[derive(Debug)]
pub struct AnswerRight(());

impl AnswerRight {
    /// Claims the right to answer. Returns `None` if another thread has claimed it.
    pub fn claim() -> Option<Self> {
        (!IS_ANSWER_CLAIMED.swap(true, Ordering::SeqCst)).then_some(Self(()))
    }

    /// Claims the right to answer. If another thread has claimed it, waits for the end of the process.
    pub fn claim_or_wait() -> Self {
        match Self::claim() {
            Some(answering) => answering,
            None => wait_for_the_end(),
        }
    }

    /// Writes the document to standard output, and returns the exit code (EN-1).
    pub fn write(self, document: &Document) -> u8 {
        let code = document.exit_code();
        match document.write_to(&mut io::stdout().lock()) {
            Ok(()) => code,
            Err(error) if error.is_unread() => code,
            Err(error) => {
                write_to_stderr(&error.to_string());
                if code == 0 { WRITE_FAILURE_EXIT_CODE } else { code }
            }
        }
    }
}

fn wait_for_the_end() -> ! {
    loop {
        thread::park_timeout(Duration::from_secs(1));
    }
}

/// Writes to standard error. If standard error is closed, too, nothing can be reported.
fn write_to_stderr(message: &str) {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
}
