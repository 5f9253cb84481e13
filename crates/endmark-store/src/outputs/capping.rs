//! Caps a tool's output, and stores the full output if anything is left out (CX-5).

use endmark_context::cap::{CapError, CappedValue, Capper, Limits, RequestedFormat, Unit, cap};
use endmark_context::count::Family;
use endmark_envelope::FieldPath;
use endmark_failure::CommandError;

use super::Handle;
use super::keeper::OutputKeeper;

/// The format of an output, and how much of it may be shown.
#[derive(Debug, Clone)]
pub struct CapRequest {
    /// The format in which the output is parsed.
    pub format: RequestedFormat,
    /// The limits.
    pub limits: Limits,
}

impl CapRequest {
    /// Creates a request with this limit. Without a limit, it is `usual_chars` characters.
    pub fn new(limit: Option<(u64, Unit)>, usual_chars: u64, max_items: u64) -> Result<Self, CommandError> {
        let (most, unit) = limit.unwrap_or((usual_chars, Unit::Chars));
        let limits = Limits {
            most: clamped_length(most),
            unit,
            max_items: clamped_length(max_items),
            ..Limits::default()
        };
        limits.check().map_err(|error| cap_error(&error.into()))?;
        Ok(Self { format: RequestedFormat::default(), limits })
    }
}

fn clamped_length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Counts tokens with the tokenizer of current OpenAI models. For code and English, the counts of other
/// models differ by a few percent.
fn tokens(text: &str) -> usize {
    clamped_length(Family::O200k.tokens(text))
}

/// Returns the given limit with its unit. Fails if several limits are given.
pub fn only_limit(
    chars: Option<u64>,
    bytes: Option<u64>,
    tokens: Option<u64>,
) -> Result<Option<(u64, Unit)>, CommandError> {
    match (chars, bytes, tokens) {
        (None, None, None) => Ok(None),
        (Some(most), None, None) => Ok(Some((most, Unit::Chars))),
        (None, Some(most), None) => Ok(Some((most, Unit::Bytes))),
        (None, None, Some(most)) => Ok(Some((most, Unit::Tokens(self::tokens)))),
        _ => {
            let message = "`max_chars`, `max_bytes` and `max_tokens` exclude one another";
            Err(CommandError::input("invalid_limit", message, "Give one limit."))
        }
    }
}

/// Receives each chunk of an output.
pub type ChunkSink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), CommandError>;

/// Caps an output that `each_chunk` passes in chunks, and stores the full output if anything is left out. An
/// output that cannot be capped is also stored, because it may come from a pipe and would be lost.
pub fn cap_chunks_and_keep(
    each_chunk: impl FnOnce(ChunkSink<'_>) -> Result<(), CommandError>,
    mut request: CapRequest,
    called: FieldPath,
    keeper: &mut OutputKeeper,
) -> Result<(CappedValue, Option<Handle>), CommandError> {
    let mut keeping = keeper.begin()?;
    request.limits.handle = Some(keeping.handle().to_owned());
    let reading = Capper::new(request.format, request.limits).map_err(|error| cap_error(&error))?;
    let mut reading = reading.with_path(called);
    let mut pushed = Ok(());
    each_chunk(&mut |chunk| {
        if pushed.is_ok() {
            pushed = reading.push(chunk);
        }
        keeping.push(chunk);
        Ok(())
    })?;
    match pushed.and_then(|()| reading.finish()) {
        Ok(capped) => Ok(keeping.settle(capped)),
        Err(error) => {
            let handle = keeping.handle().to_owned();
            let error = cap_error(&error);
            Err(match (keeping.keep("binary"), error) {
                (Ok(()), CommandError::Input { code, message, hint }) => {
                    let hint = hint.unwrap_or_default();
                    let hint = format!("{hint} All of it is kept: `endmark read {handle}`.");
                    CommandError::Input { code, message, hint: Some(hint) }
                }
                (_, error) => error,
            })
        }
    }
}

/// Caps an output in memory. If anything is left out, stores the full output with the keeper, if there is
/// one.
pub fn cap_and_keep(
    raw: &[u8],
    mut request: CapRequest,
    keeper: Option<&mut OutputKeeper>,
) -> Result<(CappedValue, Option<Handle>), CommandError> {
    let keeping = keeper.map(OutputKeeper::begin).transpose()?;
    request.limits.handle = keeping.as_ref().map(|keeping| keeping.handle().to_owned());
    let capped = cap(raw, request.format, &request.limits).map_err(|error| cap_error(&error))?;
    Ok(match keeping {
        Some(mut keeping) if capped.is_cut => {
            keeping.push(raw);
            keeping.settle(capped)
        }
        Some(_) | None => (capped, None),
    })
}

/// Returns the error for an output that cannot be capped, with a hint.
pub fn cap_error(error: &CapError) -> CommandError {
    match error {
        CapError::Limits(error) => {
            CommandError::input("invalid_limit", error.to_string(), "Give a larger limit.")
        }
        CapError::NotUtf8 { .. } => CommandError::input(
            "not_utf8",
            error.to_string(),
            "With `--format auto` such bytes are shown as U+FFFD, and a binary value is named.",
        ),
    }
}
