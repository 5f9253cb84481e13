//! Whether a reply is whole, cut, or none of Endmark's business: the table of PC-8 as one function.

use endmark_text::Verdict;

use crate::{Ending, Stop};

/// The kinds of cut (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutKind {
    /// The limit of output tokens was reached.
    Limit,
    /// The stream ended with no terminal event, a reset or a stall.
    Dropped,
    /// The provider says it stopped normally, the demanded grammar says otherwise.
    Format,
    /// A required end marker is missing.
    Marker,
    /// Reasoning used up the limit, and no text came.
    Empty,
    /// The provider refuses the request: it is longer than the context window. Read from its error, never
    /// from a reply, so [`judge`] does not answer it.
    Window,
}

impl CutKind {
    /// The literal name, as in the log.
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

/// Everything a reply is judged by (PC-8).
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How the stream of the reply ended.
    pub ending: Ending,
    /// Why the provider says it stopped; none if it said nothing.
    pub stop: Option<Stop>,
    /// The verdict of a *demanded* grammar; none if none is demanded. A guessed one does not belong here.
    pub grammar: Option<&'a Verdict>,
    /// Whether that grammar is an end marker.
    pub marker: bool,
    /// Output tokens, as the provider counted them.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens that was sent upstream.
    pub limit: Option<u64>,
    /// Whether anything but whitespace came as text.
    pub has_text: bool,
    /// Whether the model reasoned.
    pub reasoned: bool,
}

/// What a reply is judged to be (PC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Nothing is missing.
    Whole {
        /// It was dropped or stopped by its limit, and is whole all the same: to be disclosed, with the
        /// normal stop reason.
        disclosed: bool,
    },
    /// Something is missing.
    Cut(CutKind),
    /// Refused, filtered, paused, or ended by a word that is not known: passed on as it is, never resumed.
    Passed,
}

impl Judgement {
    /// The literal name, as in the log: `whole`, `passed` or the kind of cut.
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

/// The second column: what the provider says, with the token count where that says something else.
enum Says {
    Nothing,
    Normal,
    /// A normal stop, but the output count reaches the limit: some servers lie.
    NormalAtLimit,
    Sequence,
    Limit,
    /// A refusal, a pause, or a word that is not known.
    Passed,
}

/// The third column: what the demanded grammar says.
enum Grammar {
    NotDemanded,
    Whole,
    Truncated,
    Malformed,
}

/// Judges a reply by how its stream ended, what the provider says and what the demanded grammar says:
/// the whole table of PC-8, and the only place where it is decided.
///
/// Three cells that the table leaves open:
/// - A clean end without a word is read as a normal stop.
/// - A word that came before the stream broke still counts, and its verdict is disclosed: text that the
///   provider ended is not asked for again because the protocol's last event was lost. Where the demanded
///   grammar misses something as well, the break has taken it.
/// - A malformed text that stopped normally is whole here: nothing is missing from it, and saying what is
///   wrong with it is the business of validation (PC-6).
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
    let says = says(evidence, &stream);
    let grammar = grammar(evidence);
    match (stream, says, grammar) {
        (_, Says::Passed, _) => Judgement::Passed,

        (Stream::Clean, Says::Sequence, _) => whole,
        (Stream::Broken, Says::Sequence, _) => disclosed,

        (_, Says::Limit, Grammar::Whole) => disclosed,
        (_, Says::Limit, Grammar::Truncated | Grammar::Malformed | Grammar::NotDemanded) => ran_out,

        (Stream::Clean, Says::NormalAtLimit, Grammar::Truncated | Grammar::NotDemanded) => ran_out,
        (Stream::Clean, Says::NormalAtLimit, Grammar::Whole | Grammar::Malformed) => whole,

        (Stream::Clean, Says::Normal | Says::Nothing, Grammar::Truncated) => open,
        (
            Stream::Clean,
            Says::Normal | Says::Nothing,
            Grammar::Whole | Grammar::NotDemanded | Grammar::Malformed,
        ) => whole,

        (Stream::Broken, Says::Normal | Says::NormalAtLimit | Says::Nothing, Grammar::Whole) => disclosed,
        (
            Stream::Broken,
            Says::Normal | Says::NormalAtLimit | Says::Nothing,
            Grammar::Truncated | Grammar::Malformed,
        ) => dropped,
        (Stream::Broken, Says::Normal, Grammar::NotDemanded) => disclosed,
        (Stream::Broken, Says::NormalAtLimit, Grammar::NotDemanded) => ran_out,
        (Stream::Broken, Says::Nothing, Grammar::NotDemanded) => dropped,
    }
}

/// Whether a reply reached its limit: as the provider says, or as its tokens count where it says that it stopped
/// normally.
pub(crate) fn is_at_limit(evidence: &Evidence<'_>) -> bool {
    matches!(says(evidence, &stream(evidence)), Says::Limit | Says::NormalAtLimit)
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

/// What a server may count beside the text that its limit is for: the token that ends it. Who counts more has another
/// limit in mind, or none.
const COUNTED_BESIDE: u64 = 1;

fn says(evidence: &Evidence<'_>, stream: &Stream) -> Says {
    let at_limit = match (evidence.output_tokens, evidence.limit) {
        (Some(output), Some(limit)) => output >= limit && output - limit <= COUNTED_BESIDE,
        (None, _) | (_, None) => false,
    };
    match (evidence.stop, stream) {
        (Some(Stop::Normal), _) | (None, Stream::Clean) if at_limit => Says::NormalAtLimit,
        (Some(Stop::Normal), _) => Says::Normal,
        (Some(Stop::Sequence), _) => Says::Sequence,
        (Some(Stop::Limit | Stop::Repetition), _) => Says::Limit,
        (Some(Stop::Refused | Stop::Paused | Stop::Unknown), _) => Says::Passed,
        (None, _) => Says::Nothing,
    }
}

fn grammar(evidence: &Evidence<'_>) -> Grammar {
    match evidence.grammar {
        None => Grammar::NotDemanded,
        Some(Verdict::Whole) => Grammar::Whole,
        Some(Verdict::Truncated(_)) => Grammar::Truncated,
        Some(Verdict::Malformed { .. }) => Grammar::Malformed,
    }
}

#[cfg(test)]
mod tests;
