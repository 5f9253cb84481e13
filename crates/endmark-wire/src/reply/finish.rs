//! The end of a choice.

use endmark_recovery::Stop;

use crate::finish_reasons::Meaning;

/// The end of a choice, as the server put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Which choice has ended.
    pub choice: u32,
    /// What the word means; `None` where it states that the server broke the reply off, which is no end of the
    /// model's: judge it as [`Ending::UpstreamError`](endmark_recovery::Ending::UpstreamError).
    pub stop: Option<Stop>,
    /// The server's word, as `stop` or `length`.
    pub word: String,
    /// The meaning of the word in the table of finish reasons.
    pub meaning: Meaning,
    /// Which of the client's stop sequences it met, where the server reports that.
    pub sequence: Option<String>,
}

impl Finish {
    /// Reads a word of this format; `None` if it does not state an end. `may_be_sequence` is whether the word for the end
    /// of a turn may stand for a stop sequence of the client: a reply that its client stopped must never be resumed.
    pub(crate) fn read(format: &str, choice: u32, word: String, may_be_sequence: bool) -> Option<Self> {
        let meaning = Meaning::of(format, &word);
        let stop = meaning.stop(may_be_sequence);
        (meaning != Meaning::NotEnded).then_some(Self { choice, stop, word, meaning, sequence: None })
    }
}
