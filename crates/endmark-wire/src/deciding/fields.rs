//! The deciding fields of each format, and of services other than replies.
//!
//! Sources: the API references of OpenAI, Anthropic and Google (November 2026). `n_predict` and `n_cmpl` are
//! llama.cpp's names, which take precedence over `max_tokens` and `n`. `models` and `fallbacks` are those of
//! `OpenRouter` and `LiteLLM`.

use super::{DecidingField, Role, field};

const MODEL: DecidingField = field(&["model"], Role::Model);
const MODELS: DecidingField = field(&["models"], Role::FurtherModels);
const FALLBACKS: DecidingField = field(&["fallbacks"], Role::FurtherModels);
/// Tools may query another model.
const TOOLS: DecidingField = field(&["tools"], Role::Other);
const STREAM: DecidingField = field(&["stream"], Role::Switch);
const TIER: DecidingField = field(&["service_tier"], Role::Other);
const MAX_TOKENS: DecidingField = field(&["max_tokens"], Role::Limit);
const N_PREDICT: DecidingField = field(&["n_predict"], Role::Limit);
const CHOICES: DecidingField = field(&["n"], Role::Choices);
const BEST_OF: DecidingField = field(&["best_of"], Role::Choices);
const N_CMPL: DecidingField = field(&["n_cmpl"], Role::Choices);
const BACKGROUND: DecidingField = field(&["background"], Role::Background);

/// The fields of Chat Completions.
pub(crate) const CHAT: &[DecidingField] = &[
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
pub(crate) const RESPONSES: &[DecidingField] = &[
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
pub(crate) const MESSAGES: &[DecidingField] = &[
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
pub(crate) const GEMINI: &[DecidingField] = &[
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
pub(crate) const COMPLETIONS: &[DecidingField] = &[
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
pub const MODEL_ALONE: &[DecidingField] = &[MODEL, MODELS, FALLBACKS, TIER];

/// The fields of Gemini's embeddings of several texts. Each item of the list has its own `model`, which is the
/// path's.
pub(crate) const EMBEDDED_ITEMS: &[DecidingField] =
    &[MODEL, MODELS, FALLBACKS, TIER, field(&["requests"], Role::Items(MODEL_ALONE))];
