//! What is known of one upstream call: when it begins, and when it is over.

use std::borrow::Cow;

use endmark_context::budget::{Scope, Unit};

/// A word of a fixed list, or one that was read back.
pub type Word = Cow<'static, str>;

/// Why an upstream was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// The client's request itself.
    Reply,
    /// The same request once more, at the same upstream.
    Retry,
    /// The request at the upstream that stands in.
    Fallback,
    /// The rest of a cut reply.
    Resume,
    /// The same content in the demanded form.
    Correction,
    /// The same reply again, after the model read what was left out of a result (CX-5).
    Read,
    /// The one call that a used-up session is still given, for its summary (CX-7).
    Closing,
    /// What stands for the condensed part of a conversation, in a model's words (CX-4).
    Summary,
}

impl Purpose {
    /// All of them, in the order in which they come up.
    pub const ALL: [Self; 8] = [
        Self::Reply,
        Self::Retry,
        Self::Fallback,
        Self::Resume,
        Self::Correction,
        Self::Read,
        Self::Closing,
        Self::Summary,
    ];

    /// The literal in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Retry => "retry",
            Self::Fallback => "fallback",
            Self::Resume => "resume",
            Self::Correction => "correction",
            Self::Read => "read",
            Self::Closing => "closing",
            Self::Summary => "summary",
        }
    }
}

/// An upstream call that is about to be made. Texts from outside are shortened where they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStarted {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// Which call of the request it is, from 1.
    pub call: u32,
    /// Why it is made.
    pub purpose: Purpose,
    /// The session's hash.
    pub session: String,
    /// The hash of the client's credential, if it sent one.
    pub credential: Option<String>,
    /// The upstream's name in the configuration.
    pub upstream: String,
    /// The wire format, as `openai_chat`.
    pub format: Word,
    /// The model that is asked for.
    pub model: String,
    /// Whether the reply is asked for as a stream.
    pub streamed: bool,
    /// The mode in which cut replies of this request are treated: `auto`, `on`, `warn` or `off`.
    pub mode: Word,
    /// When it begins, in milliseconds since 1970, UTC.
    pub started_ms: u64,
    /// The length of the request's body in bytes.
    pub sent_bytes: u64,
    /// Tokens of the prompt, as an estimate.
    pub prompt_estimate: u64,
    /// The budgets that it counts in. Where the store did not take its hold, they are charged when its row is written.
    pub charges: Vec<Charge>,
}

/// A budget that a call counts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Whose budget it is; the call says which session, key or model that is.
    pub scope: Scope,
    /// What is counted.
    pub unit: Unit,
    /// The window that the call is in.
    pub window: String,
    /// The most that the call was expected to cost.
    pub held: u64,
}

/// Has a call say whose spending a budget counts it to.
macro_rules! subject {
    ($call:ident) => {
        impl $call {
            /// Whose spending a budget of this scope counts the call to.
            pub fn subject(&self, scope: Scope) -> &str {
                match scope {
                    Scope::Session => &self.session,
                    Scope::Key => self.credential.as_deref().unwrap_or_default(),
                    Scope::Model => &self.model,
                    Scope::All => "",
                }
            }
        }
    };
}

subject!(CallStarted);
subject!(UsageRow);

/// How an upstream call ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallSettled {
    /// The model that says it answered, if it says so.
    pub answered_model: Option<String>,
    /// The HTTP status, if there was an answer at all.
    pub http_status: Option<u16>,
    /// How the answer ended, in the words of `Ending`.
    pub ending: Word,
    /// Why the provider says it stopped.
    pub stop: Option<Word>,
    /// What the answer was judged to be: `whole`, `cut` or `passed`; none where it was not looked at.
    pub verdict: Option<Word>,
    /// The kind of cut (PC-8).
    pub cut_kind: Option<Word>,
    /// The tokens it took.
    pub tokens: Tokens,
    /// What else decides its price.
    pub billing: Billing,
    /// What they cost in nano-dollars; none where the model has no price (CX-6).
    pub nano_usd: Option<u64>,
    /// Bytes of the answer's body.
    pub received_bytes: u64,
    /// What the call may be billed for and its provider did not report to its end; `None` where nothing is.
    pub estimate: Option<Estimate>,
    /// From the beginning to the first byte of the answer's body, in microseconds.
    pub first_byte_us: Option<u64>,
    /// From the beginning to the end, in microseconds.
    pub total_us: u64,
}

/// Tokens of a call that its provider did not report, as the gateway estimated them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Of the prompt.
    pub prompt: u64,
    /// Generated, reasoning included.
    pub output: u64,
}

/// Tokens as the provider reports them; none where it does not (CX-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of the prompt, cached ones included.
    pub prompt: Option<u64>,
    /// Generated, reasoning included.
    pub output: Option<u64>,
    /// Of the prompt, read from a cache.
    pub cached: Option<u64>,
    /// Of the prompt, written to a cache.
    pub cache_written: Option<u64>,
    /// Of these, kept there for an hour.
    pub cache_written_1h: Option<u64>,
    /// Generated, that were reasoning.
    pub reasoning: Option<u64>,
    /// All together.
    pub total: Option<u64>,
}

impl Tokens {
    /// Whether the provider reported the prompt and the output. What it did not report is estimated.
    pub fn are_complete(&self) -> bool {
        self.prompt.is_some() && self.output.is_some()
    }

    /// Returns the tokens of the prompt and of the output, with an estimate of what was not reported. `None` if the call
    /// costs nothing.
    ///
    /// ```
    /// use endmark_store::{Estimate, Tokens};
    /// let (tokens, estimate) = (Tokens { prompt: Some(7), ..Tokens::default() }, Estimate { prompt: 9, output: 2 });
    /// assert_eq!(tokens.or_estimated(Some(estimate)), Some((7, 2)));
    /// assert_eq!(Tokens::default().or_estimated(None), None);
    /// ```
    pub fn or_estimated(&self, estimate: Option<Estimate>) -> Option<(u64, u64)> {
        let is_billed = estimate.is_some() || self.prompt.is_some() || self.output.is_some();
        let Estimate { prompt, output } = estimate.unwrap_or_default();
        is_billed.then(|| (self.prompt.unwrap_or(prompt), self.output.unwrap_or(output)))
    }
}

/// What decides the price of a call beside its tokens (CX-6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Billing {
    /// The tier that the provider served it in, unless that is the standard one.
    pub tier: Option<String>,
    /// Tokens of the prompt that are audio and were not cached.
    pub prompt_audio: u64,
    /// Tokens of the prompt that are audio and were read from a cache.
    pub cached_audio: u64,
    /// Generated tokens that are audio.
    pub completion_audio: u64,
    /// Searches that the provider made.
    pub web_searches: u64,
}

/// A row of `usage`: one upstream call that is over, or was interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// Which call of the request it was, from 1.
    pub call: u32,
    /// Why it was made: [`Purpose::name`].
    pub purpose: String,
    /// The session's hash.
    pub session: String,
    /// The hash of the client's credential.
    pub credential: Option<String>,
    /// The upstream's name.
    pub upstream: String,
    /// The wire format.
    pub format: String,
    /// The model that was asked for.
    pub model: String,
    /// The model that says it answered.
    pub answered_model: Option<String>,
    /// Whether a stream was asked for.
    pub streamed: bool,
    /// The mode of the request.
    pub mode: String,
    /// When it began, as `YYYY-MM-DD HH:MM:SS.mmm` in UTC.
    pub started_at: String,
    /// When it was over; none if the process was killed before.
    pub ended_at: Option<String>,
    /// The HTTP status; none if there was no answer.
    pub http_status: Option<u16>,
    /// How it ended: a word of `Ending`, or `interrupted`.
    pub ending: String,
    /// Why the provider says it stopped.
    pub stop: Option<String>,
    /// What the answer was judged to be.
    pub verdict: Option<String>,
    /// The kind of cut.
    pub cut_kind: Option<String>,
    /// Tokens as the provider reported them.
    pub tokens: Tokens,
    /// What else decides its price.
    pub billing: Billing,
    /// Bytes of the request's body.
    pub sent_bytes: u64,
    /// Bytes of the answer's body; none if the process was killed.
    pub received_bytes: Option<u64>,
    /// See [`CallSettled::estimate`]. Of a killed call it has the prompt alone.
    pub estimate: Option<Estimate>,
    /// From the beginning to the first byte of the answer's body, in milliseconds.
    pub first_byte_ms: Option<f64>,
    /// From the beginning to the end, in milliseconds.
    pub total_ms: Option<f64>,
}

/// A call with what is known of its end: nothing, if the process was killed before it was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) started: CallStarted,
    pub(crate) settled: Option<CallSettled>,
}

impl Call {
    /// Returns the cost in this unit of a call that held `held`. A killed call costs what it held.
    pub(crate) fn cost(&self, unit: &str, held: u64) -> u64 {
        let Some(settled) = &self.settled else { return held };
        let tokens = settled.tokens.or_estimated(settled.estimate);
        if unit == Unit::NanoUsd.name() {
            // A cost that is not known, as of a search without a price, is what was held: else such calls would be free.
            return settled.nano_usd.unwrap_or(if tokens.is_some() { held } else { 0 });
        }
        tokens.map_or(0, |(prompt, output)| prompt.saturating_add(output))
    }
}
