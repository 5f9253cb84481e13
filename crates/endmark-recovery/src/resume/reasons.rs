//! Describes verdicts on pieces in sentences, for the log.

use endmark_text::{Format, Verdict};

use crate::{CutKind, Ending, Judgement, Reply, Stop};

/// Returns the reason for the verdict on a text whose last piece is `reply`.
pub(super) fn verdict_reason(
    judgement: Judgement,
    reply: &Reply,
    grammar: Option<(&Format, &Verdict)>,
) -> String {
    let end = describe_ending(reply);
    let text = match grammar {
        Some((format, Verdict::Whole)) => format!("is whole {format}"),
        Some((format, Verdict::Truncated(cut))) => {
            format!("is {format} that is cut (settled up to byte {})", cut.truncation_index)
        }
        Some((format, Verdict::Malformed { index, reason })) => {
            format!("is not valid {format} at byte {index}: {reason}")
        }
        None => "has no required format".to_owned(),
    };
    match judgement {
        Judgement::Passed => format!("{end}: forwarded unchanged, never resumed"),
        Judgement::Cut(CutKind::Empty) => format!("{end}: reasoning used up the limit, and no text arrived"),
        Judgement::Whole { .. } | Judgement::Cut(_) => format!("{end}, and the text {text}"),
    }
}

/// Returns how a reply ended, as the beginning of a sentence.
pub(super) fn describe_ending(reply: &Reply) -> String {
    let stream = match reply.ending {
        Ending::Clean => None,
        Ending::UpstreamError => Some("the upstream reported an error in mid-reply"),
        Ending::Stalled => Some("the stream stalled"),
        Ending::Dropped => Some("the stream ended without its last event"),
        Ending::Cancelled => Some("the client disconnected"),
        Ending::OverCap => Some("the reply exceeded its size or time limit"),
        Ending::Interrupted => Some("the gateway was stopped"),
    };
    let stop_words = match reply.stop {
        None => None,
        Some(Stop::Normal) => Some("the provider says it stopped normally"),
        Some(Stop::Sequence) => Some("it was stopped by the client's own stop sequence"),
        Some(Stop::Limit) => Some("the provider says its limit was reached"),
        Some(Stop::Refused) => Some("the provider refused or filtered it"),
        Some(Stop::Paused) => Some("the provider paused its turn"),
        Some(Stop::Repetition) => Some("the provider stopped it because it repeated itself"),
        Some(Stop::Unknown) => Some("the provider ended it for an unknown reason"),
    };
    let count = match (reply.stop, reply.output_tokens, reply.limit) {
        (Some(Stop::Normal) | None, Some(output), Some(limit)) if output >= limit => {
            Some(format!("its {output} output tokens reach the limit"))
        }
        _ => None,
    };
    if (reply.stop, reply.ending) == (Some(Stop::Repetition), Ending::OverCap) {
        return "it repeated itself and was stopped".to_owned();
    }
    let parts: Vec<&str> = [stop_words, count.as_deref(), stream].into_iter().flatten().collect();
    if parts.is_empty() { "the stream ended cleanly".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests;
