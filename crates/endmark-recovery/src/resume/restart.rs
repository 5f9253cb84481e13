//! Accepts or rejects a regenerated reply, which is requested if no continuation can be joined (PC-5).

use std::collections::HashSet;

use endmark_text::{Format, Verdict};

use super::joined_text::JoinedText;
use super::weight::has_unspaced_script;
use super::{Resume, reasons};
use crate::correction::{first_changed, first_missing};
use crate::{CutKind, ExhaustedCause, Judgement, PieceRole, Reply, Restart, judge};

/// A regenerated reply must have at least 3/4 of the characters of the cut text. It need not be as long,
/// because its wording may differ.
const MIN_RESTART_LENGTH_RATIO: (usize, usize) = (3, 4);

/// A regenerated text must repeat at least 2/5 of the received letters, in pairs of words. A paraphrase
/// repeats about half. A refusal or a question repeats few, even if it is long.
const MIN_REPEATED_SHARE: (usize, usize) = (2, 5);

/// Minimum number of words for this comparison. Fewer words prove nothing, and little text is lost.
const MIN_COMPARED_WORDS: usize = 4;

impl Resume {
    /// Processes the regenerated reply. `problem` states why it is invalid as a document, if it is.
    pub(super) fn restart(&mut self, reply: Reply, cut: CutKind, problem: Option<String>) {
        self.has_restarted = true;
        let again = JoinedText::new(
            self.required_format.clone(),
            reply.text.clone(),
            self.joined_text.sent_bytes(),
            self.policy.known,
        );
        let verdict = again.verdict().cloned();
        let demands_marker = matches!(self.required_format, Some(Format::Marker(_)));
        let judged = judge(&reply.evidence(verdict.as_ref(), demands_marker));
        let why =
            reasons::verdict_reason(judged, &reply, self.required_format.as_ref().zip(verdict.as_ref()));
        if judged == Judgement::Passed {
            self.joined_text.keep_unjoined(reply.text.clone(), 0);
            self.record_piece(PieceRole::Again, reply, None, judged, why);
            return self.exhaust(ExhaustedCause::Refused);
        }
        let is_whole = judged == Judgement::Whole { disclosed: false }
            && !again.has_no_text()
            && verdict.as_ref().is_none_or(Verdict::is_whole);
        let fault = match problem {
            _ if !is_whole => Some("it is not a whole reply that ended normally".to_owned()),
            _ if !self.keeps_sent_text(&reply.text) => {
                Some("it does not begin with the text that the client has".to_owned())
            }
            Some(problem) => Some(format!("it is not valid: {problem}")),
            None => self.restart_fault(&reply.text),
        };
        if let Some(fault) = fault {
            let ending = reply.ending;
            self.joined_text.keep_unjoined(reply.text.clone(), 0);
            let why = format!("{why}, but it does not replace the cut reply: {fault}");
            self.record_piece(PieceRole::Again, reply, None, Judgement::Cut(cut), why);
            return self.ask_unless_stopped(cut, ending);
        }
        // A reply that begins with the received text does not replace it.
        let text = self.joined_text.text();
        self.replaced_chars = (!reply.text.starts_with(text)).then(|| text.chars().count());
        self.record_piece(PieceRole::Again, reply, None, judged, why);
        self.joined_text = again;
        self.finish_whole(false);
    }

    /// Returns why this text must not replace the cut text: it is clearly shorter, or changes something that
    /// must be kept. Returns `None` if it may replace the cut text.
    fn restart_fault(&self, again: &str) -> Option<String> {
        let received = self.joined_text.text();
        let (before, after) = (visible_chars(received), visible_chars(again));
        let (part, of) = MIN_RESTART_LENGTH_RATIO;
        if after.saturating_mul(of) < before.saturating_mul(part) {
            return Some(format!("it is clearly shorter: {after} characters instead of {before}"));
        }
        let may_change = self.policy.restart == Restart::Any;
        let documents = match &self.required_format {
            Some(Format::Json) => Some((received.to_owned(), again.to_owned())),
            Some(Format::Jsonl) => Some((
                rows_as_array_beginning(received),
                [rows_as_array_beginning(again).trim_end_matches(','), "]"].concat(),
            )),
            _ => None,
        };
        let Some((received, again)) = documents else {
            return match () {
                () if again.starts_with(received) => None,
                () if !may_change => Some("it does not begin with the received text".to_owned()),
                () if !repeats_enough(received, again) => {
                    Some("it repeats too little of the received text".to_owned())
                }
                () => None,
            };
        };
        if let Some(path) = first_missing(&received, &again) {
            return Some(format!("it lacks a complete received value, at `{path}`"));
        }
        let changed = if may_change { None } else { first_changed(&received, &again) };
        changed.map(|path| format!("it changes a complete received value, at `{path}`"))
    }
}

/// Whether a regenerated text repeats enough of the received text to be another version of it.
fn repeats_enough(received: &str, again: &str) -> bool {
    let mut words = words(received);
    // The last word may be incomplete.
    if received.ends_with(char::is_alphanumeric) {
        words.pop();
    }
    if words.len() < MIN_COMPARED_WORDS {
        return true;
    }
    let again = self::words(again);
    let pairs: HashSet<&[String]> = again.windows(2).collect();
    let is_repeated: Vec<bool> = words.windows(2).map(|pair| pairs.contains(pair)).collect();
    let (mut repeated, mut all) = (0_usize, 0_usize);
    for (at, word) in words.iter().enumerate() {
        let letters = word.chars().count();
        let is_in_a_pair = |at: usize| is_repeated.get(at).copied().unwrap_or(false);
        all += letters;
        if is_in_a_pair(at) || at.checked_sub(1).is_some_and(is_in_a_pair) {
            repeated += letters;
        }
    }
    let (part, of) = MIN_REPEATED_SHARE;
    repeated.saturating_mul(of) >= all.saturating_mul(part)
}

/// Returns the words of a text in lower case. In scripts without spaces, each letter is a word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for sign in text.chars() {
        let is_single = sign.is_alphabetic() && has_unspaced_script(sign.encode_utf8(&mut [0; 4]));
        if (is_single || !sign.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match () {
            () if is_single => words.push(sign.to_string()),
            () if sign.is_alphanumeric() => word.extend(sign.to_lowercase()),
            () => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn visible_chars(text: &str) -> usize {
    text.chars().filter(|ch| !ch.is_whitespace()).count()
}

/// Returns rows of JSON Lines as the beginning of a JSON array, so that they can be compared as one document.
fn rows_as_array_beginning(text: &str) -> String {
    let mut array = String::with_capacity(text.len() + 1);
    array.push('[');
    for line in text.split_inclusive('\n').filter(|line| !line.trim().is_empty()) {
        array.push_str(line.trim_end_matches(['\r', '\n']));
        // A row without a line feed is the last one, and may be cut.
        if line.ends_with('\n') {
            array.push(',');
        }
    }
    array
}

#[cfg(test)]
mod tests {
    use super::repeats_enough;

    #[test]
    fn a_restart_repeats_the_received_text_and_a_refusal_does_not() {
        let harbour = "The harbour was quiet that morning, and the boats lay sti";
        let report = "Sure, here is the quarterly report. Revenue grew by 12 % in all regions, and the costs fell. The mar";
        for (received, again) in [
            (harbour, "The harbour was still at dawn. All the boats lay at their moorings."),
            (
                report,
                "Here is the quarterly report: revenue grew in all regions, by 12 %, and the costs fell slightly.",
            ),
            (
                "東京は日本の首都であり、世界最大級の都市の一つです。多く",
                "日本の首都である東京は、世界最大級の都市の一つです。",
            ),
            ("Yes, and", "No."),
        ] {
            assert!(repeats_enough(received, again), "{again}");
        }
        for (received, again) in [
            (harbour, "What would you like to know about the harbour? I can help you with it."),
            ("Sure, here is the report. Revenue gr", "I'm sorry, but I can't assist with that request."),
            (
                "# Report\n\n- revenue: 100\n- costs: 50\n- ma",
                "What would you like to know? I can help you with it.",
            ),
            (
                report,
                "I'm sorry, but I can't provide the quarterly report. If you have questions about revenue, please ask.",
            ),
            (
                "東京は日本の首都であり、世界最大級の都市の一つです。多く",
                "申し訳ありませんが、そのご要望にはお応えできません。",
            ),
        ] {
            assert!(!repeats_enough(received, again), "{again}");
        }
    }
}
