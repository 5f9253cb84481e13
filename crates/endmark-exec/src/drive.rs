//! Runs a tool: checks its input first, and builds the response document afterwards. (EN-1 to EN-5)

mod capping;
mod preparation;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use endmark_envelope::{Document, ErrorBody, RESPONSE_TOO_LARGE, Warning};
use endmark_failure::{CommandError, not_started};
use endmark_process::{CaptureLimits, End, FinishedCommand, OutputLeft, Plan, Signals, Times, run_captured};
use serde_json::Value;

use crate::limits::has_flag;
use crate::manifest::Manifest;
use crate::output::{self, Data};
use crate::page::{PageRequest, page};
use crate::verdict::verdict;
use crate::{built_in, shortened};

pub use capping::CapPlan;

/// The code of the warning that a tool left a process running, which still has the output open.
const OUTPUT_LEFT_OPEN: &str = "OUTPUT_LEFT_OPEN";

/// The hint for a response over its limit. It must not be longer than the hint that it replaces.
const TOO_LARGE_HINT: &str = "Ask for less, or for a list.";

/// A command with its manifest.
#[derive(Debug)]
pub struct Tool<'a> {
    command: &'a [OsString],
    manifest: Manifest,
    cursor: Option<&'a str>,
}

/// The response of a tool, and the hint to use if the response is still too large.
#[derive(Debug)]
pub struct ToolAnswer {
    document: Document,
    too_large_hint: String,
}

impl<'a> Tool<'a> {
    /// Creates a tool from a command and a manifest file, or the built-in manifest.
    pub fn new(command: &'a [OsString], manifest: Option<&Path>) -> Result<Self, CommandError> {
        let manifest = match manifest {
            Some(path) => preparation::load_manifest(path)?,
            None => built_in::find_manifest(command),
        };
        let is_given = |flags: &[String]| has_flag(&manifest, command, flags);
        let manifest = Manifest { output: manifest.output.clone().with_flags(is_given), ..manifest.clone() };
        Ok(Self { command, manifest, cursor: None })
    }

    /// Requests the page that follows this cursor.
    pub fn with_cursor(self, cursor: Option<&'a str>) -> Result<Self, CommandError> {
        if cursor.is_some() && self.manifest.output.pages.is_none() {
            let hint = "`pages = \"data\"` in `[output]` of the manifest names it.";
            return Err(CommandError::input("usage", "the manifest names no list that has pages", hint));
        }
        Ok(Self { cursor, ..self })
    }

    /// Checks the tool's input, runs the tool, and returns a response. An error means that no response was possible.
    pub fn run(
        &self,
        mut capping: Option<CapPlan>,
        is_quiet: bool,
        progress: &dyn Fn(&str),
    ) -> Result<ToolAnswer, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| system(&error))?;
        // A capped output is not divided into pages.
        let paging = self.paging().filter(|_| capping.is_none());
        let ran = runtime.block_on(self.run_command(paging.as_ref(), capping.is_some(), is_quiet, progress));
        // Do not wait for a thread that still reads standard input: it might never return.
        runtime.shutdown_background();
        let document = match ran? {
            Ok(ran) => self.document(ran, capping.as_mut()),
            Err(document) => document,
        };
        let too_large_hint = capping.map_or_else(|| TOO_LARGE_HINT.to_owned(), CapPlan::close);
        let document = match paging {
            Some(paging) if is_listed(&document) => {
                page(document, &paging).unwrap_or_else(|error| error_document(error.into()))
            }
            _ => document,
        };
        Ok(ToolAnswer { document, too_large_hint })
    }

    /// Runs the command. The inner error is the response if the tool was not started.
    async fn run_command(
        &self,
        paging: Option<&PageRequest<'_>>,
        is_copied: bool,
        is_quiet: bool,
        progress: &dyn Fn(&str),
    ) -> Result<Result<FinishedCommand, Document>, CommandError> {
        let manifest = &self.manifest;
        let mut signals = Signals::watch().map_err(|error| system(&error))?;
        let (program, words) = self.command.split_first().ok_or_else(|| {
            CommandError::input("usage", "no command is given", "Write it after `--`: `-- git log`.")
        })?;
        if let Some(Err(error)) = paging.map(PageRequest::check) {
            return Ok(Err(error_document(error.into())));
        }
        let name = program.to_string_lossy();
        let stdin = match preparation::prepare(progress, manifest, self.command, &mut signals).await? {
            Ok(stdin) => stdin,
            Err(error) => return Ok(Err(error_document(error))),
        };
        let plan = Plan {
            program,
            arguments: words,
            variables: &[],
            withheld: &[],
            folder: None,
            stdin,
            times: Times {
                total: manifest.timeout,
                silence: None,
                exit_grace: manifest.grace,
                grace: manifest.grace,
            },
            keeper: None,
        };
        let limits = CaptureLimits {
            output: manifest.output.max_captured_bytes,
            passed_errors: if is_quiet { 0 } else { manifest.max_stderr_bytes },
            copies_output: is_copied,
        };
        let ran = run_captured(plan, limits, &mut signals).await;
        Ok(ran.map_err(|error| error_document(not_started(&name, &error))))
    }

    /// Returns the response for a command that ran.
    fn document(&self, mut ran: FinishedCommand, capping: Option<&mut CapPlan>) -> Document {
        let manifest = &self.manifest;
        let name = self.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        let mut data = output::read(&ran.output, &manifest.output, unfinished_reason(&ran));
        let error = verdict(manifest, &name, &ran, data.fault.as_ref());
        if let Some(capping) = capping {
            data = capping.cap_or_warn(data, &mut ran, manifest.output.kind);
        }
        output::disclose(&mut data, &manifest.output.fields);
        if ran.output_left != OutputLeft::Closed {
            let message = format!(
                "a process that `{name}` started still has its output open; its later output is missing"
            );
            data.warnings.push(Warning::notice(OUTPUT_LEFT_OPEN, message));
        }
        let Data { value, warnings, .. } = data;
        Document { data: value, error, warnings, duration_ms: 0 }
    }

    /// Returns the requested page, if the manifest names a list to be paged.
    fn paging(&self) -> Option<PageRequest<'_>> {
        self.manifest.output.pages.as_ref().map(|list| PageRequest {
            list,
            command: self.command,
            cursor: self.cursor,
            max_response_bytes: self.manifest.output.max_response_bytes,
        })
    }

    /// Adds the duration to the response, and keeps it within the manifest's limit.
    pub fn into_document(&self, answered: ToolAnswer, took: Duration) -> Document {
        let ToolAnswer { document, too_large_hint } = answered;
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let document = Document { duration_ms, ..document };
        let mut document = shortened::within(&document, self.manifest.output.max_response_bytes);
        if let Some(error) = document.error.as_mut().filter(|error| error.code == RESPONSE_TOO_LARGE) {
            error.hint = Some(too_large_hint);
        }
        document
    }
}

/// Whether a response should contain the paged list. An error may or may not have data.
fn is_listed(document: &Document) -> bool {
    document.error.is_none() || !document.data.is_null()
}

/// Returns the reason why a tool's output may be incomplete, if there is one.
fn unfinished_reason(ran: &FinishedCommand) -> Option<&'static str> {
    match (ran.forced, ran.end, ran.output_left) {
        (None, End::Exited(_), OutputLeft::Closed | OutputLeft::Silent) => None,
        (None, End::Exited(_), OutputLeft::Complete) => {
            Some("a process that the command started was still writing when the time was up")
        }
        _ => Some("the command was made to end before it came to its own end"),
    }
}

fn error_document(error: ErrorBody) -> Document {
    Document { data: Value::Null, error: Some(error), warnings: Vec::new(), duration_ms: 0 }
}

fn system(error: &io::Error) -> CommandError {
    CommandError::Upstream { message: format!("the system does not allow it to run: {error}"), hint: None }
}
