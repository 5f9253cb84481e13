//! `endmark exec`: any command, with limits, an envelope and honest ends. (EN-1 to EN-5)

pub(crate) mod arguments;
mod before;
mod capping;

use std::io;
use std::time::Instant;

use endmark_envelope::{Answering, Document, ErrorBody, RESPONSE_TOO_LARGE, Warning};
use endmark_failure::{CommandError, Exit};
use endmark_process::{CaptureLimits, End, OutputLeft, Plan, Ran, Signals, Times, run_captured};
use serde_json::Value;

use arguments::Exec;
use capping::Capping;

use crate::answer::Outcome;
use crate::context::Context;
use crate::exec::limits::is_given;
use crate::exec::manifest::Manifest;
use crate::exec::output::{self, Data};
use crate::exec::page::{Paging, page};
use crate::exec::verdict::{not_started, verdict};
use crate::exec::{built_in, shortened};
use crate::terminal::JsonOutput;

/// The code of a warning about a process that a tool left behind.
const OUTPUT_LEFT_OPEN: &str = "OUTPUT_LEFT_OPEN";

/// What to do about an answer that is over its limit. It is shorter than the hint it stands for.
const TOO_LARGE_HINT: &str = "Ask for less, or for a list.";

/// Checks what a tool is given, runs it, and answers in an envelope whatever happens.
pub(crate) fn run(context: &Context, arguments: &Exec) -> Result<Outcome, CommandError> {
    let started = Instant::now();
    let manifest = match &arguments.manifest {
        Some(path) => before::manifest(path)?,
        None => built_in::of(&arguments.command),
    };
    let is_given = |flags: &[String]| is_given(&manifest, &arguments.command, flags);
    let manifest = Manifest { output: manifest.output.clone().given(is_given), ..manifest.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| system(&error))?;
    if arguments.cursor.is_some() && manifest.output.pages.is_none() {
        let hint = "`pages = \"data\"` in `[output]` of the manifest names it.";
        return Err(CommandError::input("usage", "the manifest names no list that has pages", hint));
    }
    let mut capping = Capping::asked_for(context, arguments)?;
    let ran = runtime.block_on(ran(context, &manifest, arguments));
    // Whoever still waits for standard input would wait for ever.
    runtime.shutdown_background();
    let document = match ran.inspect_err(|_| watch(context, started))? {
        Ok(ran) => answer(&manifest, arguments, ran, capping.as_mut()),
        Err(document) => document,
    };
    let hint = capping.map_or_else(|| TOO_LARGE_HINT.to_owned(), Capping::close);
    let document = match paging(&manifest, arguments) {
        Some(paging) if is_listed(&document) => {
            page(document, &paging).unwrap_or_else(|error| failed(error.into()))
        }
        _ => document,
    };
    write(context, document, &manifest, &hint, started).map(Outcome::Streamed)
}

/// Whether an answer is to have the list that pages are of. Behind an error there may be data, or none.
fn is_listed(document: &Document) -> bool {
    document.error.is_none() || !document.data.is_null()
}

/// From now on a second signal ends the process, although the runtime that watched them is gone.
fn watch(context: &Context, started: Instant) {
    if let Err(error) = endmark_envelope::answer_signals(started) {
        context.terminal.warn(&format!("cannot watch signals: {error}"));
    }
}

/// Runs the command; the inner error is the answer that nothing was started.
async fn ran(
    context: &Context,
    manifest: &Manifest,
    arguments: &Exec,
) -> Result<Result<Ran, Document>, CommandError> {
    let mut signals = Signals::watch().map_err(|error| system(&error))?;
    let (program, words) = arguments.command.split_first().ok_or_else(|| {
        CommandError::input("usage", "there is no command", "Write it behind `--`: `-- git log`.")
    })?;
    if let Some(Err(error)) = paging(manifest, arguments).map(|paging| paging.check()) {
        return Ok(Err(failed(error.into())));
    }
    let name = program.to_string_lossy();
    let stdin = match before::prepare(context, manifest, &arguments.command, &mut signals).await? {
        Ok(stdin) => stdin,
        Err(error) => return Ok(Err(failed(error))),
    };
    let plan = Plan {
        program,
        arguments: words,
        variables: &[],
        withheld: &[],
        folder: None,
        stdin,
        times: Times {
            whole: manifest.timeout,
            silence: None,
            last_word: manifest.grace,
            grace: manifest.grace,
        },
        keeper: None,
    };
    let limits = CaptureLimits {
        output: manifest.output.max_captured_bytes,
        passed_errors: if context.terminal.quiet { 0 } else { manifest.max_stderr_bytes },
        copies_output: arguments.cap,
    };
    let ran = run_captured(plan, limits, &mut signals).await;
    Ok(ran.map_err(|error| failed(not_started(&name, &error))))
}

/// What a command that ran has to say, and how it ended.
fn answer(manifest: &Manifest, arguments: &Exec, mut ran: Ran, capping: Option<&mut Capping>) -> Document {
    let name = arguments.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    let mut data = output::read(&ran.output, &manifest.output, unended(&ran));
    let error = verdict(manifest, &name, &ran, data.fault.as_ref());
    if let Some(capping) = capping {
        data = capping.within(data, &mut ran, manifest.output.kind);
    }
    output::disclose(&mut data, &manifest.output.fields);
    if ran.output_left != OutputLeft::Closed {
        let message = format!(
            "a process that `{name}` left behind still has its output open; what it writes from now on is not here"
        );
        data.warnings.push(Warning::notice(OUTPUT_LEFT_OPEN, message));
    }
    let Data { value, warnings, .. } = data;
    Document { data: value, error, warnings, duration_ms: 0 }
}

/// Why something may be missing behind what a tool wrote, if anything may.
fn unended(ran: &Ran) -> Option<&'static str> {
    match (ran.forced, ran.end, ran.output_left) {
        (None, End::Exited(_), OutputLeft::Closed | OutputLeft::Silent) => None,
        (None, End::Exited(_), OutputLeft::Written) => {
            Some("a process that the command left behind was still writing when the time was up")
        }
        _ => Some("the command was made to end before it came to its own end"),
    }
}

/// The list that has pages, if the manifest names one, and the page that is asked for. What is capped has none.
fn paging<'a>(manifest: &'a Manifest, arguments: &'a Exec) -> Option<Paging<'a>> {
    manifest.output.pages.as_ref().filter(|_| !arguments.cap).map(|list| Paging {
        list,
        command: &arguments.command,
        cursor: arguments.cursor.as_deref(),
        max_response_bytes: manifest.output.max_response_bytes,
    })
}

/// Writes the one document; nothing that is half written ends well, whoever went away.
fn write(
    context: &Context,
    document: Document,
    manifest: &Manifest,
    too_large_hint: &str,
    started: Instant,
) -> Result<Exit, CommandError> {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let document = Document { duration_ms, ..document };
    let mut document = shortened::within(&document, manifest.output.max_response_bytes);
    if let Some(error) = document.error.as_mut().filter(|error| error.code == RESPONSE_TOO_LARGE) {
        error.hint = Some(too_large_hint.to_owned());
    }
    let exit = Exit::of_code(document.exit_code());
    // The command has done what it does: a signal must not answer in its place that nothing was done.
    let _right = Answering::claim_or_wait();
    watch(context, started);
    document.write_to(&mut JsonOutput::new(io::stdout().lock())).map_err(CommandError::Partial)?;
    Ok(exit)
}

fn failed(error: ErrorBody) -> Document {
    Document { data: Value::Null, error: Some(error), warnings: Vec::new(), duration_ms: 0 }
}

fn system(error: &io::Error) -> CommandError {
    CommandError::Upstream { message: format!("the system does not let it run: {error}"), hint: None }
}
