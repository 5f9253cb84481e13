//! The meanings of providers' finish reasons: one table for all formats.

use endmark_recovery::Stop;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishMeaning {
    /// The reply has not ended.
    NotEnded,
    /// The model ended its turn. Some servers use the same reason for a stop sequence of the client.
    Turn,
    /// The model called tools.
    Calls,
    /// A stop sequence of the client was reached.
    Sequence,
    /// The limit of output tokens was reached.
    Limit,
    /// The model's context window is full: a cut that no continuation can follow (PC-8 `window`).
    Window,
    /// The server stopped a reply that repeated itself: a cut that a continuation would only repeat.
    Repetition,
    /// A refusal or a filter.
    Refused,
    /// The provider paused the turn; the client continues it.
    Paused,
    /// The server broke the reply off, for example with an error in a stream.
    BrokenOff,
    /// The reply failed permanently or was cancelled. The response passes unchanged.
    Failed,
    /// The reason is not in the table.
    Unknown,
}

impl FinishMeaning {
    /// Looks up a finish reason of this format. Case, separators and a prefix such as `FINISH_REASON_` are
    /// ignored.
    ///
    /// ```
    /// use endmark_wire::finish_reasons::FinishMeaning;
    /// for reason in ["max_tokens", "MAX_TOKENS", "max-tokens", "maxTokens", "FINISH_REASON_MAX_TOKENS"] {
    ///     assert_eq!(FinishMeaning::find("openai_chat", reason), FinishMeaning::Limit);
    /// }
    /// assert_eq!(FinishMeaning::find("openai_chat", "failed"), FinishMeaning::BrokenOff);
    /// assert_eq!(FinishMeaning::find("openai_responses", "failed"), FinishMeaning::Failed);
    /// assert_eq!(FinishMeaning::find("openai_chat", "moon_phase"), FinishMeaning::Unknown);
    /// ```
    pub fn find(format: &str, finish_reason: &str) -> Self {
        let word = normalise(finish_reason);
        let stripped = PREFIXES.into_iter().find_map(|prefix| word.strip_prefix(prefix));
        let find = |word: &str| {
            let groups = TABLE.iter().filter(|group| group.format.is_none_or(|own| own == format));
            let mut rows = groups.flat_map(|group| group.reasons);
            rows.find(|(own, _)| normalise(own) == word).map(|(_, meaning)| *meaning)
        };
        match (word.as_str(), stripped) {
            ("", _) => Self::NotEnded,
            (word, stripped) => find(word).or_else(|| find(stripped?)).unwrap_or(Self::Unknown),
        }
    }

    /// Returns the stop reason with this meaning, or `None` if the model did not end the reply.
    /// `may_be_sequence` is whether [`Turn`](Self::Turn) may mean a stop sequence.
    pub fn stop(self, may_be_sequence: bool) -> Option<Stop> {
        Some(match self {
            Self::Turn if may_be_sequence => Stop::Sequence,
            Self::Turn | Self::Calls => Stop::Normal,
            Self::Sequence => Stop::Sequence,
            Self::Limit | Self::Window => Stop::Limit,
            Self::Repetition => Stop::Repetition,
            Self::Refused => Stop::Refused,
            Self::Paused => Stop::Paused,
            Self::Unknown => Stop::Unknown,
            Self::NotEnded | Self::BrokenOff | Self::Failed => return None,
        })
    }
}

/// The prefixes of finish reasons, as in `FINISH_REASON_STOP` (Vertex AI), `FinishReason.STOP` (as printed by
/// Google's SDKs) and `REASON_STOP` (xAI).
const PREFIXES: [&str; 2] = ["finishreason", "reason"];

/// Returns the letters and digits of a finish reason in lower case.
fn normalise(finish_reason: &str) -> String {
    finish_reason.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The finish reasons of one provider.
struct ReasonGroup {
    /// The only format in which they have this meaning. `None` means every format, because proxies forward
    /// the finish reasons of other providers.
    format: Option<&'static str>,
    /// The documentation that lists them.
    #[expect(dead_code, reason = "for readers of the table")]
    source: &'static str,
    reasons: &'static [(&'static str, FinishMeaning)],
}

use FinishMeaning::{
    BrokenOff, Calls, Failed, Limit, NotEnded, Paused, Refused, Repetition, Sequence, Turn, Window,
};

/// The first group that contains a finish reason decides. Groups for a single format come before groups for
/// all formats.
static TABLE: &[ReasonGroup] = &[
    ReasonGroup {
        format: Some("openai_responses"),
        source: "OpenAI Responses reference: `status` and `incomplete_details.reason`",
        reasons: &[
            ("completed", Turn),
            ("in_progress", NotEnded),
            ("queued", NotEnded),
            ("incomplete", Limit),
            ("max_output_tokens", Limit),
            ("content_filter", Refused),
            ("failed", Failed),
            ("cancelled", Failed),
            ("steered", Paused),
        ],
    },
    ReasonGroup {
        format: Some("gemini"),
        source: "Gemini API and Vertex AI reference: `Candidate.FinishReason`",
        reasons: &[
            ("OTHER", Failed),
            ("IMAGE_OTHER", Failed),
            ("NO_IMAGE", Failed),
            ("FUNCTION_CALL", Calls),
            ("CONTINUATION", Paused),
        ],
    },
    ReasonGroup {
        format: None,
        source: "seen where a server has no reason yet",
        reasons: &[("null", NotEnded), ("none", NotEnded), ("unspecified", NotEnded)],
    },
    ReasonGroup {
        format: None,
        source: "OpenAI Chat reference: `choices[].finish_reason`",
        reasons: &[
            ("stop", Turn),
            ("tool_calls", Calls),
            ("function_call", Calls),
            ("length", Limit),
            ("content_filter", Refused),
        ],
    },
    ReasonGroup {
        format: None,
        source: "OpenAI: limits by the names of their request fields, and `status` as proxies pass it on",
        reasons: &[
            ("max_tokens", Limit),
            ("max_output_tokens", Limit),
            ("max_completion_tokens", Limit),
            ("incomplete", Limit),
            ("completed", Turn),
            ("failed", BrokenOff),
            ("server_error", BrokenOff),
            ("rate_limit_exceeded", BrokenOff),
            ("in_progress", NotEnded),
            ("queued", NotEnded),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Anthropic Messages reference: `stop_reason`",
        reasons: &[
            ("end_turn", Turn),
            ("tool_use", Calls),
            ("stop_sequence", Sequence),
            ("refusal", Refused),
            ("pause_turn", Paused),
            ("compaction", Paused),
            ("model_context_window_exceeded", Window),
            ("overloaded_error", BrokenOff),
            ("api_error", BrokenOff),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Gemini API and Vertex AI reference: `Candidate.FinishReason`",
        reasons: &[
            ("SAFETY", Refused),
            ("RECITATION", Refused),
            ("LANGUAGE", Refused),
            ("BLOCKLIST", Refused),
            ("PROHIBITED_CONTENT", Refused),
            ("SPII", Refused),
            ("MODEL_ARMOR", Refused),
            ("IMAGE_SAFETY", Refused),
            ("IMAGE_PROHIBITED_CONTENT", Refused),
            ("IMAGE_RECITATION", Refused),
            ("MALFORMED_FUNCTION_CALL", Failed),
            ("MALFORMED_RESPONSE", Failed),
            ("UNEXPECTED_TOOL_CALL", Failed),
            ("TOO_MANY_TOOL_CALLS", Failed),
            ("MISSING_THOUGHT_SIGNATURE", Failed),
        ],
    },
    ReasonGroup {
        format: None,
        source: "vLLM `FinishReason`; SGLang `FINISH_ABORT`; Ollama `done_reason`; TGI `FinishReason`; Together AI `eos`",
        reasons: &[
            ("abort", BrokenOff),
            ("aborted", BrokenOff),
            ("error", BrokenOff),
            ("repetition", Repetition),
            // The reply to an empty request, which only loads a model. A repeated request would not generate
            // anything either.
            ("load", Failed),
            ("unload", BrokenOff),
            ("eos", Turn),
            ("eos_token", Turn),
        ],
    },
    ReasonGroup {
        format: None,
        source: "LM Studio `stopReason`",
        reasons: &[
            ("eosFound", Turn),
            ("stopStringFound", Sequence),
            ("maxPredictedTokensReached", Limit),
            ("contextLengthReached", Window),
            ("userStopped", Failed),
            ("modelUnloaded", BrokenOff),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Z.ai, DeepSeek, Mistral, xAI: chat references; OpenRouter: errors in mid-stream",
        reasons: &[
            ("sensitive", Refused),
            ("network_error", BrokenOff),
            ("insufficient_system_resource", BrokenOff),
            ("model_length", Limit),
            ("max_len", Limit),
            ("max_context", Window),
            ("time_limit", BrokenOff),
            ("timeout", BrokenOff),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Xiaomi MiMo: chat reference; Hugging Face transformers: the stopping criterion",
        reasons: &[("repetition_truncation", Repetition), ("max_length", Limit)],
    },
    ReasonGroup {
        format: None,
        source: "OpenAI, Anthropic, Moonshot, OpenRouter: codes and types of errors, as proxies put them into a finish reason",
        reasons: &[
            ("context_length_exceeded", Window),
            ("internal_error", BrokenOff),
            ("internal_server_error", BrokenOff),
            ("overloaded", BrokenOff),
            ("engine_overloaded", BrokenOff),
            ("engine_overloaded_error", BrokenOff),
            ("connection_error", BrokenOff),
            ("service_unavailable", BrokenOff),
            ("gateway_timeout", BrokenOff),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Cohere Chat v2 `finish_reason`; IBM watsonx.ai `stop_reason`",
        reasons: &[
            ("COMPLETE", Turn),
            ("TOOL_CALL", Calls),
            ("ERROR_TOXIC", Refused),
            ("ERROR_LIMIT", Window),
            ("USER_CANCEL", Failed),
            ("token_limit", Limit),
            ("not_finished", NotEnded),
            ("cancelled", Failed),
            ("canceled", Failed),
        ],
    },
    ReasonGroup {
        format: None,
        source: "Amazon Bedrock Converse: `stopReason`",
        reasons: &[
            ("guardrail_intervened", Refused),
            ("content_filtered", Refused),
            ("malformed_model_output", Failed),
            ("malformed_tool_use", Failed),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_reasons_are_not_ends_of_the_model() {
        for word in [
            "network_error",
            "timeout",
            "server_error",
            "failed",
            "abort",
            "error",
            "insufficient_system_resource",
            "internal_error",
            "overloaded",
            "connection_error",
        ] {
            let meaning = FinishMeaning::find("openai_chat", word);
            assert_eq!((meaning, meaning.stop(true)), (BrokenOff, None), "{word}");
        }
        for (format, word) in
            [("gemini", "OTHER"), ("openai_responses", "failed"), ("openai_chat", "cancelled")]
        {
            assert_eq!(FinishMeaning::find(format, word), Failed, "{format} {word}");
        }
    }

    #[test]
    fn a_finish_reason_has_one_meaning_in_every_spelling() {
        for (words, meaning) in [
            (["tool_calls", "TOOL-CALLS", "toolCalls", "FinishReason.TOOL_CALLS"], Calls),
            (["stop", "STOP", "FINISH_REASON_STOP", "REASON_STOP"], Turn),
            (["", " ", "null", "FINISH_REASON_UNSPECIFIED"], NotEnded),
            (["other", "Other", "FINISH_REASON_OTHER", "a new one"], FinishMeaning::Unknown),
        ] {
            for word in words {
                assert_eq!(FinishMeaning::find("openai_chat", word), meaning, "{word}");
            }
        }
    }

    #[test]
    fn no_format_lists_a_finish_reason_twice() {
        for (number, group) in TABLE.iter().enumerate() {
            for (word, _) in group.reasons {
                let later = TABLE.iter().skip(number + 1).filter(|later| later.format == group.format);
                let again =
                    later.flat_map(|later| later.reasons).find(|(own, _)| normalise(own) == normalise(word));
                assert!(again.is_none(), "{word}");
            }
        }
    }
}
