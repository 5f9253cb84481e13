//! Processes first replies and continuations (PC-5).

use endmark_text::Verdict;

use super::joined_text::{JoinRefusal, without_cut_character};
use super::machine::{RefusedAnswers, UncertainSeam};
use super::prompt_excerpt::PromptExcerpt;
use super::prompted_join::EarlierAnswer;
use super::proof::PromptContext;
use super::{Resume, reasons};
use crate::resume::joined_text::JoinedText;
use crate::stitch::without_reasoning;
use crate::{
    CutKind, Ending, ExhaustedCause, Join, Judgement, Merged, OnAmbiguous, PieceRecord, PieceRole, Reply,
    ResumeOutcome, ResumeStep, judge,
};

impl Resume {
    /// Processes a complete reply: the first one, or the answer to the repeated request.
    pub(super) fn accept_complete_reply(&mut self, mut reply: Reply, role: PieceRole) {
        let received = reply.text.clone();
        let mut kept_in_front = false;
        let alone = judge(&reply.evidence(None, false));
        if role == PieceRole::Again {
            if alone == Judgement::Passed {
                let why = reasons::verdict_reason(alone, &reply, None);
                self.joined_text.keep_unjoined(received, 0);
                self.record_piece(role, reply, None, alone, why);
                return self.exhaust(ExhaustedCause::Refused);
            }
            // The received text is blank, and its sent part is kept before the answer.
            kept_in_front = !self.joined_text.keeps_sent_text(&reply.text);
            if kept_in_front {
                reply.text.insert_str(0, self.joined_text.text());
            }
        }
        let sent = if role == PieceRole::First { self.policy.sent } else { self.joined_text.sent_bytes() };
        let body = JoinedText::new(self.required_format.clone(), reply.text.clone(), sent, self.policy.known);
        let replaced = std::mem::replace(&mut self.joined_text, body);
        self.joined_text.keep_replaced(replaced, kept_in_front);
        let verdict = self.joined_text.verdict().cloned();
        let judged = judge(&reply.evidence(verdict.as_ref(), self.demands_marker()));
        let why =
            reasons::verdict_reason(judged, &reply, self.required_format.as_ref().zip(verdict.as_ref()));
        let ending = reply.ending;
        reply.text = received;
        self.record_piece(role, reply, None, judged, why);
        match judged {
            Judgement::Whole { disclosed } => self.finish_whole(disclosed),
            Judgement::Passed => self.step = ResumeStep::Done(ResumeOutcome::Passed),
            Judgement::Cut(kind) => {
                self.first_cut = self.first_cut.or(Some(kind));
                if matches!(verdict, Some(Verdict::Malformed { .. })) {
                    self.joined_text.drop_grammar();
                }
                if kind == CutKind::Limit {
                    self.joined_text.remove_cut_character();
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
            self.joined_text.keep_unjoined(reply.text.clone(), 0);
            self.record_piece(PieceRole::Continuation, reply, Some(join), alone, why);
            return self.exhaust(ExhaustedCause::Refused);
        }
        let piece = match alone {
            Judgement::Cut(CutKind::Limit) => without_cut_character(&reply.text).to_owned(),
            Judgement::Cut(_) | Judgement::Whole { .. } | Judgement::Passed => reply.text.clone(),
        };
        if piece.trim().is_empty() {
            return self.accept_empty(reply, join, alone, cut);
        }
        // If another prompt gets the same answer, this is not a loop: it shows where the answer continues.
        let is_asked_otherwise = join == Join::Prompted
            && self.earlier_answer.as_ref().is_some_and(|earlier| earlier.shown_bytes != shown.length);
        let repeats = self.last_piece.as_ref() == Some(&piece) && !is_asked_otherwise;
        let is_cut = matches!(alone, Judgement::Cut(CutKind::Limit | CutKind::Dropped));
        let joined = self.join_continuation(&piece, join, is_cut, (shown, prompt));
        let joined = match joined {
            Err(JoinRefusal::Ambiguous { best, .. }) if self.policy.on_ambiguous == OnAmbiguous::Best => {
                self.joined_text.check_merge(*best)
            }
            other => other,
        };
        let was_in_doubt = self.refused_answers.uncertain_seam.is_some();
        self.refused_answers = RefusedAnswers {
            answers: self.refused_answers.answers + 1,
            uncertain_seam: None,
            is_remark: join == Join::Prompted && joined.is_err(),
        };
        self.earlier_answer = (join == Join::Prompted)
            .then(|| EarlierAnswer { answer: piece.clone(), shown_bytes: shown.length });
        self.last_piece = Some(piece);
        match joined {
            Ok(merged) => self.accept_merged(reply, join, cut, merged, repeats),
            Err(JoinRefusal::Unjoined { reason, proven }) => {
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
            Err(JoinRefusal::Ambiguous { best, .. }) if repeats => {
                let why = format!(
                    "{}, and it is the same text as the one before",
                    reasons::describe_ending(&reply)
                );
                self.keep_unjoined(reply, join, cut, 0, why);
                if was_in_doubt {
                    let best = self.joined_text.check_merge(*best).ok().map(|best| best.text);
                    self.give_up(cut, ExhaustedCause::Ambiguous, best);
                } else {
                    self.give_up(cut, ExhaustedCause::NoProgress, None);
                }
            }
            Err(JoinRefusal::Ambiguous { best, alternatives }) => {
                let ways = match alternatives {
                    0 => "the one way to join it is not certain enough".to_owned(),
                    others => format!("it can be joined in {} ways that give different values", others + 1),
                };
                let why = format!("{}, and {ways}", reasons::describe_ending(&reply));
                let ending = reply.ending;
                self.keep_unjoined(reply, join, cut, 0, why);
                let best = self.joined_text.check_merge(*best).ok().map(|best| best.text);
                self.refused_answers.uncertain_seam = Some(UncertainSeam { best });
                self.refused_answers.is_remark = false;
                self.ask_unless_stopped(cut, ending);
            }
        }
    }

    /// Joins a continuation. Rejects it if it has no proven seam and may conflict with an earlier unjoined
    /// one.
    fn join_continuation(
        &self,
        piece: &str,
        join: Join,
        is_cut: bool,
        (shown, prompt): (PromptExcerpt, &str),
    ) -> Result<Merged, JoinRefusal> {
        let (joined, is_proven) = if join == Join::Prompted {
            let question =
                PromptContext::new(self.joined_text.text(), shown, self.joined_text.format(), prompt);
            let joined =
                self.joined_text.join_prompted(&question, piece, is_cut, self.earlier_answer.as_ref());
            (
                joined,
                question.proves_position(
                    without_reasoning(self.joined_text.text(), piece, self.joined_text.known_signs()).1,
                ),
            )
        } else {
            (self.joined_text.join(piece, join, is_cut), join == Join::Exact)
        };
        match joined {
            Ok(merged) if !is_proven && self.joined_text.contradicts_earlier(piece, &merged) => {
                Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
            }
            other => other,
        }
    }

    /// Processes a continuation without text.
    fn accept_empty(&mut self, reply: Reply, join: Join, alone: Judgement, cut: CutKind) {
        let ending = reply.ending;
        let exactly_ended = matches!(alone, Judgement::Whole { .. }) && join == Join::Exact;
        if exactly_ended && self.joined_text.verdict().is_none() {
            // The model has nothing to add to its message, so the text was complete.
            self.joined_text.accept_end(&reply.text);
            let why = format!("{}: nothing was missing", reasons::describe_ending(&reply));
            let disclosed = alone == (Judgement::Whole { disclosed: true });
            let judged = Judgement::Whole { disclosed };
            self.record_piece(PieceRole::Continuation, reply, Some(join), judged, why);
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
            // The server repeated the cut message and added nothing. A prompt may still succeed.
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

    /// Processes a joined continuation: the text is now whole, or must be continued again.
    pub(super) fn accept_merged(
        &mut self,
        reply: Reply,
        join: Join,
        cut: CutKind,
        merged: Merged,
        repeats: bool,
    ) {
        let verdict = self.joined_text.conclusive_verdict(&merged).cloned();
        let judged = judge(&reply.evidence(verdict.as_ref(), self.demands_marker()));
        let progress = self.joined_text.is_progress(&merged);
        let stitched = join != Join::Exact;
        // If the grammar is complete, the text is whole. If a model only repeats the text, no other evidence
        // shows that it is complete.
        let whole_by_grammar = verdict.as_ref().is_some_and(Verdict::is_whole);
        let stuck =
            !whole_by_grammar && reply.ending == Ending::Clean && (!progress || (stitched && repeats));
        if stuck {
            let why = format!("{}, and it brought nothing new", reasons::describe_ending(&reply));
            if merged.text == self.joined_text.text() {
                // The text already contains the whole continuation.
                self.record_piece(PieceRole::Continuation, reply, Some(join), Judgement::Cut(cut), why);
            } else {
                self.keep_unjoined(reply, join, cut, 0, why);
            }
            return self.give_up(cut, ExhaustedCause::NoProgress, None);
        }
        let why = reasons::verdict_reason(judged, &reply, self.joined_text.grammar().zip(verdict.as_ref()));
        let ending = reply.ending;
        let cut_character =
            reply.text.get(without_cut_character(&reply.text).len()..).unwrap_or_default().to_owned();
        self.joined_text.accept(merged);
        (self.refused_answers, self.earlier_answer) = (RefusedAnswers::default(), None);
        self.record_piece(PieceRole::Continuation, reply, Some(join), judged, why);
        self.set_last_seam();
        match judged {
            Judgement::Whole { disclosed } => self.finish_whole(disclosed),
            Judgement::Cut(kind) => {
                if kind == CutKind::Limit {
                    self.joined_text.set_cut_character(&cut_character);
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
        self.joined_text.keep_unjoined(reply.text.clone(), proven);
        self.record_piece(PieceRole::Continuation, reply, Some(join), Judgement::Cut(cut), why);
    }

    pub(super) fn record_piece(
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
            piece.seam = self.joined_text.seams().last().cloned();
        }
    }
}
