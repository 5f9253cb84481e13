//! The state machine of a resume: takes replies, and returns the next request (PC-5).

use endmark_text::Format;

use super::body::Body;
use super::placing::Earlier;
use super::shown::{BackUp, PromptExcerpt, back_up};
use super::{RequestedReply, Strategy};
use crate::{
    AskFailure, CutKind, Ending, ExhaustedCause, Join, Judgement, PieceRecord, PieceRole, Reply, Restart,
    ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Seam, Stop, build_resume_prompt,
};

/// Consecutive rejected requests that are permitted if the policy has fewer attempts: one prefill and one prompt.
const MIN_REJECTIONS: u32 = 2;

/// Resumes one cut reply (PC-5). It judges the reply, requests the rest, and joins the answers. It gives up if no
/// attempts remain or an answer adds nothing.
///
/// It does no I/O. A driver gets the next step, performs it, and reports the result:
///
/// ```
/// use endmark_recovery::{Join, Reply, Resume, ResumeOutcome, ResumePolicy, ResumeStep, Stop};
/// use endmark_text::Format;
///
/// // The model, which continues the message that it receives.
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
    pub(super) body: Body,
    /// The kind of cut of the first reply.
    pub(super) first_cut: Option<CutKind>,
    /// Number of requested continuations, including lost calls.
    pub(super) attempts: u32,
    /// Number of rejected calls since the last answer.
    rejections: u32,
    /// The last continuation, to detect an identical one.
    pub(super) last_piece: Option<String>,
    /// The last answer about the current text, if it did not prove a seam.
    pub(super) earlier_answer: Option<Earlier>,
    /// The answers since the text last grew that could not be joined.
    pub(super) refused_answers: RefusedAnswers,
    /// Whether the whole reply was requested again.
    pub(super) restarted: bool,
    /// The length in characters of the text that a regenerated reply replaced.
    pub(super) replaced_chars: Option<usize>,
    pub(super) history: Vec<PieceRecord>,
    pub(super) step: ResumeStep,
}

impl Resume {
    /// Judges the first reply (PC-8). `demanded` is a required format, and never a detected one. Plain text has no
    /// requirements.
    pub fn new(policy: ResumePolicy, demanded: Option<Format>, first: Reply) -> Self {
        let demanded = demanded.filter(Format::can_be_required);
        let mut resume = Self {
            body: Body::new(None, String::new(), 0, policy.known),
            policy,
            required_format: demanded,
            first_cut: None,
            attempts: 0,
            rejections: 0,
            last_piece: None,
            earlier_answer: None,
            refused_answers: RefusedAnswers::default(),
            restarted: false,
            replaced_chars: None,
            history: Vec::new(),
            step: ResumeStep::Done(ResumeOutcome::Passed),
        };
        resume.begin(first, PieceRole::First);
        resume
    }

    /// Returns the next step. It does not change until [`reply`](Self::reply) or [`note_failure`](Self::note_failure)
    /// is called.
    pub fn next(&self) -> ResumeStep {
        self.step.clone()
    }

    /// Returns the same as [`next`](Self::next), by reference.
    pub fn step(&self) -> &ResumeStep {
        &self.step
    }

    /// Processes an answer. After the end it has no effect.
    ///
    /// `join` is how the answer continues the text. An answer to a repeated request is complete by itself.
    pub fn reply(&mut self, reply: Reply, join: Join) {
        self.reply_with(reply, join, None);
    }

    /// Does the same as `reply`, with a known problem of the answer as a whole document.
    pub(crate) fn reply_with(&mut self, reply: Reply, join: Join, problem: Option<String>) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let (wanted, kind, shown, prompt) = (ask.wanted, ask.kind, ask.shown, ask.prompt.clone());
        self.attempts += 1;
        self.rejections = 0;
        match wanted {
            RequestedReply::Rest => self.accept_continuation(reply, join, kind, (shown, &prompt)),
            RequestedReply::Again => self.begin(reply, PieceRole::Again),
            RequestedReply::Restart => self.restart(reply, kind, problem),
        }
    }

    /// Records that a call brought no answer. After the end it has no effect.
    #[expect(clippy::needless_pass_by_value, reason = "the machine is fed failures as it is fed replies")]
    pub fn note_failure(&mut self, failure: AskFailure) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let kind = ask.kind;
        let role = match ask.wanted {
            RequestedReply::Rest => PieceRole::Continuation,
            RequestedReply::Again | RequestedReply::Restart => PieceRole::Again,
        };
        self.restarted |= ask.wanted == RequestedReply::Restart && failure.is_attempt();
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

    /// Records that the client has the first `bytes` of the text, which can no longer change. The number never
    /// decreases.
    ///
    /// A driver that forwards a continuation while it arrives calls this before it reports that continuation.
    pub fn mark_sent(&mut self, bytes: usize) {
        self.body.mark_sent(bytes);
    }

    /// Whether the last answer could be joined, but may not be a continuation.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let ended = match &self.step {
            ResumeStep::Done(ResumeOutcome::Exhausted(end)) => end.cause == ExhaustedCause::Ambiguous,
            ResumeStep::Done(_) | ResumeStep::Ask(_) => false,
        };
        ended || self.refused_answers.uncertain_seam.is_some()
    }

    /// Returns every call with its result, in order.
    pub fn history(&self) -> &[PieceRecord] {
        &self.history
    }

    /// Returns the same as [`history`](Self::history), by value.
    pub fn into_history(self) -> Vec<PieceRecord> {
        self.history
    }

    /// Returns the kind of cut of the first reply.
    pub fn cut(&self) -> Option<CutKind> {
        self.first_cut
    }

    /// Returns the longest verified beginning, to be delivered if the text stays cut.
    pub fn verified_beginning(&self) -> String {
        self.body.verified_beginning()
    }

    /// Returns the seams so far, in order.
    pub fn seams(&self) -> &[Seam] {
        self.body.seams()
    }

    /// Whether a replacement of the whole text begins with what the client already has.
    pub(crate) fn keeps_sent(&self, text: &str) -> bool {
        let beginning = self.verified_beginning();
        let sent = beginning.as_bytes().get(..self.body.sent_bytes()).unwrap_or(beginning.as_bytes());
        text.as_bytes().starts_with(sent)
    }

    pub(super) fn demands_marker(&self) -> bool {
        matches!(self.body.grammar(), Some(Format::Marker(_)))
    }

    pub(super) fn finish_whole(&mut self, disclosed: bool) {
        self.step = ResumeStep::Done(ResumeOutcome::Whole {
            text: self.body.text().to_owned(),
            seams: self.body.seams().to_vec(),
            attempts: self.attempts,
            cut: self.first_cut,
            disclosed,
            replaced_chars: self.replaced_chars,
        });
    }

    /// Requests more, unless the client disconnected, a limit is reached, or the answer was unusable.
    pub(super) fn ask_unless_stopped(&mut self, kind: CutKind, ending: Ending) {
        match ending {
            _ if self.body.has_sent_unjoined() => self.exhaust(ExhaustedCause::Stopped),
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
            () if self.body.is_blank() => RequestedReply::Again,
            () if self.is_time_to_restart() => RequestedReply::Restart,
            () => RequestedReply::Rest,
        };
        self.ask(kind, wanted);
    }

    fn ask(&mut self, kind: CutKind, wanted: RequestedReply) {
        let text = self.body.text();
        let (shown, prompt) = if wanted == RequestedReply::Rest {
            let how = if self.refused_answers.answers == 0 { BackUp::Little } else { BackUp::Further };
            let shown = back_up(text, self.body.format(), how, self.policy.begun_by_client);
            let template = self.policy.prompt.as_deref();
            (
                shown,
                build_resume_prompt(
                    shown.quoted_part(text, self.body.format()),
                    self.body.format(),
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

    /// Whether the next call requests the complete reply. This is the last call after an answer that could not be
    /// joined, or an earlier one if so configured. If the client has a beginning, a new reply rarely repeats it. In
    /// that case a second prompt comes first, unless the answer was not a continuation.
    fn is_time_to_restart(&self) -> bool {
        let is_last = self.attempts + 1 >= self.policy.max_attempts;
        let is_hopeless = self.body.sent_bytes() == 0 || self.refused_answers.has_talk;
        let order = &self.policy.strategies;
        let is_first = order.ways().first() == Some(&Strategy::Restart);
        self.can_restart() && (is_first || is_last && self.refused_answers.answers > 0 && is_hopeless)
    }

    fn can_restart(&self) -> bool {
        self.policy.room_to_restart
            && self.policy.restart != Restart::Off
            && self.policy.strategies.has(Strategy::Restart)
            && !self.restarted
            && self.attempts < self.policy.max_attempts
            && !self.body.is_blank()
            && !self.body.has_sent_unjoined()
    }

    /// Stops requesting the rest. Requests the complete reply if that is still possible.
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
        let (merged_raw, verified_len) = self.body.clone().into_merged_raw();
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

/// An uncertain seam.
#[derive(Debug, Clone)]
pub(super) struct UncertainSeam {
    /// The text that it would give, if that text keeps everything sent.
    pub(super) best: Option<String>,
}

/// The answers since the text last grew that could not be joined.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedAnswers {
    /// Their number.
    pub(super) answers: u32,
    /// The doubt about the last answer, if it could be joined but may not be a continuation.
    pub(super) uncertain_seam: Option<UncertainSeam>,
    /// Whether the last answer followed a prompt and was not a continuation.
    pub(super) has_talk: bool,
}

/// Resumes a cut reply with a function that asks the model (PC-5). By default it makes at most
/// [`MAX_RESUME_ATTEMPTS`](crate::MAX_RESUME_ATTEMPTS) attempts.
///
/// `ask` returns the reply and how it continues [`ResumeAsk::so_far`].
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
