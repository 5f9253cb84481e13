//! Takes the answer to the same request asked again, after no continuation could be joined (PC-5).

use endmark_text::{Format, Verdict};

use super::body::Body;
use super::{Resume, why};
use crate::correction::{first_changed, first_missing};
use crate::{CutKind, ExhaustedCause, Judgement, PieceRole, Reply, Restart, judge};

/// A text that has less than 3 of 4 characters of the cut one is clearly shorter. A model that generates a reply again writes
/// it a little differently each time, and the cut text lacks its end.
const CLEARLY_SHORTER: (usize, usize) = (3, 4);

impl Resume {
    /// Takes all of the reply again. `problem` is what makes it invalid as a document, if anything does.
    pub(super) fn restart(&mut self, reply: Reply, cut: CutKind, problem: Option<String>) {
        self.restarted = true;
        let again = Body::new(self.demanded.clone(), reply.text.clone(), self.body.sent(), self.policy.known);
        let verdict = again.verdict().cloned();
        let demands_marker = matches!(self.demanded, Some(Format::Marker(_)));
        let judged = judge(&reply.evidence(verdict.as_ref(), demands_marker));
        let why = why::judged(judged, &reply, self.demanded.as_ref().zip(verdict.as_ref()));
        if judged == Judgement::Passed {
            self.body.keep_unplaced(reply.text.clone(), 0);
            self.record(PieceRole::Again, reply, None, judged, why);
            return self.exhaust(ExhaustedCause::Refused);
        }
        let is_whole = judged == Judgement::Whole { disclosed: false }
            && !again.is_blank()
            && verdict.as_ref().is_none_or(Verdict::is_whole);
        let fault = match problem {
            _ if !is_whole => Some("it is not a whole reply that ended normally".to_owned()),
            _ if !self.keeps_sent(&reply.text) => {
                Some("it does not begin with what the client has".to_owned())
            }
            Some(problem) => Some(format!("it is not valid: {problem}")),
            None => self.fault_of_restart(&reply.text),
        };
        if let Some(fault) = fault {
            let ending = reply.ending;
            self.body.keep_unplaced(reply.text.clone(), 0);
            let why = format!("{why}, but it does not replace the cut reply: {fault}");
            self.record(PieceRole::Again, reply, None, Judgement::Cut(cut), why);
            return self.ask_unless_stopped(cut, ending);
        }
        // A reply that begins with the received text only continues it.
        let text = self.body.text();
        self.replaced_chars = (!reply.text.starts_with(text)).then(|| text.chars().count());
        self.record(PieceRole::Again, reply, None, judged, why);
        self.body = again;
        self.whole(false);
    }

    /// Why this text cannot replace the cut one, if it cannot: it is poorer, or changes what may not change.
    fn fault_of_restart(&self, again: &str) -> Option<String> {
        let received = self.body.text();
        let (before, after) = (visible_chars(received), visible_chars(again));
        let (part, of) = CLEARLY_SHORTER;
        if after.saturating_mul(of) < before.saturating_mul(part) {
            return Some(format!("it is clearly shorter: {after} characters, and {before} had come"));
        }
        let may_change = self.policy.restart == Restart::Any;
        let documents = match &self.demanded {
            Some(Format::Json) => Some((received.to_owned(), again.to_owned())),
            Some(Format::Jsonl) => Some((rows(received), [rows(again).trim_end_matches(','), "]"].concat())),
            _ => None,
        };
        let Some((received, again)) = documents else {
            let is_changed = !may_change && !again.starts_with(received);
            return is_changed.then(|| "it does not begin with the text that had come".to_owned());
        };
        if let Some(path) = first_missing(&received, &again) {
            return Some(format!("it lacks a value that had come complete, at `{path}`"));
        }
        let changed = if may_change { None } else { first_changed(&received, &again) };
        changed.map(|path| format!("it changes a value that had come complete, at `{path}`"))
    }
}

fn visible_chars(text: &str) -> usize {
    text.chars().filter(|ch| !ch.is_whitespace()).count()
}

/// The rows of JSON Lines as the beginning of one array, so that they are compared as one document.
fn rows(text: &str) -> String {
    let mut array = String::with_capacity(text.len() + 1);
    array.push('[');
    for line in text.split_inclusive('\n').filter(|line| !line.trim().is_empty()) {
        array.push_str(line.trim_end_matches(['\r', '\n']));
        // Without a line feed it is the last one, and may be cut.
        if line.ends_with('\n') {
            array.push(',');
        }
    }
    array
}
