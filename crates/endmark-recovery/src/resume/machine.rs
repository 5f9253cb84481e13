//! The state machine of a resume: it processes replies, and returns the next request (PC-5).

use endmark_text::Format;

use super::joined_text::JoinedText;
use super::prompt_excerpt::{HoldBack, PromptExcerpt, choose_excerpt};
use super::prompted_join::EarlierAnswer;
use super::{RequestedReply, Strategy};
use crate::{
    AskFailure, CutKind, Ending, ExhaustedCause, Join, Judgement, PieceRecord, PieceRole, Reply, Restart,
    ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Seam, Stop, build_resume_prompt,
};

/// Minimum number of consecutive rejected requests before the resume ends: one prefill and one prompt. It
/// applies if the policy permits fewer attempts.
const MIN_REJECTIONS: u32 = 2;

/// Resumes one cut reply (PC-5). It judges the reply, requests the rest, and joins the answers. It gives up
/// if no attempts remain, or if an answer adds nothing.
///
/// It does no I/O. A driver gets the next step, performs it, and reports the result:
///
/// ```
/// use endmark_recovery::{Join, Reply, Resume, ResumeOutcome, ResumePolicy, ResumeStep, Stop};
/// use endmark_text::Format;
///
/// // A model that continues the message it receives.
/// let ask = |_so_far: &str| Reply::with_stop(r#"ld"}"#, Stop::Normal);
///
/// let first = Reply::with_stop(r#"{"hello": "wor"#, Stop::Limit);
/// let mut resume = Resume::new(ResumePolicy::default(), Some(Format::Json), first);
/// let outcome = loop {
///     match resume.next() {
///         ResumeStep::Ask(request) => resume.reply(ask(&request.so_far), Join::Exact),
///         ResumeStep::Done(outcome) => break outcome,
///     }
/// };
/// let ResumeOutcome::Whole { text, attempts, .. } = outcome else { panic!("cut: {outcome:?}") };
/// assert_eq!((text.as_str(), attempts), (r#"{"hello": "world"}"#, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Resume {
    pub(super) policy: ResumePolicy,
    pub(super) required_format: Option<Format>,
    pub(super) joined_text: JoinedText,
    /// The kind of cut of the first reply, if it was cut.
    pub(super) first_cut: Option<CutKind>,
    /// Number of requested continuations, including failed calls that count as attempts.
    pub(super) attempts: u32,
    /// Number of rejected calls since the last answer.
    rejections: u32,
    /// The last continuation, to detect an identical one.
    pub(super) last_piece: Option<String>,
    /// The last answer to a prompt about the current text.
    pub(super) earlier_answer: Option<EarlierAnswer>,
    /// The answers since the text last grew that could not be joined.
    pub(super) refused_answers: RefusedAnswers,
    /// Whether the whole reply was requested again.
    pub(super) has_restarted: bool,
    /// Length in characters of the text that a regenerated reply replaced.
    pub(super) replaced_chars: Option<usize>,
    pub(super) history: Vec<PieceRecord>,
    pub(super) step: ResumeStep,
}

impl Resume {
    /// Judges the first reply (PC-8). `demanded` is the required format, if any; never pass a detected one.
    /// Plain text has no requirements.
    pub fn new(policy: ResumePolicy, demanded: Option<Format>, first: Reply) -> Self {
        let demanded = demanded.filter(Format::can_be_required);
        let mut resume = Self {
            joined_text: JoinedText::new(None, String::new(), 0, policy.known),
            policy,
            required_format: demanded,
            first_cut: None,
            attempts: 0,
            rejections: 0,
            last_piece: None,
            earlier_answer: None,
            refused_answers: RefusedAnswers::default(),
            has_restarted: false,
            replaced_chars: None,
            history: Vec::new(),
            step: ResumeStep::Done(ResumeOutcome::Passed),
        };
        resume.accept_complete_reply(first, PieceRole::First);
        resume
    }

    /// Returns the next step. It stays the same until [`reply`](Self::reply) or
    /// [`note_failure`](Self::note_failure) is called.
    pub fn next(&self) -> ResumeStep {
        self.step.clone()
    }

    /// Returns a reference to the next step. See [`next`](Self::next).
    pub fn step(&self) -> &ResumeStep {
        &self.step
    }

    /// Processes an answer. It is ignored after the end.
    ///
    /// `join` states how the answer continues the text. It is ignored for the answer to a repeated request,
    /// which replaces the reply.
    pub fn reply(&mut self, reply: Reply, join: Join) {
        self.reply_with_problem(reply, join, None);
    }

    /// Processes an answer like `reply`. `problem` states why the answer is invalid as a whole document, if
    /// it is.
    pub(crate) fn reply_with_problem(&mut self, reply: Reply, join: Join, problem: Option<String>) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let (wanted, kind, shown, prompt) = (ask.wanted, ask.kind, ask.shown, ask.prompt.clone());
        self.attempts += 1;
        self.rejections = 0;
        match wanted {
            RequestedReply::Rest => self.accept_continuation(reply, join, kind, (shown, &prompt)),
            RequestedReply::Again => self.accept_complete_reply(reply, PieceRole::Again),
            RequestedReply::Restart => self.restart(reply, kind, problem),
        }
    }

    /// Records that a call returned no answer. It is ignored after the end.
    #[expect(clippy::needless_pass_by_value, reason = "the machine is fed failures as it is fed replies")]
    pub fn note_failure(&mut self, failure: AskFailure) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let kind = ask.kind;
        let role = match ask.wanted {
            RequestedReply::Rest => PieceRole::Continuation,
            RequestedReply::Again | RequestedReply::Restart => PieceRole::Again,
        };
        self.has_restarted |= ask.wanted == RequestedReply::Restart && failure.is_attempt();
        let why = failure.to_string();
        let ending = match &failure {
            AskFailure::Rejected(_) | AskFailure::Final(_) | AskFailure::Budget(_) => Ending::UpstreamError,
            AskFailure::Lost(_) => Ending::Dropped,
            AskFailure::Unfit(_) | AskFailure::Unusable(_) => Ending::Clean,
        };
        self.history.push(PieceRecord {
            role,
            attempt: ask.attempt,
            text: String::new(),
            ending,
            stop: None,
            judgement: Judgement::Cut(kind),
            reason: why,
            join: None,
            seam: None,
        });
        self.attempts += u32::from(failure.is_attempt());
        match failure {
            AskFailure::Rejected(_) => {
                self.rejections += 1;
                if self.rejections >= self.policy.max_attempts.max(MIN_REJECTIONS) {
                    self.exhaust(ExhaustedCause::Rejected);
                }
            }
            AskFailure::Lost(_) | AskFailure::Unfit(_) => self.ask_next(kind),
            AskFailure::Unusable(_) => self.exhaust(ExhaustedCause::NoProgress),
            AskFailure::Final(_) => self.exhaust(ExhaustedCause::Refused),
            AskFailure::Budget(_) => self.exhaust(ExhaustedCause::Budget),
        }
    }

    /// Records that the client has received the first `bytes` of the text, which then can no longer change. A
    /// smaller number than before has no effect.
    ///
    /// A driver that forwards a continuation while it arrives must call this before it reports that
    /// continuation.
    pub fn mark_sent(&mut self, bytes: usize) {
        self.joined_text.mark_sent(bytes);
    }

    /// Whether the seam of the last answer is uncertain.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let ended = match &self.step {
            ResumeStep::Done(ResumeOutcome::Exhausted(end)) => end.cause == ExhaustedCause::Ambiguous,
            ResumeStep::Done(_) | ResumeStep::Ask(_) => false,
        };
        ended || self.refused_answers.uncertain_seam.is_some()
    }

    /// Returns all calls with their results, in order.
    pub fn history(&self) -> &[PieceRecord] {
        &self.history
    }

    /// Consumes the resume, and returns all calls with their results, in order.
    pub fn into_history(self) -> Vec<PieceRecord> {
        self.history
    }

    /// Returns the kind of cut of the first reply, or `None` if it was not cut.
    pub fn cut(&self) -> Option<CutKind> {
        self.first_cut
    }

    /// Returns the longest verified beginning, for delivery if the text remains cut.
    pub fn verified_beginning(&self) -> String {
        self.joined_text.verified_beginning()
    }

    /// Returns the seams so far, in order.
    pub fn seams(&self) -> &[Seam] {
        self.joined_text.seams()
    }

    /// Whether a replacement of the whole text begins with the text that the client has received.
    pub(crate) fn keeps_sent_text(&self, text: &str) -> bool {
        let beginning = self.verified_beginning();
        let sent = beginning.as_bytes().get(..self.joined_text.sent_bytes()).unwrap_or(beginning.as_bytes());
        text.as_bytes().starts_with(sent)
    }

    pub(super) fn demands_marker(&self) -> bool {
        matches!(self.joined_text.grammar(), Some(Format::Marker(_)))
    }

    pub(super) fn finish_whole(&mut self, disclosed: bool) {
        self.step = ResumeStep::Done(ResumeOutcome::Whole {
            text: self.joined_text.text().to_owned(),
            seams: self.joined_text.seams().to_vec(),
            attempts: self.attempts,
            cut: self.first_cut,
            disclosed,
            replaced_chars: self.replaced_chars,
        });
    }

    /// Requests the next answer, unless the client has disconnected, a limit is reached, or the last answer
    /// cannot be used.
    pub(super) fn ask_unless_stopped(&mut self, kind: CutKind, ending: Ending) {
        match ending {
            _ if self.joined_text.has_sent_unjoined() => self.exhaust(ExhaustedCause::Stopped),
            // A continuation would only continue the loop.
            _ if self.history.last().is_some_and(|piece| piece.stop == Some(Stop::Repetition)) => {
                self.exhaust(ExhaustedCause::NoProgress);
            }
            Ending::Cancelled | Ending::OverCap | Ending::Interrupted => {
                self.exhaust(ExhaustedCause::Stopped);
            }
            Ending::Clean | Ending::UpstreamError | Ending::Stalled | Ending::Dropped => self.ask_next(kind),
        }
    }

    pub(super) fn ask_next(&mut self, kind: CutKind) {
        if self.attempts >= self.policy.max_attempts {
            return match std::mem::take(&mut self.refused_answers).uncertain_seam {
                Some(doubt) => self.exhaust_with_best(ExhaustedCause::Ambiguous, doubt.best),
                None => self.exhaust(ExhaustedCause::Attempts),
            };
        }
        let wanted = match () {
            () if self.joined_text.has_no_text() => RequestedReply::Again,
            () if self.should_restart() => RequestedReply::Restart,
            () => RequestedReply::Rest,
        };
        self.ask(kind, wanted);
    }

    fn ask(&mut self, kind: CutKind, wanted: RequestedReply) {
        let text = self.joined_text.text();
        let (shown, prompt) = if wanted == RequestedReply::Rest {
            let how = if self.refused_answers.answers == 0 { HoldBack::Little } else { HoldBack::Further };
            let shown =
                choose_excerpt(text, self.joined_text.format(), how, self.policy.client_written_bytes);
            let template = self.policy.prompt.as_deref();
            (
                shown,
                build_resume_prompt(
                    shown.quoted_part(text, self.joined_text.format()),
                    self.joined_text.format(),
                    template,
                ),
            )
        } else {
            (PromptExcerpt { length: text.len(), quoted_from: 0 }, String::new())
        };
        let (attempt, so_far) = (self.attempts + 1, text.to_owned());
        self.step = ResumeStep::Ask(ResumeAsk {
            attempt,
            kind,
            so_far,
            prompt,
            shown,
            wanted,
            known: self.policy.known,
        });
    }

    /// Whether to request the complete reply next. This is the last attempt after an answer that could not be
    /// joined, or an earlier one if the policy prefers it. If the client has received a beginning, another
    /// prompt comes first, because a regenerated reply rarely repeats that beginning. But after an answer
    /// that was not a continuation, no other prompt follows.
    fn should_restart(&self) -> bool {
        let is_last = self.attempts + 1 >= self.policy.max_attempts;
        let is_hopeless = self.joined_text.sent_bytes() == 0 || self.refused_answers.is_remark;
        let order = &self.policy.strategies;
        let is_first = order.ways().first() == Some(&Strategy::Restart);
        self.can_restart() && (is_first || is_last && self.refused_answers.answers > 0 && is_hopeless)
    }

    fn can_restart(&self) -> bool {
        self.policy.room_to_restart
            && self.policy.restart != Restart::Off
            && self.policy.strategies.has(Strategy::Restart)
            && !self.has_restarted
            && self.attempts < self.policy.max_attempts
            && !self.joined_text.has_no_text()
            && !self.joined_text.has_sent_unjoined()
    }

    /// Gives up on the rest. Requests the complete reply if that is still possible.
    pub(super) fn give_up(&mut self, kind: CutKind, cause: ExhaustedCause, best: Option<String>) {
        if self.can_restart() {
            self.ask(kind, RequestedReply::Restart);
        } else {
            self.exhaust_with_best(cause, best);
        }
    }

    pub(super) fn exhaust(&mut self, cause: ExhaustedCause) {
        self.exhaust_with_best(cause, None);
    }

    pub(super) fn exhaust_with_best(&mut self, cause: ExhaustedCause, best: Option<String>) {
        let last = self.history.last().map_or("", |piece| piece.reason.as_str());
        let reason = match (cause, self.attempts) {
            (ExhaustedCause::Attempts, 0) => format!("no continuation may be asked for: {last}"),
            (ExhaustedCause::Attempts, attempts) => {
                format!("still not whole after {attempts} of {} attempts: {last}", self.policy.max_attempts)
            }
            (_, 0) => format!("not resumed: {last}"),
            (_, attempts) => format!("not resumed further after {attempts} attempts: {last}"),
        };
        let (merged_raw, verified_len) = self.joined_text.clone().into_merged_raw();
        self.step = ResumeStep::Done(ResumeOutcome::Exhausted(ResumeExhausted {
            attempts: self.attempts,
            merged_raw,
            verified_len,
            cause,
            reason,
            best,
        }));
    }
}

/// An answer with an uncertain seam.
#[derive(Debug, Clone)]
pub(super) struct UncertainSeam {
    /// The text with this seam, or `None` if it would change text that the client has received.
    pub(super) best: Option<String>,
}

/// The answers since the text last grew that could not be joined.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedAnswers {
    /// The number of these answers.
    pub(super) answers: u32,
    /// The uncertain seam of the last answer, if it had one.
    pub(super) uncertain_seam: Option<UncertainSeam>,
    /// Whether the last answer to a prompt was not a continuation.
    pub(super) is_remark: bool,
}

/// Resumes a cut reply with a function that calls the model (PC-5). By default, it makes at most
/// [`MAX_RESUME_ATTEMPTS`](crate::MAX_RESUME_ATTEMPTS) attempts.
///
/// `ask` returns the answer, and how it continues [`ResumeAsk::so_far`].
///
/// ```
/// use endmark_recovery::{Join, Reply, ResumeOutcome, ResumePolicy, Stop, resume_if_truncated};
///
/// let first = Reply::with_stop("The quick brown fox ju", Stop::Limit);
/// let outcome = resume_if_truncated(ResumePolicy::default(), None, first, |_ask| {
///     Ok((Reply::with_stop("mps over the lazy dog.", Stop::Normal), Join::Exact))
/// });
/// assert!(matches!(outcome, ResumeOutcome::Whole { text, .. } if text.ends_with("fox jumps over the lazy dog.")));
/// ```
pub fn resume_if_truncated(
    policy: ResumePolicy,
    demanded: Option<Format>,
    first: Reply,
    mut ask: impl FnMut(&ResumeAsk) -> Result<(Reply, Join), AskFailure>,
) -> ResumeOutcome {
    let mut resume = Resume::new(policy, demanded, first);
    loop {
        match resume.next() {
            ResumeStep::Ask(request) => match ask(&request) {
                Ok((reply, join)) => resume.reply(reply, join),
                Err(failure) => resume.note_failure(failure),
            },
            ResumeStep::Done(outcome) => return outcome,
        }
    }
}
