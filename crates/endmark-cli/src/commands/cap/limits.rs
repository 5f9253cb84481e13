//! What limits are asked for, by arguments, by a line of a batch, or by the configuration.

use endmark_context::cap::{Asked as AskedFormat, FORMATS, Keep, Limits, Unit};
use endmark_failure::CommandError;

use super::arguments::{Cap, KeepChoice, Most};
use crate::config::CapSettings;

/// What is asked for, as far as it is the same for every line of a batch.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Asked {
    pub(in crate::commands) format: AskedFormat,
    pub(in crate::commands) limits: Limits,
}

/// Tokens as today's OpenAI models count them; others are within a few percent of it for code and English.
fn tokens(text: &str) -> usize {
    usize::try_from(endmark_context::count::Family::O200k.tokens(text)).unwrap_or(usize::MAX)
}

/// A number of tokens.
fn in_tokens() -> Unit {
    Unit::Tokens(tokens)
}

/// What the arguments ask for, and the configuration where they say nothing.
pub(super) fn of_arguments(arguments: &Cap, settings: &CapSettings) -> Result<Asked, CommandError> {
    let Most { chars, bytes, tokens } = arguments.most;
    let (most, unit) = most(chars, bytes, tokens)
        .map_err(|message| CommandError::input("invalid_limit", message, "Give one limit."))?
        .unwrap_or((settings.max_chars, Unit::Chars));
    let limits = Limits {
        most: count(most),
        unit,
        max_items: count(arguments.max_items.unwrap_or(settings.max_items)),
        keep: match arguments.keep {
            KeepChoice::Both => Keep::Both,
            KeepChoice::Head => Keep::Head,
            KeepChoice::Tail => Keep::Tail,
        },
        ..Limits::default()
    };
    limits.check().map_err(|error| super::refused(&error.into()))?;
    let format = AskedFormat::named(&arguments.format).unwrap_or_default();
    Ok(Asked { format, limits })
}

/// What the arguments ask for; where they say nothing the configuration, as far as it stays below what the agent itself
/// would cut at.
pub(in crate::commands) fn for_hook(
    typed: &Most,
    max_items: Option<u64>,
    own_limit: u64,
    settings: &CapSettings,
) -> Result<Asked, CommandError> {
    let (most, unit) = most(typed.chars, typed.bytes, typed.tokens)
        .map_err(|message| CommandError::input("invalid_limit", message, "Give one limit."))?
        .unwrap_or((settings.max_chars.min(own_limit), Unit::Chars));
    let max_items = count(max_items.unwrap_or(settings.max_items));
    let limits = Limits { most: count(most), unit, max_items, ..Limits::default() };
    limits.check().map_err(|error| super::refused(&error.into()))?;
    Ok(Asked { format: AskedFormat::default(), limits })
}

/// The one limit that is given, with its unit.
pub(in crate::commands) fn most(
    chars: Option<u64>,
    bytes: Option<u64>,
    tokens: Option<u64>,
) -> Result<Option<(u64, Unit)>, String> {
    match (chars, bytes, tokens) {
        (None, None, None) => Ok(None),
        (Some(most), None, None) => Ok(Some((most, Unit::Chars))),
        (None, Some(most), None) => Ok(Some((most, Unit::Bytes))),
        (None, None, Some(most)) => Ok(Some((most, in_tokens()))),
        _ => Err("`max_chars`, `max_bytes` and `max_tokens` exclude one another".to_owned()),
    }
}

/// The format of this name.
pub(super) fn format(name: &str) -> Result<AskedFormat, String> {
    AskedFormat::named(name).ok_or_else(|| format!("unknown format `{name}`: use {}", FORMATS.join(", ")))
}

/// Which part is kept.
pub(super) fn keep(name: &str) -> Result<Keep, String> {
    match name {
        "both" => Ok(Keep::Both),
        "head" => Ok(Keep::Head),
        "tail" => Ok(Keep::Tail),
        _ => Err(format!("unknown `keep`: `{name}`: use both, head or tail")),
    }
}

pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
