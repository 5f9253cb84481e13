//! Records of an upstream call: its start and its end.

use std::borrow::Cow;

use endmark_context::budget::{Scope, Unit};

/// A label from a fixed list, or one that was read from the database.
pub type Label = Cow<'static, str>;

/// Why an upstream was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// To answer the client's request.
    Reply,
    /// To repeat the request at the same upstream.
    Retry,
    /// To send the request to the fallback upstream.
    Fallback,
    /// To get the rest of a cut reply.
    Resume,
    /// To get the same content in the required format.
    Correction,
    /// To get the reply again after the model has read an omitted part of a result (CX-5).
    Read,
    /// To get a summary in the last call of a session whose budget is exhausted (CX-7).
    Closing,
    /// To summarise the condensed part of a conversation (CX-4).
    Summary,
}

impl Purpose {
    /// All purposes, in the order in which they occur.
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

    /// Returns the value that the table stores.
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

/// An upstream call that is about to start. Texts from outside are shortened before they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStarted {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// Number of the call in the request, from 1.
    pub call: u32,
    /// Purpose of the call.
    pub purpose: Purpose,
    /// Hash of the session.
    pub session: String,
    /// The hash of the client's credential, if it sent one.
    pub credential: Option<String>,
    /// The upstream's name in the configuration.
    pub upstream: String,
    /// The wire format, for example `openai_chat`.
    pub format: Label,
    /// The requested model.
    pub model: String,
    /// Whether a stream was requested.
    pub streamed: bool,
    /// How cut replies of this request are treated: `auto`, `on`, `warn` or `off`.
    pub mode: Label,
    /// Start time in milliseconds since 1970, UTC.
    pub started_ms: u64,
    /// The length of the request's body in bytes.
    pub sent_bytes: u64,
    /// Estimated tokens of the prompt.
    pub prompt_estimate: u64,
    /// The budgets that the call counts towards. If the store did not accept the hold, they are charged when
    /// the row is written.
    pub charges: Vec<Charge>,
}

/// A budget that a call counts towards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Scope of the budget. Its subject is the session, key or model of the call.
    pub scope: Scope,
    /// Unit of the budget.
    pub unit: Unit,
    /// Window of the budget.
    pub window: String,
    /// The amount held for the call: its expected maximum cost.
    pub held: u64,
}

/// Implements `subject` for a type of call record.
macro_rules! subject {
    ($call:ident) => {
        impl $call {
            /// Returns the session, key or model to which a budget of this scope assigns the call.
            pub fn subject(&self, scope: Scope) -> &str {
                match scope {
                    Scope::Session => &self.session,
                    Scope::Key | Scope::Rate => self.credential.as_deref().unwrap_or_default(),
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
    /// The model that the reply names, if any.
    pub answered_model: Option<String>,
    /// The HTTP status, if there was a response.
    pub http_status: Option<u16>,
    /// How the response ended: the label of an `Ending`.
    pub ending: Label,
    /// The stop reason that the provider reported.
    pub stop: Option<Label>,
    /// The verdict on the reply: `whole`, `cut` or `passed`; `None` if it was not examined.
    pub verdict: Option<Label>,
    /// The kind of cut (PC-8).
    pub cut_kind: Option<Label>,
    /// The tokens of the call.
    pub tokens: Tokens,
    /// Other data that determines the price.
    pub billing: Billing,
    /// Cost in nano-dollars; `None` if the model has no price (CX-6).
    pub nano_usd: Option<u64>,
    /// Bytes of the response body.
    pub received_bytes: u64,
    /// Estimated tokens that may be billed but were not fully reported. `None` if no estimate is needed.
    pub estimate: Option<TokenEstimate>,
    /// Time from the start to the first byte of the response body, in microseconds.
    pub first_byte_us: Option<u64>,
    /// Time from start to end, in microseconds.
    pub total_us: u64,
}

/// The gateway's estimate of tokens that the provider did not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenEstimate {
    /// Prompt tokens.
    pub prompt: u64,
    /// Generated tokens, including reasoning.
    pub output: u64,
}

/// Tokens as reported by the provider; `None` for counts that it does not report (CX-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Prompt tokens, including cached ones.
    pub prompt: Option<u64>,
    /// Generated tokens, including reasoning.
    pub output: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cached: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_written: Option<u64>,
    /// The part of `cache_written` that is kept for an hour.
    pub cache_written_1h: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u64>,
    /// Total tokens.
    pub total: Option<u64>,
}

impl Tokens {
    /// Whether the provider reported both prompt and output tokens. Missing counts are estimated.
    pub fn are_complete(&self) -> bool {
        self.prompt.is_some() && self.output.is_some()
    }

    /// Returns the tokens of the prompt and of the output, with estimates for missing counts. Returns `None` if the
    /// call costs nothing.
    ///
    /// ```
    /// use endmark_store::{TokenEstimate, Tokens};
    /// let tokens = Tokens { prompt: Some(7), ..Tokens::default() };
    /// let estimate = TokenEstimate { prompt: 9, output: 2 };
    /// assert_eq!(tokens.with_estimate(Some(estimate)), Some((7, 2)));
    /// assert_eq!(Tokens::default().with_estimate(None), None);
    /// ```
    pub fn with_estimate(&self, estimate: Option<TokenEstimate>) -> Option<(u64, u64)> {
        let is_billed = estimate.is_some() || self.prompt.is_some() || self.output.is_some();
        let TokenEstimate { prompt, output } = estimate.unwrap_or_default();
        is_billed.then(|| (self.prompt.unwrap_or(prompt), self.output.unwrap_or(output)))
    }
}

/// Data other than tokens that determines the price of a call (CX-6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Billing {
    /// The provider's service tier, unless it is the standard tier.
    pub tier: Option<String>,
    /// Audio tokens of the prompt that were not cached.
    pub prompt_audio: u64,
    /// Audio tokens of the prompt that were read from a cache.
    pub cached_audio: u64,
    /// Generated audio tokens.
    pub completion_audio: u64,
    /// Searches that the provider made.
    pub web_searches: u64,
}

/// A row of `usage`: an upstream call that has ended or was interrupted.
// Fields: each corresponds to a column of `usage`.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// Number of the call in the request, from 1.
    pub call: u32,
    /// Purpose of the call: [`Purpose::name`].
    pub purpose: String,
    /// Hash of the session.
    pub session: String,
    /// The hash of the client's credential.
    pub credential: Option<String>,
    /// The upstream's name.
    pub upstream: String,
    /// The wire format.
    pub format: String,
    /// The requested model.
    pub model: String,
    /// The model that the reply names.
    pub answered_model: Option<String>,
    /// Whether a stream was requested.
    pub streamed: bool,
    /// The mode of the request.
    pub mode: String,
    /// Start time, as `YYYY-MM-DD HH:MM:SS.mmm` in UTC.
    pub started_at: String,
    /// End time; `None` if the process was killed before the end.
    pub ended_at: Option<String>,
    /// The HTTP status; `None` if there was no response.
    pub http_status: Option<u16>,
    /// How the call ended: the label of an `Ending`, or `interrupted`.
    pub ending: String,
    /// The stop reason that the provider reported.
    pub stop: Option<String>,
    /// The verdict on the reply.
    pub verdict: Option<String>,
    /// The kind of cut.
    pub cut_kind: Option<String>,
    /// Tokens as the provider reported them.
    pub tokens: Tokens,
    /// Other data that determines the price.
    pub billing: Billing,
    /// Bytes of the request's body.
    pub sent_bytes: u64,
    /// Bytes of the response body; `None` if the process was killed.
    pub received_bytes: Option<u64>,
    /// See [`CallSettled::estimate`]. For a killed call it contains only the prompt.
    pub estimate: Option<TokenEstimate>,
    /// Time from the start to the first byte of the response body, in milliseconds.
    pub first_byte_ms: Option<f64>,
    /// Time from start to end, in milliseconds.
    pub total_ms: Option<f64>,
}

/// A call and its end. `settled` is `None` if the process was killed before the call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) started: CallStarted,
    pub(crate) settled: Option<CallSettled>,
}

impl Call {
    /// Returns the cost of a call in this unit. A killed call costs `held`, the amount that was held for it.
    pub(crate) fn cost(&self, unit: &str, held: u64) -> u64 {
        let Some(settled) = &self.settled else { return held };
        let tokens = settled.tokens.with_estimate(settled.estimate);
        if unit == Unit::Requests.name() {
            return held;
        }
        if unit == Unit::NanoUsd.name() {
            // If the cost is unknown, for example for a search without a price, charge the held amount.
            // Otherwise such calls would be free.
            return settled.nano_usd.unwrap_or(if tokens.is_some() { held } else { 0 });
        }
        tokens.map_or(0, |(prompt, output)| prompt.saturating_add(output))
    }
}
