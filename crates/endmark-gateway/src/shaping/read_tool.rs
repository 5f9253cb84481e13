//! Answers calls of the tool with which a model reads parts of a capped result (CX-5).

use endmark_context::cap::{CapError, Limits, ReadMethod};
use endmark_context::read::tool::{DESCRIPTION, NAME, ReadRequest, ReadRequestError, SCHEMA};
use endmark_store::{ExcerptReadError, Handle, Reader, StoreError};
use endmark_wire::own_tool::{CallAnswer, OwnTool};

use super::ShapingContext;

/// The tool as requests offer it to the model.
pub(crate) const READ_TOOL: OwnTool<'static> =
    OwnTool { name: NAME, description: DESCRIPTION, schema: SCHEMA };

/// Maximum number of characters that one call reads, which are about 12,000 tokens. A turn may contain several calls.
const READ_LIMIT_CHARS: usize = 50_000;

/// Error of a read. The model gets its message.
#[derive(Debug, thiserror::Error)]
enum ReadFailure {
    #[error(transparent)]
    Request(#[from] ReadRequestError),
    #[error(transparent)]
    Read(#[from] ExcerptReadError),
    #[error(transparent)]
    Cap(#[from] CapError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Answers a call of the tool. The model can read only what the client of this request may read.
pub(crate) async fn answer_read_call(subject: &ShapingContext<'_>, arguments: &str) -> CallAnswer {
    match read_requested_part(subject, arguments).await {
        Ok(text) => CallAnswer { text, is_error: false },
        Err(error) => CallAnswer { text: error.to_string(), is_error: true },
    }
}

async fn read_requested_part(subject: &ShapingContext<'_>, arguments: &str) -> Result<String, ReadFailure> {
    let request = ReadRequest::parse(arguments)?;
    let unknown = || StoreError::NoOutput { handle: request.handle.clone() };
    let handle = Handle::parse(&request.handle).ok_or_else(unknown)?;
    let cap = subject.settings.cap;
    let limits = Limits {
        most: cap.max_chars.min(READ_LIMIT_CHARS),
        handle: Some(request.handle),
        way: ReadMethod::Tool,
        ..Limits::default()
    };
    let (owner, read) = (subject.owner(), handle.clone());
    let work = move |reader: &Reader| {
        let excerpt = reader.output(&read, &owner)?.part(&request.part, &limits);
        Ok(excerpt.map_err(ReadFailure::from).and_then(|excerpt| Ok(excerpt.to_model_text(&limits)?)))
    };
    let text = subject.wait_for_store(subject.store.read_output(&handle, work)).await??;
    if let Err(error) = subject.wait_for_store(subject.store.touch_output(&handle)).await {
        tracing::warn!(request = subject.id, %error, "the use of an output cannot be recorded");
    }
    Ok(text)
}
