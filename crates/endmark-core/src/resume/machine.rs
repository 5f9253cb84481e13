//! The machine: it is fed replies, and answers what to ask next (PC-5).

use super::body::Body;
use crate::{
    AskFailure, CutKind, Ending, ExhaustedCause, Format, Join, Judgement, PieceRecord, PieceRole, Reply,
    ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Seam, build_resume_prompt,
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
/// use endmark_core::{Format, Join, Reply, Resume, ResumeOutcome, ResumePolicy, ResumeStep, Stop};
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
    pub(super) history: Vec<PieceRecord>,
    pub(super) step: ResumeStep,
}

impl Resume {
    /// Judges the first reply (PC-8). `demanded` is a format that is demanded, never one that is guessed;
    /// plain text demands nothing.
    pub fn new(policy: ResumePolicy, demanded: Option<Format>, first: Reply) -> Self {
        let demanded = demanded.filter(Format::can_be_demanded);
        let mut resume = Self {
            body: Body::new(None, String::new(), 0),
            policy,
            demanded,
            first_cut: None,
            attempts: 0,
            rejections: 0,
            last_piece: None,
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
        let ResumeStep::Ask(ask) = &self.step else { return };
        let (again, kind) = (ask.again, ask.kind);
        self.attempts += 1;
        self.rejections = 0;
        if again {
            self.begin(reply, PieceRole::Again);
        } else {
            self.go_on(reply, join, kind);
        }
    }

    /// Takes note that what was asked brought no answer. After the end it changes nothing.
    #[expect(clippy::needless_pass_by_value, reason = "the machine is fed failures as it is fed replies")]
    pub fn failed(&mut self, failure: AskFailure) {
        let ResumeStep::Ask(ask) = &self.step else { return };
        let kind = ask.kind;
        let role = if ask.again { PieceRole::Again } else { PieceRole::Continuation };
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
        });
    }

    /// Asks for more, unless nobody is there to have it, it would be too much, or nothing could be done with it.
    pub(super) fn ask_unless_stopped(&mut self, kind: CutKind, ending: Ending) {
        match ending {
            _ if self.body.is_sent_beyond() => self.exhaust(ExhaustedCause::Stopped),
            Ending::Cancelled | Ending::OverCap | Ending::Interrupted => {
                self.exhaust(ExhaustedCause::Stopped);
            }
            Ending::Clean | Ending::UpstreamError | Ending::Stalled | Ending::Dropped => self.ask_next(kind),
        }
    }

    pub(super) fn ask_next(&mut self, kind: CutKind) {
        if self.attempts >= self.policy.max_attempts {
            return self.exhaust(ExhaustedCause::Attempts);
        }
        let again = self.body.is_blank();
        let prompt = if again {
            String::new()
        } else {
            let template = self.policy.prompt.as_deref();
            build_resume_prompt(self.body.last_valid_token(), self.body.format(), template)
        };
        self.step = ResumeStep::Ask(ResumeAsk {
            attempt: self.attempts + 1,
            kind,
            so_far: self.body.text().to_owned(),
            prompt,
            from: self.body.asked_from(),
            again,
        });
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

/// Resumes a cut reply with a function that asks the model (PC-5): detect, prompt, stitch, at most
/// [`MAX_RESUME_ATTEMPTS`](crate::MAX_RESUME_ATTEMPTS) times by default.
///
/// `ask` answers with the reply and how it goes on from [`ResumeAsk::so_far`].
///
/// ```
/// use endmark_core::{Join, Reply, ResumeOutcome, ResumePolicy, Stop, resume_if_truncated};
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
