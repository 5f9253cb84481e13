//! The machine: it is fed replies, and answers what to ask next (PC-5).

use endmark_text::Format;

use super::body::Body;
use super::placing::Earlier;
use super::shown::{BackUp, Shown, back_up};
use super::{Strategy, Wanted};
use crate::{
    AskFailure, CutKind, Ending, ExhaustedCause, Join, Judgement, PieceRecord, PieceRole, Reply, Restart,
    ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Seam, Stop, build_resume_prompt,
};

/// How many ways of asking may be refused in a row, where the policy does not allow more attempts than
/// that: continuing the message, and a prompt.
const MIN_REJECTIONS: u32 = 2;

/// Resumes one cut reply (PC-5): judges it, asks for the rest, joins what comes, and gives up where the
/// attempts are used up or nothing new comes.
///
/// It does no I/O. A driver asks it what to do, does that, and feeds it what happened:
///
/// ```
/// use endmark_recovery::{Join, Reply, Resume, ResumeOutcome, ResumePolicy, ResumeStep, Stop};
/// use endmark_text::Format;
///
/// // The model, which continues the very message that it is shown.
/// let ask = |_so_far: &str| Reply::stopped(r#"ld"}"#, Stop::Normal);
///
/// let first = Reply::stopped(r#"{"hello": "wor"#, Stop::Limit);
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
    pub(super) demanded: Option<Format>,
    pub(super) body: Body,
    /// The kind of cut the first reply had.
    pub(super) first_cut: Option<CutKind>,
    /// Continuations asked for: calls that were answered or lost.
    pub(super) attempts: u32,
    /// Calls refused since the last answer.
    rejections: u32,
    /// The last continuation that came, to know the same one again.
    pub(super) last_piece: Option<String>,
    /// What was answered to the last question about the text as it is, where that proved nothing.
    pub(super) earlier: Option<Earlier>,
    /// What is known of the answers that could not be joined since the text grew.
    pub(super) refused: Refused,
    /// Whether all of the reply was asked for anew.
    pub(super) restarted: bool,
    /// How many characters the text had that such an answer replaced.
    pub(super) replaced_chars: Option<usize>,
    pub(super) history: Vec<PieceRecord>,
    pub(super) step: ResumeStep,
}

impl Resume {
    /// Judges the first reply (PC-8). `demanded` is a format that is demanded, never one that is guessed;
    /// plain text demands nothing.
    pub fn new(policy: ResumePolicy, demanded: Option<Format>, first: Reply) -> Self {
        let demanded = demanded.filter(Format::can_be_demanded);
        let mut resume = Self {
            body: Body::new(None, String::new(), 0, policy.known),
            policy,
            demanded,
            first_cut: None,
            attempts: 0,
            rejections: 0,
            last_piece: None,
            earlier: None,
            refused: Refused::default(),
            restarted: false,
            replaced_chars: None,
            history: Vec::new(),
            step: ResumeStep::Done(ResumeOutcome::Passed),
        };
        resume.begin(first, PieceRole::First);
        resume
    }

    /// What to do next: the same until [`reply`](Self::reply) or [`failed`](Self::failed) is called.
    pub fn next(&self) -> ResumeStep {
        self.step.clone()
    }

    /// What [`next`](Self::next) answers, by reference.
    pub fn step(&self) -> &ResumeStep {
        &self.step
    }

    /// Takes the answer to what was asked. After the end it changes nothing.
    ///
    /// `join` says how it goes on from the text so far; an answer to a request that was asked again stands
    /// for itself.
    pub fn reply(&mut self, reply: Reply, join: Join) {
        self.reply_with(reply, join, None);
    }

    /// The same for an answer of which it is known what is wrong with it as a whole document, if anything is.
    pub(crate) fn reply_with(&mut self, reply: Reply, join: Join, problem: Option<String>) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let (wanted, kind, shown, prompt) = (ask.wanted, ask.kind, ask.shown, ask.prompt.clone());
        self.attempts += 1;
        self.rejections = 0;
        match wanted {
            Wanted::Rest => self.go_on(reply, join, kind, (shown, &prompt)),
            Wanted::Again => self.begin(reply, PieceRole::Again),
            Wanted::Restart => self.restart(reply, kind, problem),
        }
    }

    /// Takes note that what was asked brought no answer. After the end it changes nothing.
    #[expect(clippy::needless_pass_by_value, reason = "the machine is fed failures as it is fed replies")]
    pub fn failed(&mut self, failure: AskFailure) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let kind = ask.kind;
        let role = match ask.wanted {
            Wanted::Rest => PieceRole::Continuation,
            Wanted::Again | Wanted::Restart => PieceRole::Again,
        };
        self.restarted |= ask.wanted == Wanted::Restart && failure.is_attempt();
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
            judged: Judgement::Cut(kind),
            why,
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

    /// Takes note that the first `bytes` of the text are with the client by now: nothing changes them any more.
    /// Never fewer than before.
    ///
    /// A driver that passes a continuation on as it comes says so before it feeds that continuation.
    pub fn mark_sent(&mut self, bytes: usize) {
        self.body.mark_sent(bytes);
    }

    /// Whether the last answer could be joined, and may be something else.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let ended = match &self.step {
            ResumeStep::Done(ResumeOutcome::Exhausted(end)) => end.cause == ExhaustedCause::Ambiguous,
            ResumeStep::Done(_) | ResumeStep::Ask(_) => false,
        };
        ended || self.refused.doubt.is_some()
    }

    /// Every call and what came of it, in order.
    pub fn history(&self) -> &[PieceRecord] {
        &self.history
    }

    /// The same, for keeps.
    pub fn into_history(self) -> Vec<PieceRecord> {
        self.history
    }

    /// What kind of cut the first reply had.
    pub fn cut(&self) -> Option<CutKind> {
        self.first_cut
    }

    /// The longest beginning that is known to be true: what to hand over where the text stays cut.
    pub fn beginning(&self) -> String {
        self.body.beginning()
    }

    /// The seams so far, first to last.
    pub fn seams(&self) -> &[Seam] {
        self.body.seams()
    }

    /// Whether a text that stands for all of it begins with what the client has already.
    pub(crate) fn keeps_sent(&self, text: &str) -> bool {
        let beginning = self.beginning();
        let sent = beginning.as_bytes().get(..self.body.sent()).unwrap_or(beginning.as_bytes());
        text.as_bytes().starts_with(sent)
    }

    pub(super) fn demands_marker(&self) -> bool {
        matches!(self.body.grammar(), Some(Format::Marker(_)))
    }

    pub(super) fn whole(&mut self, disclosed: bool) {
        self.step = ResumeStep::Done(ResumeOutcome::Whole {
            text: self.body.text().to_owned(),
            seams: self.body.seams().to_vec(),
            attempts: self.attempts,
            cut: self.first_cut,
            disclosed,
            replaced_chars: self.replaced_chars,
        });
    }

    /// Asks for more, unless nobody is there to have it, it would be too much, or nothing could be done with it.
    pub(super) fn ask_unless_stopped(&mut self, kind: CutKind, ending: Ending) {
        match ending {
            _ if self.body.is_sent_beyond() => self.exhaust(ExhaustedCause::Stopped),
            // A continuation would only repeat it further.
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
            return match std::mem::take(&mut self.refused).doubt {
                Some(doubt) => self.exhaust_with(ExhaustedCause::Ambiguous, doubt.best),
                None => self.exhaust(ExhaustedCause::Attempts),
            };
        }
        let wanted = match () {
            () if self.body.is_blank() => Wanted::Again,
            () if self.is_time_to_restart() => Wanted::Restart,
            () => Wanted::Rest,
        };
        self.ask(kind, wanted);
    }

    fn ask(&mut self, kind: CutKind, wanted: Wanted) {
        let text = self.body.text();
        let (shown, prompt) = if wanted == Wanted::Rest {
            let how = if self.refused.answers == 0 { BackUp::Little } else { BackUp::Far };
            let shown = back_up(text, self.body.format(), how, self.policy.begun_by_client);
            let template = self.policy.prompt.as_deref();
            (shown, build_resume_prompt(shown.quoted(text, self.body.format()), self.body.format(), template))
        } else {
            (Shown { length: text.len(), quoted_from: 0 }, String::new())
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

    /// Whether the next call is to ask for all of the reply: as the last one, after an answer that could not be joined,
    /// unless the configured order puts it first. Where the client has a beginning, a second question can still prove what
    /// the first left open, and a whole reply seldom begins the same: then only after an answer that was no rest at all.
    fn is_time_to_restart(&self) -> bool {
        let is_last = self.attempts + 1 >= self.policy.max_attempts;
        let is_hopeless = self.body.sent() == 0 || self.refused.talked;
        let order = &self.policy.strategies;
        let is_first = order.ways().first() == Some(&Strategy::Restart);
        self.can_restart() && (is_first || is_last && self.refused.answers > 0 && is_hopeless)
    }

    fn can_restart(&self) -> bool {
        self.policy.room_to_restart
            && self.policy.restart != Restart::Off
            && self.policy.strategies.has(Strategy::Restart)
            && !self.restarted
            && self.attempts < self.policy.max_attempts
            && !self.body.is_blank()
            && !self.body.is_sent_beyond()
    }

    /// Gives up asking for the rest: all of the reply is asked for where that is still possible.
    pub(super) fn give_up(&mut self, kind: CutKind, cause: ExhaustedCause, best: Option<String>) {
        if self.can_restart() { self.ask(kind, Wanted::Restart) } else { self.exhaust_with(cause, best) }
    }

    pub(super) fn exhaust(&mut self, cause: ExhaustedCause) {
        self.exhaust_with(cause, None);
    }

    pub(super) fn exhaust_with(&mut self, cause: ExhaustedCause, best: Option<String>) {
        let last = self.history.last().map_or("", |piece| piece.why.as_str());
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

/// A seam that is not certain.
#[derive(Debug, Clone)]
pub(super) struct Doubt {
    /// The text that it would make, if that keeps what was sent.
    pub(super) best: Option<String>,
}

/// What is known of the answers that could not be joined since the text grew.
#[derive(Debug, Clone, Default)]
pub(super) struct Refused {
    /// How many there were.
    pub(super) answers: u32,
    /// The last one could be joined, and may be something else.
    pub(super) doubt: Option<Doubt>,
    /// The last one was the answer to a prompt, and no rest.
    pub(super) talked: bool,
}

/// Resumes a cut reply with a function that asks the model (PC-5): detect, prompt, stitch, at most
/// [`MAX_RESUME_ATTEMPTS`](crate::MAX_RESUME_ATTEMPTS) times by default.
///
/// `ask` answers with the reply and how it goes on from [`ResumeAsk::so_far`].
///
/// ```
/// use endmark_recovery::{Join, Reply, ResumeOutcome, ResumePolicy, Stop, resume_if_truncated};
///
/// let first = Reply::stopped("The quick brown fox ju", Stop::Limit);
/// let outcome = resume_if_truncated(ResumePolicy::default(), None, first, |_ask| {
///     Ok((Reply::stopped("mps over the lazy dog.", Stop::Normal), Join::Exact))
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
                Err(failure) => resume.failed(failure),
            },
            ResumeStep::Done(outcome) => return outcome,
        }
    }
}
