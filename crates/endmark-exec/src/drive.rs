//! Runs a tool. Checks its input first, and builds the response document afterwards. (EN-1 to EN-5)

mod capping;
mod preparation;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use endmark_envelope::{Document, ErrorBody, RESPONSE_TOO_LARGE, Warning};
use endmark_failure::{CommandError, start_error};
use endmark_process::{
    CaptureLimits, CommandPlan, EndSignals, FinishedCommand, OutputState, ProcessExit, TimeLimits,
    run_captured,
};
use serde_json::Value;

use crate::limits::has_flag;
use crate::manifest::Manifest;
use crate::output::{self, OutputData};
use crate::page::{PageRequest, paginate};
use crate::verdict::error_of_run;
use crate::{built_in, shortened};

pub use capping::OutputCapping;

/// Code of the warning that a process of the tool is still running and has the output open.
const OUTPUT_LEFT_OPEN: &str = "OUTPUT_LEFT_OPEN";

/// The hint for a response above its limit. It must not be longer than the hint that it replaces.
const RESPONSE_TOO_LARGE_HINT: &str = "Ask for less, or for a list.";

/// A command with its manifest, and possibly a cursor.
#[derive(Debug)]
pub struct ManifestTool<'a> {
    command: &'a [OsString],
    manifest: Manifest,
    cursor: Option<&'a str>,
}

/// The response of a tool, with the hint for the case that the response is too large.
#[derive(Debug)]
pub struct ToolResponse {
    document: Document,
    too_large_hint: String,
}

impl<'a> ManifestTool<'a> {
    /// Returns a tool for a command. Uses the manifest in this file, or a built-in manifest.
    pub fn new(command: &'a [OsString], manifest: Option<&Path>) -> Result<Self, CommandError> {
        let manifest = match manifest {
            Some(path) => preparation::load_manifest(path)?,
            None => built_in::find_manifest(command),
        };
        let is_given = |flags: &[String]| has_flag(&manifest, command, flags);
        let manifest = Manifest { output: manifest.output.clone().with_flags(is_given), ..manifest.clone() };
        Ok(Self { command, manifest, cursor: None })
    }

    /// Sets the cursor, so that the tool returns the page after it.
    pub fn with_cursor(self, cursor: Option<&'a str>) -> Result<Self, CommandError> {
        if cursor.is_some() && self.manifest.output.pages.is_none() {
            let hint = "`pages = \"data\"` in `[output]` of the manifest names it.";
            return Err(CommandError::input("usage", "the manifest names no list that has pages", hint));
        }
        Ok(Self { cursor, ..self })
    }

    /// Checks the tool's input, runs the tool, and returns a response. Fails if no response is possible.
    pub fn run(
        &self,
        mut capping: Option<OutputCapping>,
        is_quiet: bool,
        progress: &dyn Fn(&str),
    ) -> Result<ToolResponse, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| system_error(&error))?;
        // A capped output is not divided into pages.
        let paging = self.page_request().filter(|_| capping.is_none());
        let ran = runtime.block_on(self.run_command(paging.as_ref(), capping.is_some(), is_quiet, progress));
        // Do not wait for the thread that reads standard input, because it may be blocked forever.
        runtime.shutdown_background();
        let document = match ran? {
            Ok(ran) => self.build_document(ran, capping.as_mut()),
            Err(document) => document,
        };
        let too_large_hint =
            capping.map_or_else(|| RESPONSE_TOO_LARGE_HINT.to_owned(), OutputCapping::finish);
        let document = match paging {
            Some(paging) if should_have_list(&document) => {
                paginate(document, &paging).unwrap_or_else(|error| error_document(error.into()))
            }
            _ => document,
        };
        Ok(ToolResponse { document, too_large_hint })
    }

    /// Runs the command. The inner error is the response if the tool must not be started.
    async fn run_command(
        &self,
        paging: Option<&PageRequest<'_>>,
        is_copied: bool,
        is_quiet: bool,
        progress: &dyn Fn(&str),
    ) -> Result<Result<FinishedCommand, Document>, CommandError> {
        let manifest = &self.manifest;
        let mut signals = EndSignals::watch().map_err(|error| system_error(&error))?;
        let (program, words) = self.command.split_first().ok_or_else(|| {
            CommandError::input("usage", "no command is given", "Write it after `--`: `-- git log`.")
        })?;
        if let Some(Err(error)) = paging.map(PageRequest::check) {
            return Ok(Err(error_document(error.into())));
        }
        let name = program.to_string_lossy();
        let stdin = match preparation::prepare_input(progress, manifest, self.command, &mut signals).await? {
            Ok(stdin) => stdin,
            Err(error) => return Ok(Err(error_document(error))),
        };
        let plan = CommandPlan {
            program,
            arguments: words,
            variables: &[],
            withheld: &[],
            folder: None,
            stdin,
            limits: TimeLimits {
                total: manifest.timeout,
                max_silence: None,
                exit_grace: manifest.grace,
                grace: manifest.grace,
            },
            keeper: None,
        };
        let limits = CaptureLimits {
            max_captured_output_bytes: manifest.output.max_captured_bytes,
            max_forwarded_error_bytes: if is_quiet { 0 } else { manifest.max_stderr_bytes },
            copies_output: is_copied,
        };
        let ran = run_captured(plan, limits, &mut signals).await;
        Ok(ran.map_err(|error| error_document(start_error(&name, &error))))
    }

    /// Builds the response after the command has ended.
    fn build_document(&self, mut ran: FinishedCommand, capping: Option<&mut OutputCapping>) -> Document {
        let manifest = &self.manifest;
        let name = self.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        let mut data = output::read(&ran.output, &manifest.output, unfinished_reason(&ran));
        let error = error_of_run(manifest, &name, &ran, data.fault.as_ref());
        if let Some(capping) = capping {
            data = capping.cap_or_warn(data, &mut ran, manifest.output.kind);
        }
        output::disclose_truncation(&mut data, &manifest.output.fields);
        if ran.output_left != OutputState::Closed {
            let message = format!(
                "a process that `{name}` started still has its output open; its later output is missing"
            );
            data.warnings.push(Warning::notice(OUTPUT_LEFT_OPEN, message));
        }
        let OutputData { value, warnings, .. } = data;
        Document { data: value, error, warnings, duration_ms: 0 }
    }

    /// Returns the requested page. Returns `None` if the manifest does not name a list for pages.
    fn page_request(&self) -> Option<PageRequest<'_>> {
        self.manifest.output.pages.as_ref().map(|list| PageRequest {
            list,
            command: self.command,
            cursor: self.cursor,
            max_response_bytes: self.manifest.output.max_response_bytes,
        })
    }

    /// Adds the duration to the response, and shortens the response to the manifest's limit.
    pub fn into_document(&self, answered: ToolResponse, took: Duration) -> Document {
        let ToolResponse { document, too_large_hint } = answered;
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let document = Document { duration_ms, ..document };
        let mut document = shortened::shorten_to(&document, self.manifest.output.max_response_bytes);
        if let Some(error) = document.error.as_mut().filter(|error| error.code == RESPONSE_TOO_LARGE) {
            error.hint = Some(too_large_hint);
        }
        document
    }
}

/// Whether the response should contain the paged list. A response with an error may have no data.
fn should_have_list(document: &Document) -> bool {
    document.error.is_none() || !document.data.is_null()
}

/// Returns the reason why the tool's output may be incomplete. Returns `None` if the tool closed it itself.
fn unfinished_reason(ran: &FinishedCommand) -> Option<&'static str> {
    match (ran.forced, ran.end, ran.output_left) {
        (None, ProcessExit::Exited(_), OutputState::Closed | OutputState::Silent) => None,
        (None, ProcessExit::Exited(_), OutputState::StillWriting) => {
            Some("a process that the command started was still writing when the time was up")
        }
        _ => Some("the command was made to end before it came to its own end"),
    }
}

fn error_document(error: ErrorBody) -> Document {
    Document { data: Value::Null, error: Some(error), warnings: Vec::new(), duration_ms: 0 }
}

fn system_error(error: &io::Error) -> CommandError {
    CommandError::Upstream { message: format!("the system does not allow it to run: {error}"), hint: None }
}
