//! The deciding fields of each format, and of services other than replies.
//!
//! Sources: the API references of OpenAI, Anthropic and Google (November 2026). `n_predict` and `n_cmpl` are
//! llama.cpp's names, which take precedence over `max_tokens` and `n`. `models` and `fallbacks` are those of
//! `OpenRouter` and `LiteLLM`.

use super::{Deciding, Role, field};

const MODEL: Deciding = field(&["model"], Role::Model);
const MODELS: Deciding = field(&["models"], Role::FurtherModels);
const FALLBACKS: Deciding = field(&["fallbacks"], Role::FurtherModels);
/// Tools may query another model.
const TOOLS: Deciding = field(&["tools"], Role::Other);
const STREAM: Deciding = field(&["stream"], Role::Switch);
const TIER: Deciding = field(&["service_tier"], Role::Other);
const MAX_TOKENS: Deciding = field(&["max_tokens"], Role::Limit);
const N_PREDICT: Deciding = field(&["n_predict"], Role::Limit);
const CHOICES: Deciding = field(&["n"], Role::Choices);
const BEST_OF: Deciding = field(&["best_of"], Role::Choices);
const N_CMPL: Deciding = field(&["n_cmpl"], Role::Choices);
const BACKGROUND: Deciding = field(&["background"], Role::Background);

/// The fields of Chat Completions.
pub(crate) const CHAT: &[Deciding] = &[
    MODEL,
    MODELS,
    FALLBACKS,
    field(&["max_completion_tokens"], Role::Limit),
    MAX_TOKENS,
    N_PREDICT,
    CHOICES,
    BEST_OF,
    N_CMPL,
    TOOLS,
    STREAM,
    TIER,
    BACKGROUND,
];

/// The fields of Responses.
pub(crate) const RESPONSES: &[Deciding] = &[
    MODEL,
    MODELS,
    FALLBACKS,
    field(&["max_output_tokens"], Role::Limit),
    MAX_TOKENS,
    N_PREDICT,
    N_CMPL,
    field(&["max_tool_calls"], Role::Other),
    TOOLS,
    STREAM,
    TIER,
    BACKGROUND,
];

/// The fields of Messages.
pub(crate) const MESSAGES: &[Deciding] = &[
    MODEL,
    MODELS,
    FALLBACKS,
    MAX_TOKENS,
    field(&["thinking"], Role::Other),
    field(&["speed"], Role::Other),
    TOOLS,
    STREAM,
    TIER,
    BACKGROUND,
];

/// The fields of Gemini.
pub(crate) const GEMINI: &[Deciding] = &[
    MODEL,
    MODELS,
    field(
        &["generationConfig", "generation_config"],
        Role::Group(&[
            field(&["maxOutputTokens", "max_output_tokens"], Role::Limit),
            field(&["candidateCount", "candidate_count"], Role::Choices),
            field(&["thinkingConfig", "thinking_config"], Role::Other),
        ]),
    ),
    field(&["serviceTier", "service_tier"], Role::Other),
    BACKGROUND,
];

/// The fields of OpenAI's older completions.
pub(crate) const COMPLETIONS: &[Deciding] = &[
    MODEL,
    MODELS,
    FALLBACKS,
    MAX_TOKENS,
    N_PREDICT,
    CHOICES,
    BEST_OF,
    N_CMPL,
    field(&["prompt"], Role::Prompts),
    STREAM,
    TIER,
];

/// The fields of services that generate nothing.
pub const MODEL_ALONE: &[Deciding] = &[MODEL, MODELS, FALLBACKS, TIER];

/// The fields of Gemini's embeddings of several texts. Each item of the list has its own `model`, which is the
/// path's.
pub(crate) const EMBEDDED_ITEMS: &[Deciding] =
    &[MODEL, MODELS, FALLBACKS, TIER, field(&["requests"], Role::Items(MODEL_ALONE))];
