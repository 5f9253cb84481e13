//! How a resume processes a first reply and a continuation (PC-5).

use endmark_text::Verdict;

use super::body::{Refusal, without_cut_character};
use super::machine::{RefusedAnswers, UncertainSeam};
use super::placing::Earlier;
use super::proof::Question;
use super::shown::PromptExcerpt;
use super::{Resume, reasons};
use crate::resume::body::Body;
use crate::stitch::without_reasoning;
use crate::{
    CutKind, Ending, ExhaustedCause, Join, Judgement, Merged, OnAmbiguous, PieceRecord, PieceRole, Reply,
    ResumeOutcome, ResumeStep, judge,
};

impl Resume {
    /// Processes a complete reply, which is the first one or the answer to the repeated request.
    pub(super) fn begin(&mut self, mut reply: Reply, role: PieceRole) {
        let received = reply.text.clone();
        let mut kept_in_front = false;
        let alone = judge(&reply.evidence(None, false));
        if role == PieceRole::Again {
            if alone == Judgement::Passed {
                let why = reasons::verdict_reason(alone, &reply, None);
                self.body.keep_unplaced(received, 0);
                self.record(role, reply, None, alone, why);
                return self.exhaust(ExhaustedCause::Refused);
            }
            // The received text is blank, and its sent part stays before the answer.
            kept_in_front = !self.body.keeps_sent(&reply.text);
            if kept_in_front {
                reply.text.insert_str(0, self.body.text());
            }
        }
        let sent = if role == PieceRole::First { self.policy.sent } else { self.body.sent_bytes() };
        let body = Body::new(self.required_format.clone(), reply.text.clone(), sent, self.policy.known);
        let replaced = std::mem::replace(&mut self.body, body);
        self.body.keep_replaced(replaced, kept_in_front);
        let verdict = self.body.verdict().cloned();
        let judged = judge(&reply.evidence(verdict.as_ref(), self.demands_marker()));
        let why =
            reasons::verdict_reason(judged, &reply, self.required_format.as_ref().zip(verdict.as_ref()));
        let ending = reply.ending;
        reply.text = received;
        self.record(role, reply, None, judged, why);
        match judged {
            Judgement::Whole { disclosed } => self.finish_whole(disclosed),
            Judgement::Passed => self.step = ResumeStep::Done(ResumeOutcome::Passed),
            Judgement::Cut(kind) => {
                self.first_cut = self.first_cut.or(Some(kind));
                if matches!(verdict, Some(Verdict::Malformed { .. })) {
                    self.body.give_up_grammar();
                }
                if kind == CutKind::Limit {
                    self.body.leave_out_cut_character();
                }
                self.ask_unless_stopped(kind, ending);
            }
        }
    }

    /// Processes a continuation of a text with this kind of cut.
    pub(super) fn accept_continuation(
        &mut self,
        reply: Reply,
        join: Join,
        cut: CutKind,
        (shown, prompt): (PromptExcerpt, &str),
    ) {
        let alone = judge(&reply.evidence(None, false));
        if alone == Judgement::Passed {
            let why = reasons::verdict_reason(alone, &reply, None);
            self.body.keep_unplaced(reply.text.clone(), 0);
            self.record(PieceRole::Continuation, reply, Some(join), alone, why);
            return self.exhaust(ExhaustedCause::Refused);
        }
        let piece = match alone {
            Judgement::Cut(CutKind::Limit) => without_cut_character(&reply.text).to_owned(),
            Judgement::Cut(_) | Judgement::Whole { .. } | Judgement::Passed => reply.text.clone(),
        };
        if piece.trim().is_empty() {
            return self.accept_empty(reply, join, alone, cut);
        }
        // If a different question gets the same answer, that shows where it continues.
        let is_asked_otherwise = join == Join::Prompted
            && self.earlier_answer.as_ref().is_some_and(|earlier| earlier.shown_bytes != shown.length);
        let repeats = self.last_piece.as_ref() == Some(&piece) && !is_asked_otherwise;
        let is_cut = matches!(alone, Judgement::Cut(CutKind::Limit | CutKind::Dropped));
        let joined = self.join_continuation(&piece, join, is_cut, (shown, prompt));
        let joined = match joined {
            Err(Refusal::Ambiguous { best, .. }) if self.policy.on_ambiguous == OnAmbiguous::Best => {
                self.body.check_merge(*best)
            }
            other => other,
        };
        let was_in_doubt = self.refused_answers.uncertain_seam.is_some();
        self.refused_answers = RefusedAnswers {
            answers: self.refused_answers.answers + 1,
            uncertain_seam: None,
            has_talk: join == Join::Prompted && joined.is_err(),
        };
        self.earlier_answer =
            (join == Join::Prompted).then(|| Earlier { answer: piece.clone(), shown_bytes: shown.length });
        self.last_piece = Some(piece);
        match joined {
            Ok(merged) => self.accept_merged(reply, join, cut, merged, repeats),
            Err(Refusal::Unjoined { reason, proven }) => {
                let why =
                    format!("{}, and it could not be joined: {reason}", reasons::describe_ending(&reply));
                let ending = reply.ending;
                self.keep_unjoined(reply, join, cut, proven, why);
                if repeats {
                    self.give_up(cut, ExhaustedCause::NoProgress, None);
                } else {
                    self.ask_unless_stopped(cut, ending);
                }
            }
            Err(Refusal::Ambiguous { best, .. }) if repeats => {
                let why = format!(
                    "{}, and it is the same text as the one before",
                    reasons::describe_ending(&reply)
                );
                self.keep_unjoined(reply, join, cut, 0, why);
                if was_in_doubt {
                    let best = self.body.check_merge(*best).ok().map(|best| best.text);
                    self.give_up(cut, ExhaustedCause::Ambiguous, best);
                } else {
                    self.give_up(cut, ExhaustedCause::NoProgress, None);
                }
            }
            Err(Refusal::Ambiguous { best, alternatives }) => {
                let ways = match alternatives {
                    0 => "the one way to join it is not certain enough".to_owned(),
                    others => format!("it can be joined in {} ways that give different values", others + 1),
                };
                let why = format!("{}, and {ways}", reasons::describe_ending(&reply));
                let ending = reply.ending;
                self.keep_unjoined(reply, join, cut, 0, why);
                let best = self.body.check_merge(*best).ok().map(|best| best.text);
                self.refused_answers.uncertain_seam = Some(UncertainSeam { best });
                self.refused_answers.has_talk = false;
                self.ask_unless_stopped(cut, ending);
            }
        }
    }

    /// Joins a continuation, unless it proves nothing and conflicts with an earlier one that could not be joined.
    fn join_continuation(
        &self,
        piece: &str,
        join: Join,
        is_cut: bool,
        (shown, prompt): (PromptExcerpt, &str),
    ) -> Result<Merged, Refusal> {
        let (joined, is_proven) = if join == Join::Prompted {
            let question = Question::new(self.body.text(), shown, self.body.format(), prompt);
            let joined = self.body.place(&question, piece, is_cut, self.earlier_answer.as_ref());
            (
                joined,
                question
                    .proves_position(without_reasoning(self.body.text(), piece, self.body.known_signs()).1),
            )
        } else {
            (self.body.join(piece, join, is_cut), join == Join::Exact)
        };
        match joined {
            Ok(merged) if !is_proven && self.body.contradicts_earlier(piece, &merged) => {
                Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
            }
            other => other,
        }
    }

    /// Processes a continuation without text.
    fn accept_empty(&mut self, reply: Reply, join: Join, alone: Judgement, cut: CutKind) {
        let ending = reply.ending;
        let exactly_ended = matches!(alone, Judgement::Whole { .. }) && join == Join::Exact;
        if exactly_ended && self.body.verdict().is_none() {
            // The model continued its own message, which was complete.
            self.body.accept_end(&reply.text);
            let why = format!("{}: nothing was missing", reasons::describe_ending(&reply));
            let disclosed = alone == (Judgement::Whole { disclosed: true });
            let judged = Judgement::Whole { disclosed };
            self.record(PieceRole::Continuation, reply, Some(join), judged, why);
            self.set_last_seam();
            return self.finish_whole(disclosed);
        }
        let why = format!("{}, and nothing came that goes on from there", reasons::describe_ending(&reply));
        match (ending, alone) {
            (_, Judgement::Cut(CutKind::Empty)) => {
                self.keep_unjoined(reply, join, CutKind::Empty, 0, why);
                self.ask_unless_stopped(CutKind::Empty, ending);
            }
            // A broken call does not show whether the model makes progress.
            (
                Ending::UpstreamError
                | Ending::Stalled
                | Ending::Dropped
                | Ending::Cancelled
                | Ending::OverCap
                | Ending::Interrupted,
                _,
            ) => {
                self.keep_unjoined(reply, join, cut, 0, why);
                self.ask_unless_stopped(cut, ending);
            }
            // A server that repeats its cut message and adds nothing has not continued it. A prompt may still succeed.
            (Ending::Clean, Judgement::Cut(CutKind::Limit)) if join == Join::Shown => {
                self.keep_unjoined(reply, join, cut, 0, why);
                self.ask_unless_stopped(cut, ending);
            }
            (Ending::Clean, _) => {
                self.keep_unjoined(reply, join, cut, 0, why);
                self.give_up(cut, ExhaustedCause::NoProgress, None);
            }
        }
    }

    /// Processes a joined continuation. The text is whole, or is continued.
    pub(super) fn accept_merged(
        &mut self,
        reply: Reply,
        join: Join,
        cut: CutKind,
        merged: Merged,
        repeats: bool,
    ) {
        let verdict = self.body.testimony(&merged).cloned();
        let judged = judge(&reply.evidence(verdict.as_ref(), self.demands_marker()));
        let progress = self.body.is_progress(&merged);
        let stitched = join != Join::Exact;
        // A complete grammar decides. If a model answers a prompt by repeating the text, nothing else shows that the
        // text is complete.
        let whole_by_grammar = verdict.as_ref().is_some_and(Verdict::is_whole);
        let stuck =
            !whole_by_grammar && reply.ending == Ending::Clean && (!progress || (stitched && repeats));
        if stuck {
            let why = format!("{}, and it brought nothing new", reasons::describe_ending(&reply));
            if merged.text == self.body.text() {
                // The text already contains all of it.
                self.record(PieceRole::Continuation, reply, Some(join), Judgement::Cut(cut), why);
            } else {
                self.keep_unjoined(reply, join, cut, 0, why);
            }
            return self.give_up(cut, ExhaustedCause::NoProgress, None);
        }
        let why = reasons::verdict_reason(judged, &reply, self.body.grammar().zip(verdict.as_ref()));
        let ending = reply.ending;
        let cut_character =
            reply.text.get(without_cut_character(&reply.text).len()..).unwrap_or_default().to_owned();
        self.body.accept(merged);
        (self.refused_answers, self.earlier_answer) = (RefusedAnswers::default(), None);
        self.record(PieceRole::Continuation, reply, Some(join), judged, why);
        self.set_last_seam();
        match judged {
            Judgement::Whole { disclosed } => self.finish_whole(disclosed),
            Judgement::Cut(kind) => {
                if kind == CutKind::Limit {
                    self.body.set_cut_character(&cut_character);
                }
                self.ask_unless_stopped(kind, ending);
            }
            Judgement::Passed => self.exhaust(ExhaustedCause::Refused),
        }
    }

    pub(super) fn keep_unjoined(
        &mut self,
        reply: Reply,
        join: Join,
        cut: CutKind,
        proven: usize,
        why: String,
    ) {
        self.body.keep_unplaced(reply.text.clone(), proven);
        self.record(PieceRole::Continuation, reply, Some(join), Judgement::Cut(cut), why);
    }

    pub(super) fn record(
        &mut self,
        role: PieceRole,
        reply: Reply,
        join: Option<Join>,
        judged: Judgement,
        why: String,
    ) {
        self.history.push(PieceRecord {
            role,
            attempt: self.attempts,
            text: reply.text,
            ending: reply.ending,
            stop: reply.stop,
            judgement: judged,
            reason: why,
            join,
            seam: None,
        });
    }

    fn set_last_seam(&mut self) {
        if let Some(piece) = self.history.last_mut() {
            piece.seam = self.body.seams().last().cloned();
        }
    }
}
