//! The end of a choice.

use endmark_recovery::Stop;

use crate::finish_reasons::FinishMeaning;

/// The end of a choice, as the server states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The number of the choice that ended.
    pub choice: u32,
    /// The meaning of the finish reason. `None` if the server broke the reply off. That is not an end by the
    /// model: judge it as [`Ending::UpstreamError`](endmark_recovery::Ending::UpstreamError).
    pub stop: Option<Stop>,
    /// The server's finish reason, such as `stop` or `length`.
    pub reason: String,
    /// The meaning of the finish reason in the table of finish reasons.
    pub meaning: FinishMeaning,
    /// The client's stop sequence that was reached, if the server reports it.
    pub sequence: Option<String>,
}

impl Finish {
    /// Reads a finish reason of this format, or returns `None` if it does not state an end.
    ///
    /// `may_be_sequence` is whether the reason for the end of a turn may mean a stop sequence of the client.
    /// A reply that ended at a stop sequence must never be resumed.
    pub(crate) fn read(format: &str, choice: u32, word: String, may_be_sequence: bool) -> Option<Self> {
        let meaning = FinishMeaning::find(format, &word);
        let stop = meaning.stop(may_be_sequence);
        (meaning != FinishMeaning::NotEnded).then_some(Self {
            choice,
            stop,
            reason: word,
            meaning,
            sequence: None,
        })
    }
}
