//! Caps the output of a tool for its response, and stores the full output. (CX-5)

use std::io::{Cursor, ErrorKind, Read};

use endmark_context::cap::MIN_LIMIT;
use endmark_envelope::{FieldPath, TRUNCATION_MARKER, Warning};
use endmark_failure::CommandError;
use endmark_process::FinishedCommand;
use endmark_store::{CapRequest, ChunkSink, Handle, OutputKeeper, cap_chunks_and_keep, cap_error};

use super::{RESPONSE_TOO_LARGE_HINT, unfinished_reason};
use crate::manifest::OutputKind;
use crate::output::{OutputData, cap_data, is_text_incomplete};

/// An output is read in pieces of this many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Code of the warning that an output could not be capped.
const NOT_CAPPED: &str = "NOT_CAPPED";

/// The hint for that warning. Capping can only fail here if a very large output cannot be copied to a file.
const DISK_SPACE_HINT: &str =
    "set TMPDIR to a folder with room for all of it, or pipe the command into `endmark cap`";

/// How to cap the output of a tool.
pub struct OutputCapping {
    request: CapRequest,
    keeper: OutputKeeper,
    handle: Option<Handle>,
    warnings: Vec<Warning>,
}

impl OutputCapping {
    /// Returns a plan for this request. The response will contain the warnings.
    pub fn new(request: CapRequest, keeper: OutputKeeper, warnings: Vec<Warning>) -> Self {
        Self { request, keeper, handle: None, warnings }
    }

    /// Returns the data of a command within the limits. If capping fails, returns the uncapped data with a
    /// warning.
    pub(super) fn cap_or_warn(
        &mut self,
        mut data: OutputData,
        ran: &mut FinishedCommand,
        kind: OutputKind,
    ) -> OutputData {
        data.warnings.append(&mut self.warnings);
        match self.cap_data(data.clone(), ran, kind) {
            Ok(data) => data,
            Err(error) => {
                let message = format!("the output is neither capped nor kept: {error}; {DISK_SPACE_HINT}");
                data.warnings.push(Warning::notice(NOT_CAPPED, message));
                data
            }
        }
    }

    fn cap_data(
        &mut self,
        data: OutputData,
        ran: &mut FinishedCommand,
        kind: OutputKind,
    ) -> Result<OutputData, CommandError> {
        let is_all_captured = ran.output.is_whole();
        let mut source: Box<dyn Read> = match ran.copy.take() {
            _ if is_all_captured => Box::new(Cursor::new(ran.output.head.clone())),
            Some(Ok(file)) => Box::new(file),
            Some(Err(source)) => return Err(CommandError::Read { path: "the copy of it".into(), source }),
            None => return Err(CommandError::Bug("there is no copy of the output".to_owned())),
        };
        let mut cap_request = self.request.clone();
        if is_text_incomplete(&data, unfinished_reason(ran)) {
            // The marker counts towards the limit, whatever its unit is.
            cap_request.limits.most =
                cap_request.limits.most.saturating_sub(TRUNCATION_MARKER.len()).max(MIN_LIMIT);
        }
        let (printed, handle) = cap_chunks_and_keep(
            |take| for_each_chunk(&mut source, take),
            cap_request,
            FieldPath::data(),
            &mut self.keeper,
        )?;
        if !printed.is_cut {
            return Ok(data);
        }
        let mut limits = self.request.limits.clone();
        limits.handle = handle.as_ref().map(|handle| handle.as_str().to_owned());
        self.handle = handle;
        let data = cap_data(data, is_all_captured, kind, printed, limits, unfinished_reason(ran));
        data.map_err(|error| cap_error(&error))
    }

    /// Waits until the stored output is durable. Returns the hint for a response that is still too large.
    pub(super) fn finish(self) -> String {
        self.keeper.close();
        // This hint must not be longer than the one that it replaces.
        self.handle
            .map_or_else(|| RESPONSE_TOO_LARGE_HINT.to_owned(), |handle| format!("`endmark read {handle}`"))
    }
}

fn for_each_chunk(source: &mut dyn Read, take: ChunkSink<'_>) -> Result<(), CommandError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(CommandError::Read { path: "the output".into(), source }),
        }
    }
}
