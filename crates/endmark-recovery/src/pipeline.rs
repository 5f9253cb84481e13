//! Processes a reply in stages: truncation resume, schema validation, formatting correction (PC-6).

mod outcome;

use std::fmt;

pub use outcome::{
    CorrectionRequest, DEFAULT_MAX_CORRECTIONS, PipelineOutcome, PipelinePolicy, PipelineResult, PipelineStep,
};

use crate::correction::{close_for_validation, first_lost, malformation, sort_problems};
use crate::{
    AskFailure, CutKind, Ending, Join, Judgement, PieceRecord, PieceRole, Reply, RequestedReply, Resume,
    ResumeExhausted, ResumeOutcome, ResumeStep, SchemaProblem, Seam, Validate, build_correction_prompt,
    extract_json, judge,
};
use endmark_text::detect::detect;
use endmark_text::{Format, Verdict, escape_control_characters};

/// A validator that can be shared between threads.
type Validator = Box<dyn Validate + Send + Sync>;

/// The problem that is reported if the text is a valid document, but one of its seams is uncertain.
const UNCERTAIN_SEAM_PROBLEM: &str =
    "it came in pieces, and where they meet something may be missing or there twice";

/// The problem of a document that is whole only if its strings may contain raw control characters.
pub const CONTROL_CHARACTERS: &str = "control_characters";

/// Processes one reply in these stages, always in this order (PC-6):
///
/// 1. truncation resume `[3_MCP-TAS-072]`,
/// 2. schema validation `[3_MCP-TAS-071]`,
/// 3. formatting correction `[3_MCP-TAS-071]`.
///
/// It is driven like [`Resume`]:
///
/// ```
/// use endmark_recovery::{Join, Pipeline, PipelinePolicy, PipelineResult, PipelineStep, Reply, Stop};
/// use endmark_text::Format;
///
/// let first = Reply::with_stop(r#"{"sum": [1, 2,"#, Stop::Limit);
/// let mut pipeline = Pipeline::new(PipelinePolicy::default(), Some(Format::Json), None, first);
/// let outcome = loop {
///     match pipeline.next() {
///         PipelineStep::Resume(_ask) => pipeline.accept_continuation(Reply::with_stop(" 3]}", Stop::Normal), Join::Exact),
///         PipelineStep::Correct(_ask) => pipeline.accept_correction(Reply::with_stop("{}", Stop::Normal)),
///         PipelineStep::Done(outcome) => break outcome,
///     }
/// };
/// assert_eq!(outcome.text, r#"{"sum": [1, 2, 3]}"#);
/// assert_eq!(outcome.result, PipelineResult::Resumed);
/// ```
pub struct Pipeline {
    max_corrections: u32,
    may_change: bool,
    required_format: Option<Format>,
    validator: Option<Validator>,
    resume: Resume,
    /// The result of the resume, or `None` while it runs.
    draft: Option<Draft>,
    corrections: u32,
    correction_pieces: Vec<PieceRecord>,
    step: PipelineStep,
}

/// The reply that is delivered unless a correction succeeds.
#[derive(Debug, Clone)]
struct Draft {
    text: String,
    result: PipelineResult,
    attempts: u32,
    disclosed: bool,
    seams: Vec<Seam>,
    problems: Vec<SchemaProblem>,
}

impl Pipeline {
    /// Judges the first reply. If JSON is required, the text must be well-formed, and the `validator` checks
    /// it as well.
    pub fn new(
        policy: PipelinePolicy,
        demanded: Option<Format>,
        validator: Option<Box<dyn Validate + Send + Sync>>,
        first: Reply,
    ) -> Self {
        let resume = Resume::new(policy.resume, demanded.clone(), first);
        let mut pipeline = Self {
            max_corrections: policy.max_corrections,
            may_change: policy.may_change,
            required_format: demanded,
            validator,
            // A placeholder, which is replaced before it is read.
            step: PipelineStep::Correct(CorrectionRequest {
                attempt: 0,
                prompt: String::new(),
                text: String::new(),
            }),
            resume,
            draft: None,
            corrections: 0,
            correction_pieces: Vec::new(),
        };
        pipeline.advance();
        pipeline
    }

    /// Returns the next step. It stays the same until an answer or a failure is reported.
    pub fn next(&self) -> PipelineStep {
        self.step.clone()
    }

    /// Processes a continuation. It is ignored unless one was requested.
    pub fn accept_continuation(&mut self, reply: Reply, join: Join) {
        let PipelineStep::Resume(ask) = &self.step else { return };
        // A regenerated reply must be a valid document. An invalid continuation can still be corrected.
        let is_document = ask.wanted == RequestedReply::Restart && self.required_format == Some(Format::Json);
        let problems = if is_document { self.problems(&reply.text) } else { Vec::new() };
        self.resume.reply_with_problem(reply, join, problems.first().map(ToString::to_string));
        self.advance();
    }

    /// Processes the answer to a correction. It is ignored unless one was requested.
    pub fn accept_correction(&mut self, reply: Reply) {
        let (PipelineStep::Correct(ask), Some(draft)) = (&self.step, self.draft.take()) else { return };
        let text = ask.text.clone();
        self.corrections += 1;
        self.check_correction(draft, text, reply);
    }

    /// Records that a call returned no answer. It is ignored after the end.
    pub fn note_failure(&mut self, failure: AskFailure) {
        match (&self.step, self.draft.take()) {
            (PipelineStep::Resume(_), _) => {
                self.resume.note_failure(failure);
                self.advance();
            }
            (PipelineStep::Correct(_), Some(draft)) => {
                if failure.is_attempt() {
                    self.corrections += 1;
                }
                let why = failure.to_string();
                self.record(
                    Reply::broken_off("", Ending::UpstreamError),
                    Judgement::Cut(CutKind::Dropped),
                    why,
                );
                self.finish(draft);
            }
            (PipelineStep::Correct(_) | PipelineStep::Done(_), _) => {}
        }
    }

    /// Records that the client has received the first `bytes` of the text. See [`Resume::mark_sent`].
    pub fn mark_sent(&mut self, bytes: usize) {
        self.resume.mark_sent(bytes);
    }

    /// Returns all received pieces: the first reply and its continuations.
    pub fn pieces(&self) -> &[PieceRecord] {
        self.resume.history()
    }

    /// Whether the seam of the last answer was ambiguous or uncertain. Such an answer does not show how the
    /// server continues a message.
    pub fn is_in_doubt(&self) -> bool {
        self.resume.is_in_doubt()
    }

    /// Stage 1, truncation resume [3_MCP-TAS-072], and then stage 2. The resume comes first: a cut reply
    /// violates every schema, and a correction would invent the missing end.
    fn advance(&mut self) {
        match self.resume.step().clone() {
            ResumeStep::Ask(ask) => self.step = PipelineStep::Resume(ask),
            ResumeStep::Done(ResumeOutcome::Passed) => {
                let text = self.resume.verified_beginning();
                self.finish(Draft::new(text, PipelineResult::Passed));
            }
            ResumeStep::Done(ResumeOutcome::Whole {
                text,
                seams,
                attempts,
                cut: _,
                disclosed,
                replaced_chars,
            }) => {
                let result = match replaced_chars {
                    Some(replaced_chars) => PipelineResult::Restarted { replaced_chars },
                    None if attempts == 0 => PipelineResult::Whole,
                    None => PipelineResult::Resumed,
                };
                self.validate(Draft { attempts, disclosed, seams, ..Draft::new(text, result) });
            }
            ResumeStep::Done(ResumeOutcome::Exhausted(exhausted)) => self.correct_exhausted(exhausted),
        }
    }

    /// Stage 2, schema validation [3_MCP-TAS-071]. Only whole texts are validated.
    fn validate(&mut self, mut draft: Draft) {
        if self.required_format != Some(Format::Json) {
            return self.finish(draft);
        }
        if let Verdict::Truncated(_) = detect(draft.text.as_bytes(), &Format::Json).verdict {
            // The text is incomplete only because the client's own stop sequence ended it, as requested.
            return self.finish(draft);
        }
        // Models write raw line feeds in strings. Escaping them keeps the value, so no correction is needed.
        let received = std::mem::take(&mut draft.text);
        let (escaped, controls) = escape_control_characters(&received);
        let is_escaped = controls > 0 && malformation(&received).is_none();
        let document = if is_escaped { &*escaped } else { received.as_str() };
        draft.problems = self.problems(document);
        let keeps_sent = self.resume.keeps_sent_text(document);
        if is_escaped && !keeps_sent {
            draft
                .problems
                .push(SchemaProblem { path: String::new(), message: CONTROL_CHARACTERS.to_owned() });
        }
        draft.text = if keeps_sent { document.to_owned() } else { received };
        if draft.problems.is_empty() {
            if is_escaped {
                draft.result = PipelineResult::Corrected;
            }
            return self.finish(draft);
        }
        draft.result = PipelineResult::Invalid;
        let text = draft.text.clone();
        self.correct(draft, text);
    }

    /// Requests a correction after an exhausted resume [3_MCP-TAS-071]. The received text may still be
    /// recoverable, and the schema's messages state what is missing.
    fn correct_exhausted(&mut self, exhausted: ResumeExhausted) {
        let tried = self.resume.history().len() > 1;
        let correctable =
            tried && self.required_format == Some(Format::Json) && exhausted.cause.allows_correction();
        let raw = exhausted.merged_raw.clone();
        let seams = self.resume.seams().to_vec();
        let attempts = exhausted.attempts;
        let beginning = self.resume.verified_beginning();
        let mut draft =
            Draft { attempts, seams, ..Draft::new(beginning, PipelineResult::Exhausted(exhausted)) };
        if !correctable || raw.trim().is_empty() {
            return self.finish(draft);
        }
        draft.problems = self.problems(&raw);
        if draft.problems.is_empty() {
            // The text is a document, but one of its seams is uncertain.
            draft
                .problems
                .push(SchemaProblem { path: String::new(), message: UNCERTAIN_SEAM_PROBLEM.to_owned() });
        }
        self.correct(draft, raw);
    }

    /// Returns the problems of a text: the reason why it is not a document, and the validator's problems with
    /// the document or its valid beginning.
    fn problems(&self, text: &str) -> Vec<SchemaProblem> {
        let mut problems: Vec<SchemaProblem> = malformation(text).into_iter().collect();
        if let (Some(validator), Some(document)) = (&self.validator, close_for_validation(text)) {
            problems.extend(validator.validate(&document));
        }
        sort_problems(problems)
    }

    /// Stage 3, formatting correction [3_MCP-TAS-071]. It comes last, because the model writes the whole
    /// document again.
    fn correct(&mut self, draft: Draft, text: String) {
        if self.corrections >= self.max_corrections {
            return self.finish(draft);
        }
        self.step = PipelineStep::Correct(CorrectionRequest {
            attempt: self.corrections + 1,
            prompt: build_correction_prompt(&draft.problems),
            text,
        });
        self.draft = Some(draft);
    }

    fn check_correction(&mut self, mut draft: Draft, correction_prompt: String, reply: Reply) {
        let judged = judge(&reply.evidence(None, false));
        let document = extract_json(&reply.text).map(|text| escape_control_characters(text).0.into_owned());
        let (document, problems) = match (judged, document) {
            (Judgement::Passed, _) => {
                self.record(
                    reply,
                    judged,
                    "the provider refused, filtered or paused the correction".to_owned(),
                );
                return self.finish(draft);
            }
            (Judgement::Whole { .. } | Judgement::Cut(_), None) => {
                let why = "the correction has no whole JSON document in it".to_owned();
                self.record(reply, judged, why);
                return self.correct(draft, correction_prompt);
            }
            (Judgement::Whole { .. } | Judgement::Cut(_), Some(document)) => {
                let problems = self.problems(&document);
                (document, problems)
            }
        };
        let whole = Judgement::Whole { disclosed: judged != Judgement::Whole { disclosed: false } };
        if let Some(first) = problems.first() {
            let why = format!("the corrected document still has {} problems: {first}", problems.len());
            self.record(reply, whole, why);
            if self.corrections < self.max_corrections {
                // The next correction starts from the better document. The draft remains the text to deliver
                // if it fails.
                let prompt = build_correction_prompt(&problems);
                let attempt = self.corrections + 1;
                self.step = PipelineStep::Correct(CorrectionRequest { attempt, prompt, text: document });
                self.draft = Some(draft);
                return;
            }
            return self.finish(draft);
        }
        if !self.resume.keeps_sent_text(&document) {
            self.record(reply, whole, "the corrected document changes what the client has".to_owned());
            return self.finish(draft);
        }
        if let Some(path) = self.first_lost(&draft, &document) {
            let place = if path.is_empty() { "the document".to_owned() } else { path };
            let why = format!("the corrected document changes or drops what was received complete: {place}");
            self.record(reply, whole, why);
            return self.finish(draft);
        }
        self.record(reply, whole, "the corrected document is valid".to_owned());
        draft.text = document;
        draft.result = PipelineResult::Corrected;
        self.finish(draft);
    }

    /// Returns the first verified value that a valid corrected document loses although no schema requires
    /// this.
    fn first_lost(&self, draft: &Draft, document: &str) -> Option<String> {
        if self.may_change {
            return None;
        }
        let received = match &draft.result {
            PipelineResult::Exhausted(exhausted) => exhausted.merged_raw.get(..exhausted.verified_len),
            _ => Some(draft.text.as_str()),
        };
        first_lost(received.unwrap_or_default(), document, &|changed| !self.problems(changed).is_empty())
    }

    fn record(&mut self, reply: Reply, judged: Judgement, why: String) {
        self.correction_pieces.push(PieceRecord {
            role: PieceRole::Correction,
            attempt: self.corrections,
            text: reply.text,
            ending: reply.ending,
            stop: reply.stop,
            judgement: judged,
            reason: why,
            join: None,
            seam: None,
        });
    }

    fn finish(&mut self, draft: Draft) {
        let mut pieces = self.resume.history().to_vec();
        pieces.append(&mut self.correction_pieces);
        self.step = PipelineStep::Done(PipelineOutcome {
            text: draft.text,
            result: draft.result,
            attempts: draft.attempts,
            corrections: self.corrections,
            cut: self.resume.cut(),
            disclosed: draft.disclosed,
            seams: draft.seams,
            problems: draft.problems,
            pieces,
        });
    }
}

impl Draft {
    fn new(text: String, result: PipelineResult) -> Self {
        Self { text, result, attempts: 0, disclosed: false, seams: Vec::new(), problems: Vec::new() }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pipeline").field("step", &self.step).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
