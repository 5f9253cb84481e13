//! Takes the answer to the same request asked anew, after no rest could be joined (PC-5).

use endmark_text::{Format, Verdict};

use super::body::Body;
use super::{Resume, why};
use crate::{CutKind, ExhaustedCause, Judgement, PieceRole, Reply, judge};

impl Resume {
    /// Takes all of the reply anew: only where it is whole, and begins with what the client has.
    pub(super) fn restart(&mut self, reply: Reply, cut: CutKind) {
        self.restarted = true;
        let anew = Body::new(self.demanded.clone(), reply.text.clone(), self.body.sent(), self.policy.known);
        let verdict = anew.verdict().cloned();
        let demands_marker = matches!(self.demanded, Some(Format::Marker(_)));
        let judged = judge(&reply.evidence(verdict.as_ref(), demands_marker));
        let why = why::judged(judged, &reply, self.demanded.as_ref().zip(verdict.as_ref()));
        match judged {
            Judgement::Passed => {
                self.body.keep_unplaced(reply.text.clone(), 0);
                self.record(PieceRole::Again, reply, None, judged, why);
                self.exhaust(ExhaustedCause::Refused);
            }
            Judgement::Whole { disclosed }
                if !anew.is_blank()
                    && self.keeps_sent(&reply.text)
                    && verdict.as_ref().is_none_or(Verdict::is_whole) =>
            {
                self.record(PieceRole::Again, reply, None, judged, why);
                self.body = anew;
                self.whole(disclosed);
            }
            Judgement::Whole { .. } | Judgement::Cut(_) => {
                let why = match judged {
                    Judgement::Whole { .. } if !self.keeps_sent(&reply.text) => {
                        format!("{why}, but it does not begin with what the client has")
                    }
                    Judgement::Whole { .. } | Judgement::Cut(_) | Judgement::Passed => why,
                };
                let ending = reply.ending;
                self.body.keep_unplaced(reply.text.clone(), 0);
                self.record(PieceRole::Again, reply, None, Judgement::Cut(cut), why);
                self.ask_unless_stopped(cut, ending);
            }
        }
    }
}
