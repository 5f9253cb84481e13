//! A thread that waits for signals that end the process, and answers them.

use std::io;
use std::process;
use std::thread;
use std::time::Instant;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::AnswerRight;
use crate::envelope::Envelope;
use crate::error::ErrorBody;

/// The number that shells add to a signal's number to get the exit code.
const SIGNAL_EXIT_OFFSET: u8 = 128;

/// Waits for signals in a separate thread, so that the signal handler only has to wake it.
pub(super) fn answer_pending_signals(started: Instant) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let wait = move || {
        let mut is_repeated = false;
        for signal in signals.forever() {
            match AnswerRight::claim() {
                Some(answering) => process::exit(i32::from(answer_one(answering, signal, started))),
                // The answer is already being written, so end the process only at a second signal.
                None if is_repeated => process::exit(i32::from(signal_error(signal).exit_code)),
                None => is_repeated = true,
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

fn answer_one(answering: AnswerRight, signal: i32, started: Instant) -> u8 {
    let error = signal_error(signal);
    let code = error.exit_code;
    let envelope = Envelope::<()>::failure(error).with_duration(started.elapsed());
    envelope.document().map_or(code, |document| answering.write(&document))
}

fn signal_error(signal: i32) -> ErrorBody {
    let (code, name) = match signal {
        SIGINT => ("interrupted", "SIGINT"),
        SIGHUP => ("hung_up", "SIGHUP"),
        _ => ("terminated", "SIGTERM"),
    };
    let exit_code = SIGNAL_EXIT_OFFSET.saturating_add(u8::try_from(signal).unwrap_or_default());
    ErrorBody::new(code, exit_code, format!("ended by {name} before it was done"))
}
