//! Reads the answer to a prompt while it arrives, and determines how much of it certainly belongs to the text
//! (PC-9).

use endmark_text::Format;

use super::prompt_excerpt::PromptExcerpt;
use super::proof::{PromptContext, SeamProof};
use crate::stitch::{CertainText, ReasoningSigns, StitchStream, is_fence_line, partial_without_reasoning};

/// The growing answer to a prompt. It can be forwarded once it has proved where it continues the text (PC-4,
/// PC-9).
///
/// ```
/// use endmark_recovery::{PromptedStream, PromptExcerpt, build_resume_prompt};
/// use endmark_text::Format;
///
/// let shown = PromptExcerpt { length: 12, quoted_from: 0 };
/// let prompt = build_resume_prompt("The harbour", &Format::Text, None);
/// let mut stream = PromptedStream::new("The harbour was qui", (shown, &prompt), &Format::Text);
/// stream.push("The harbour ");
/// assert!(stream.certain().is_none(), "what is held has not come yet");
/// stream.push("was quiet, and the gulls had not yet found the boats.\n\nMira counted ");
/// assert!(stream.certain().unwrap().rest.starts_with("et, and the gulls"));
/// ```
#[derive(Debug, Clone)]
pub struct PromptedStream {
    so_far: String,
    excerpt: PromptExcerpt,
    prompt: String,
    format: Format,
    known_signs: ReasoningSigns,
    received: String,
    /// Length in bytes at which the answer is examined next.
    next_check_bytes: usize,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// The answer may still prove its seam.
    Open,
    Flowing(Box<StitchStream>),
    /// Only the complete answer can show whether it belongs to the text.
    Closed,
}

impl PromptedStream {
    /// Starts with an empty answer. `prompt` is the prompt that the answer belongs to, and `shown` is the
    /// part of `so_far` that it showed.
    pub fn new(so_far: &str, (shown, prompt): (PromptExcerpt, &str), format: &Format) -> Self {
        Self {
            so_far: so_far.to_owned(),
            excerpt: shown,
            prompt: prompt.to_owned(),
            format: format.clone(),
            known_signs: ReasoningSigns::default(),
            received: String::new(),
            next_check_bytes: 0,
            state: State::Open,
        }
    }

    /// Sets the signs of reasoning in the request.
    #[must_use]
    pub fn with_reasoning_signs(self, known: ReasoningSigns) -> Self {
        Self { known_signs: known, ..self }
    }

    /// Adds the next chunk of the answer.
    pub fn push(&mut self, text: &str) {
        match &mut self.state {
            State::Closed => {}
            State::Flowing(stream) => stream.push(text),
            State::Open => {
                self.received.push_str(text);
                self.check();
            }
        }
    }

    /// Returns the text that certainly belongs to the joined text, or `None` while the seam is open.
    pub fn certain(&self) -> Option<CertainText<'_>> {
        match &self.state {
            State::Open | State::Closed => None,
            State::Flowing(stream) => stream.certain(),
        }
    }

    fn check(&mut self) {
        if self.received.len() < self.next_check_bytes {
            return;
        }
        let opened =
            partial_without_reasoning(&self.so_far, &self.received, self.known_signs).map(str::to_owned);
        let is_reasoning = opened.is_none();
        if let Some(opened) = opened {
            self.received = opened;
        }
        // Each pass reads the whole answer, so one pass per chunk would take quadratic time.
        self.next_check_bytes = self.received.len() + self.received.len() / 8;
        if is_reasoning {
            return;
        }
        let question = PromptContext::new(&self.so_far, self.excerpt, &self.format, &self.prompt);
        match question.proof(&self.received, false) {
            SeamProof::Open => {}
            SeamProof::Nothing
                if question.held_text().trim().is_empty()
                    && matches!(self.format, Format::Json | Format::Jsonl) =>
            {
                // The prompt showed the complete text, so the grammar determines where the answer continues.
                let mut stream = StitchStream::new(&self.so_far, &self.format, question.asked_from())
                    .with_reasoning_signs(self.known_signs);
                stream.push(&std::mem::take(&mut self.received));
                self.state = State::Flowing(Box::new(stream));
            }
            SeamProof::Doubtful { .. } | SeamProof::Nothing => self.state = State::Closed,
            SeamProof::Proven { start, rest_at, .. } => {
                let is_fenced = self.received.get(..start).unwrap_or_default().lines().any(is_fence_line);
                let rest = self.received.get(rest_at..).unwrap_or_default();
                let Some(mut stream) = StitchStream::start_proven(
                    &self.so_far,
                    &self.format,
                    rest_at,
                    rest,
                    is_fenced,
                    self.known_signs,
                ) else {
                    return;
                };
                stream.push(&std::mem::take(&mut self.received));
                self.state = State::Flowing(Box::new(stream));
            }
        }
    }
}
