//! Whether a reply is whole, cut, or to be forwarded: the table of PC-8 as one function.

use endmark_text::Verdict;

use crate::{Ending, Stop};

/// The kinds of cut (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutKind {
    /// The limit of output tokens was reached.
    Limit,
    /// The stream ended with a reset, a stall, or without a terminal event.
    Dropped,
    /// The provider reports a normal stop, but the required grammar is violated or incomplete.
    Format,
    /// A required end marker is missing.
    Marker,
    /// Reasoning used up the limit, without any text.
    Empty,
    /// The provider refuses the request because it exceeds the context window. It is read from an error and never
    /// from a reply, so [`judge`] does not return it.
    Window,
}

impl CutKind {
    /// Returns the literal name, as in the log.
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

/// The evidence about a reply (PC-8).
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How the stream of the reply ended.
    pub ending: Ending,
    /// The provider's reason for stopping, if any.
    pub stop: Option<Stop>,
    /// The verdict of a *required* grammar, if there is one. A detected format does not belong here.
    pub grammar: Option<&'a Verdict>,
    /// Whether that grammar is an end marker.
    pub marker: bool,
    /// Output tokens, as the provider counted them.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens that was sent upstream.
    pub limit: Option<u64>,
    /// Whether any text other than white space arrived.
    pub has_text: bool,
    /// Whether the model reasoned.
    pub reasoned: bool,
}

/// The verdict on a reply (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Nothing is missing.
    Whole {
        /// Whether it was dropped or stopped by its limit, although it is whole: to be disclosed, with the normal
        /// stop reason.
        disclosed: bool,
    },
    /// Something is missing.
    Cut(CutKind),
    /// Refused, filtered, paused, or ended for an unknown reason: forwarded unchanged, never resumed.
    Passed,
}

impl Judgement {
    /// Returns the literal name, as in the log: `whole`, `passed` or the kind of cut.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole { .. } => "whole",
            Self::Cut(kind) => kind.name(),
            Self::Passed => "passed",
        }
    }
}

/// The first column of the table: how the stream ended.
enum Stream {
    Clean,
    Broken,
}

/// The second column: the provider's reason, corrected by the token count.
enum StopMeaning {
    Nothing,
    Normal,
    /// A normal stop, but the output count reaches the limit: some servers report it wrongly.
    NormalAtLimit,
    Sequence,
    Limit,
    /// A refusal, a pause, or an unknown reason.
    Passed,
}

/// The third column: the verdict of the required grammar.
enum Grammar {
    NotRequired,
    Whole,
    Truncated,
    Malformed,
}

/// Judges a reply by how its stream ended, the provider's reason and the required grammar. This is the whole table of
/// PC-8, and the only place where it is decided.
///
/// Three cells that the table leaves open:
/// - A clean end without a reason counts as a normal stop.
/// - A reason that arrived before the stream broke still counts, and its verdict is disclosed: the provider ended the
///   text, and only the protocol's last event was lost. If the required grammar is incomplete as well, the break has
///   lost text.
/// - A malformed text with a normal stop is whole here: nothing is missing from it, and validation reports what is
///   wrong with it (PC-6).
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

    let stream = stream(evidence);
    let meaning = stop_meaning(evidence, &stream);
    let grammar = grammar(evidence);
    match (stream, meaning, grammar) {
        (_, StopMeaning::Passed, _) => Judgement::Passed,

        (Stream::Clean, StopMeaning::Sequence, _) => whole,
        (Stream::Broken, StopMeaning::Sequence, _) => disclosed,

        (_, StopMeaning::Limit, Grammar::Whole) => disclosed,
        (_, StopMeaning::Limit, Grammar::Truncated | Grammar::Malformed | Grammar::NotRequired) => ran_out,

        (Stream::Clean, StopMeaning::NormalAtLimit, Grammar::Truncated | Grammar::NotRequired) => ran_out,
        (Stream::Clean, StopMeaning::NormalAtLimit, Grammar::Whole | Grammar::Malformed) => whole,

        (Stream::Clean, StopMeaning::Normal | StopMeaning::Nothing, Grammar::Truncated) => open,
        (
            Stream::Clean,
            StopMeaning::Normal | StopMeaning::Nothing,
            Grammar::Whole | Grammar::NotRequired | Grammar::Malformed,
        ) => whole,

        (
            Stream::Broken,
            StopMeaning::Normal | StopMeaning::NormalAtLimit | StopMeaning::Nothing,
            Grammar::Whole,
        ) => disclosed,
        (
            Stream::Broken,
            StopMeaning::Normal | StopMeaning::NormalAtLimit | StopMeaning::Nothing,
            Grammar::Truncated | Grammar::Malformed,
        ) => dropped,
        (Stream::Broken, StopMeaning::Normal, Grammar::NotRequired) => disclosed,
        (Stream::Broken, StopMeaning::NormalAtLimit, Grammar::NotRequired) => ran_out,
        (Stream::Broken, StopMeaning::Nothing, Grammar::NotRequired) => dropped,
    }
}

/// Whether a reply reached its limit: as the provider says, or by its token count if it reports a normal stop.
pub(crate) fn is_at_limit(evidence: &Evidence<'_>) -> bool {
    matches!(stop_meaning(evidence, &stream(evidence)), StopMeaning::Limit | StopMeaning::NormalAtLimit)
}

fn stream(evidence: &Evidence<'_>) -> Stream {
    match evidence.ending {
        Ending::Clean => Stream::Clean,
        Ending::UpstreamError
        | Ending::Stalled
        | Ending::Dropped
        | Ending::Cancelled
        | Ending::OverCap
        | Ending::Interrupted => Stream::Broken,
    }
}

/// Tokens that a server may count in addition to the text: the end token. A server that counts more uses another
/// limit, or none.
const EXTRA_COUNTED_TOKENS: u64 = 1;

fn stop_meaning(evidence: &Evidence<'_>, stream: &Stream) -> StopMeaning {
    let at_limit = match (evidence.output_tokens, evidence.limit) {
        (Some(output), Some(limit)) => output >= limit && output - limit <= EXTRA_COUNTED_TOKENS,
        (None, _) | (_, None) => false,
    };
    match (evidence.stop, stream) {
        (Some(Stop::Normal), _) | (None, Stream::Clean) if at_limit => StopMeaning::NormalAtLimit,
        (Some(Stop::Normal), _) => StopMeaning::Normal,
        (Some(Stop::Sequence), _) => StopMeaning::Sequence,
        (Some(Stop::Limit | Stop::Repetition), _) => StopMeaning::Limit,
        (Some(Stop::Refused | Stop::Paused | Stop::Unknown), _) => StopMeaning::Passed,
        (None, _) => StopMeaning::Nothing,
    }
}

fn grammar(evidence: &Evidence<'_>) -> Grammar {
    match evidence.grammar {
        None => Grammar::NotRequired,
        Some(Verdict::Whole) => Grammar::Whole,
        Some(Verdict::Truncated(_)) => Grammar::Truncated,
        Some(Verdict::Malformed { .. }) => Grammar::Malformed,
    }
}

#[cfg(test)]
mod tests;
