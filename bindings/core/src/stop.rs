//! Interprets the stop reasons of providers with the same table as the gateway, and classifies failed
//! requests.

use endmark::wire::finish_reasons::FinishMeaning;
use endmark::{Ending, Stop};
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::{answer, parse};

/// Endmark's own names of stop reasons.
const OWN_STOP_REASONS: [Stop; 7] =
    [Stop::Normal, Stop::Sequence, Stop::Limit, Stop::Refused, Stop::Paused, Stop::Repetition, Stop::Unknown];

/// Returns the stop reason and the ending for a provider's stop reason. Without one, the reply has not ended.
///
/// A stop sequence only shows where the model stopped, which may be in the middle of a document. If a grammar is
/// required, the grammar decides.
pub(crate) fn read(word: Option<&str>, is_demanded: bool) -> (Option<Stop>, Ending) {
    match word.map(parse_stop) {
        Some(Ok(Stop::Sequence)) if is_demanded => (Some(Stop::Normal), Ending::Clean),
        Some(Ok(stop)) => (Some(stop), Ending::Clean),
        None | Some(Err(FinishMeaning::NotEnded)) => (None, Ending::Dropped),
        // The provider refuses to continue, so another request would not continue this reply.
        Some(Err(FinishMeaning::Failed)) => (Some(Stop::Refused), Ending::UpstreamError),
        Some(Err(_)) => (None, Ending::UpstreamError),
    }
}

/// Parses a stop reason. The error is the meaning of a stop reason that does not end a reply.
fn parse_stop(word: &str) -> Result<Stop, FinishMeaning> {
    if let Some(own) = OWN_STOP_REASONS.into_iter().find(|stop| stop.name() == word) {
        return Ok(own);
    }
    let meaning = FinishMeaning::find("openai_chat", word);
    meaning.stop(false).ok_or(meaning)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    stop: Option<String>,
}

/// Returns the meaning of a stop reason, for packages that decide before a recovery begins.
pub(crate) fn stop_meaning(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: Options = parse(options)?;
    answer(&match options.stop.as_deref().map(parse_stop) {
        None | Some(Err(FinishMeaning::NotEnded)) => "not_ended",
        Some(Ok(stop)) => stop.name(),
        Some(Err(FinishMeaning::Failed)) => "failed",
        Some(Err(_)) => "broken_off",
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedRequest {
    /// The HTTP status of the provider's error; null if there was no answer.
    status: Option<u16>,
}

/// HTTP client errors after which the same request may succeed.
const TEMPORARY: [u16; 4] = [408, 409, 425, 429];

/// Decides how a recovery continues after a failed request. Returns `final` if the provider rejects the
/// request itself, for example 401 for a bad key, and `lost` otherwise.
pub(crate) fn ask_failure(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let FailedRequest { status } = parse(options)?;
    let is_refused =
        status.is_some_and(|status| (400..500).contains(&status) && !TEMPORARY.contains(&status));
    answer(&if is_refused { "final" } else { "lost" })
}
