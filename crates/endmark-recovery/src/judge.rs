//! Decides whether a reply is whole, cut, or forwarded unchanged: the table of PC-8 as one function.

use endmark_text::Verdict;

use crate::{Ending, Stop};

/// The kind of a cut (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutKind {
    /// The limit of output tokens was reached.
    Limit,
    /// The stream broke or stalled, or ended without a terminal event.
    Dropped,
    /// The provider reports a normal stop, but the text is incomplete or invalid in the required format.
    Format,
    /// A required end marker is missing.
    Marker,
    /// The model used all output tokens for reasoning, and wrote no text.
    Empty,
    /// The provider rejects the request because it exceeds the context window. This is an error and not a
    /// reply, so [`judge`] never returns it.
    Window,
}

impl CutKind {
    /// Returns the name that the log uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Dropped => "dropped",
            Self::Format => "format",
            Self::Marker => "marker",
            Self::Empty => "empty",
            Self::Window => "window",
        }
    }
}

/// The evidence from which a reply is judged (PC-8).
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How the stream of the reply ended.
    pub ending: Ending,
    /// The provider's reason for stopping, or `None` if it reported none.
    pub stop: Option<Stop>,
    /// The verdict of the *required* format, if there is one. The verdict of a detected format must not be
    /// used here.
    pub grammar: Option<&'a Verdict>,
    /// Whether the required format is an end marker.
    pub marker: bool,
    /// Number of output tokens, as counted by the provider.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens in the upstream request.
    pub limit: Option<u64>,
    /// Whether the reply contains any text other than whitespace.
    pub has_text: bool,
    /// Whether the reply contains reasoning.
    pub reasoned: bool,
}

/// The verdict on a reply (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Nothing is missing.
    Whole {
        /// Whether the stream broke or the limit was reached although the text is whole. This must be
        /// disclosed, together with a normal stop reason.
        disclosed: bool,
    },
    /// Something is missing.
    Cut(CutKind),
    /// The reply was refused, filtered or paused, or ended for an unknown reason. It is forwarded unchanged,
    /// and never resumed.
    Passed,
}

impl Judgement {
    /// Returns the name that the log uses: `whole`, `passed` or the kind of cut.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole { .. } => "whole",
            Self::Cut(kind) => kind.name(),
            Self::Passed => "passed",
        }
    }
}

/// The first column of the table: how the stream ended.
enum StreamEnd {
    Clean,
    Broken,
}

/// The second column: the provider's reason, corrected with the token count.
enum StopMeaning {
    Nothing,
    Normal,
    /// A normal stop although the token count reaches the limit: some servers report this wrongly.
    NormalAtLimit,
    Sequence,
    Limit,
    /// A refusal, a pause, or an unknown reason.
    Passed,
}

/// The third column: the verdict of the required format.
enum FormatVerdict {
    NotRequired,
    Whole,
    Truncated,
    Malformed,
}

/// Judges a reply by how its stream ended, the provider's reason, and the verdict of the required format.
/// This is the whole table of PC-8, and the only code that implements it.
///
/// The table leaves three cases open:
/// - A clean end without a reason counts as a normal stop.
/// - A stop reason that arrived before the stream broke still counts, and the break is disclosed: only the
///   terminal event is missing. But if the text is incomplete in the required format, the break has lost
///   text.
/// - A malformed text with a normal stop counts as whole: nothing is missing from it. Validation reports its
///   errors (PC-6).
///
/// ```
/// use endmark_recovery::{CutKind, Ending, Evidence, Judgement, Stop, judge};
///
/// let evidence = Evidence {
///     ending: Ending::Clean,
///     stop: Some(Stop::Limit),
///     grammar: None,
///     marker: false,
///     output_tokens: Some(20),
///     limit: Some(20),
///     has_text: true,
///     reasoned: false,
/// };
/// assert_eq!(judge(&evidence), Judgement::Cut(CutKind::Limit));
/// let refused = Evidence { stop: Some(Stop::Refused), ..evidence };
/// assert_eq!(judge(&refused), Judgement::Passed);
/// ```
#[expect(clippy::match_same_arms, reason = "an arm is a row of the table, in the table's order")]
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let whole = Judgement::Whole { disclosed: false };
    let disclosed = Judgement::Whole { disclosed: true };
    let dropped = Judgement::Cut(CutKind::Dropped);
    let ran_out =
        Judgement::Cut(if evidence.reasoned && !evidence.has_text { CutKind::Empty } else { CutKind::Limit });
    let open = Judgement::Cut(if evidence.marker { CutKind::Marker } else { CutKind::Format });

    let stream = stream_end(evidence);
    let meaning = stop_meaning(evidence, &stream);
    let grammar = format_verdict(evidence);
    match (stream, meaning, grammar) {
        (_, StopMeaning::Passed, _) => Judgement::Passed,

        (StreamEnd::Clean, StopMeaning::Sequence, _) => whole,
        (StreamEnd::Broken, StopMeaning::Sequence, _) => disclosed,

        (_, StopMeaning::Limit, FormatVerdict::Whole) => disclosed,
        (
            _,
            StopMeaning::Limit,
            FormatVerdict::Truncated | FormatVerdict::Malformed | FormatVerdict::NotRequired,
        ) => ran_out,

        (
            StreamEnd::Clean,
            StopMeaning::NormalAtLimit,
            FormatVerdict::Truncated | FormatVerdict::NotRequired,
        ) => ran_out,
        (StreamEnd::Clean, StopMeaning::NormalAtLimit, FormatVerdict::Whole | FormatVerdict::Malformed) => {
            whole
        }

        (StreamEnd::Clean, StopMeaning::Normal | StopMeaning::Nothing, FormatVerdict::Truncated) => open,
        (
            StreamEnd::Clean,
            StopMeaning::Normal | StopMeaning::Nothing,
            FormatVerdict::Whole | FormatVerdict::NotRequired | FormatVerdict::Malformed,
        ) => whole,

        (
            StreamEnd::Broken,
            StopMeaning::Normal | StopMeaning::NormalAtLimit | StopMeaning::Nothing,
            FormatVerdict::Whole,
        ) => disclosed,
        (
            StreamEnd::Broken,
            StopMeaning::Normal | StopMeaning::NormalAtLimit | StopMeaning::Nothing,
            FormatVerdict::Truncated | FormatVerdict::Malformed,
        ) => dropped,
        (StreamEnd::Broken, StopMeaning::Normal, FormatVerdict::NotRequired) => disclosed,
        (StreamEnd::Broken, StopMeaning::NormalAtLimit, FormatVerdict::NotRequired) => ran_out,
        (StreamEnd::Broken, StopMeaning::Nothing, FormatVerdict::NotRequired) => dropped,
    }
}

/// Whether a reply reached its limit, according to the provider, or according to the token count after a
/// normal stop.
pub(crate) fn is_at_limit(evidence: &Evidence<'_>) -> bool {
    matches!(stop_meaning(evidence, &stream_end(evidence)), StopMeaning::Limit | StopMeaning::NormalAtLimit)
}

fn stream_end(evidence: &Evidence<'_>) -> StreamEnd {
    match evidence.ending {
        Ending::Clean => StreamEnd::Clean,
        Ending::UpstreamError
        | Ending::Stalled
        | Ending::Dropped
        | Ending::Cancelled
        | Ending::OverCap
        | Ending::Interrupted => StreamEnd::Broken,
    }
}

/// Tokens that a server may count in addition to the text: the end token. A server that counts more uses another
/// limit, or none.
const EXTRA_COUNTED_TOKENS: u64 = 1;

fn stop_meaning(evidence: &Evidence<'_>, stream: &StreamEnd) -> StopMeaning {
    let at_limit = match (evidence.output_tokens, evidence.limit) {
        (Some(output), Some(limit)) => output >= limit && output - limit <= EXTRA_COUNTED_TOKENS,
        (None, _) | (_, None) => false,
    };
    match (evidence.stop, stream) {
        (Some(Stop::Normal), _) | (None, StreamEnd::Clean) if at_limit => StopMeaning::NormalAtLimit,
        (Some(Stop::Normal), _) => StopMeaning::Normal,
        (Some(Stop::Sequence), _) => StopMeaning::Sequence,
        (Some(Stop::Limit | Stop::Repetition), _) => StopMeaning::Limit,
        (Some(Stop::Refused | Stop::Paused | Stop::Unknown), _) => StopMeaning::Passed,
        (None, _) => StopMeaning::Nothing,
    }
}

fn format_verdict(evidence: &Evidence<'_>) -> FormatVerdict {
    match evidence.grammar {
        None => FormatVerdict::NotRequired,
        Some(Verdict::Whole) => FormatVerdict::Whole,
        Some(Verdict::Truncated(_)) => FormatVerdict::Truncated,
        Some(Verdict::Malformed { .. }) => FormatVerdict::Malformed,
    }
}

#[cfg(test)]
mod tests;
