//! Why a model stopped: the words of providers, by the table that the gateway reads them with. And what a failed request means.

use endmark::wire::finish_reasons::Meaning;
use endmark::{Ending, Stop};
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::{answer, parse};

/// Endmark's own words.
const OWN: [Stop; 7] =
    [Stop::Normal, Stop::Sequence, Stop::Limit, Stop::Refused, Stop::Paused, Stop::Repetition, Stop::Unknown];

/// How a reply with this word is judged. Without a word the reply has not ended.
///
/// A stop sequence only says where the model stopped. The sequence may be in the middle of a document, so where a grammar is demanded,
/// that one decides.
pub(crate) fn read(word: Option<&str>, is_demanded: bool) -> (Option<Stop>, Ending) {
    match word.map(parse_stop) {
        Some(Ok(Stop::Sequence)) if is_demanded => (Some(Stop::Normal), Ending::Clean),
        Some(Ok(stop)) => (Some(stop), Ending::Clean),
        None | Some(Err(Meaning::NotEnded)) => (None, Ending::Dropped),
        // The provider refuses to go on: another request would not continue this reply.
        Some(Err(Meaning::Failed)) => (Some(Stop::Refused), Ending::UpstreamError),
        Some(Err(_)) => (None, Ending::UpstreamError),
    }
}

/// The reason for which a reply ended, or the meaning of a word that is no end.
fn parse_stop(word: &str) -> Result<Stop, Meaning> {
    if let Some(own) = OWN.into_iter().find(|stop| stop.name() == word) {
        return Ok(own);
    }
    let meaning = Meaning::find("openai_chat", word);
    meaning.stop(false).ok_or(meaning)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    stop: Option<String>,
}

/// The meaning of a word, for packages that decide before a recovery begins.
pub(crate) fn stop_meaning(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: Options = parse(options)?;
    answer(&match options.stop.as_deref().map(parse_stop) {
        None | Some(Err(Meaning::NotEnded)) => "not_ended",
        Some(Ok(stop)) => stop.name(),
        Some(Err(Meaning::Failed)) => "failed",
        Some(Err(_)) => "broken_off",
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedRequest {
    /// The HTTP status of the provider's error; null if there was no answer.
    status: Option<u16>,
}

/// The statuses of a client's errors after which the same request may succeed.
const TEMPORARY: [u16; 4] = [408, 409, 425, 429];

/// How a recovery goes on after a request without an answer: `final` where the provider refuses the request itself, such as a bad
/// key with status 401, and else `lost`.
pub(crate) fn ask_failure(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let FailedRequest { status } = parse(options)?;
    let is_refused =
        status.is_some_and(|status| (400..500).contains(&status) && !TEMPORARY.contains(&status));
    answer(&if is_refused { "final" } else { "lost" })
}
