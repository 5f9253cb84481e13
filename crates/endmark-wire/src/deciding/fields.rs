//! The deciding fields of each format, and of services other than replies.
//!
//! Sources: the API references of OpenAI, Anthropic and Google (November 2026). `n_predict` and `n_cmpl` are
//! llama.cpp's names, which take precedence over `max_tokens` and `n`. `OpenRouter` and `LiteLLM` define
//! `models` and `fallbacks`.

use super::{DecidingField, FieldRole, field};

const MODEL: DecidingField = field(&["model"], FieldRole::Model);
const MODELS: DecidingField = field(&["models"], FieldRole::FurtherModels);
const FALLBACKS: DecidingField = field(&["fallbacks"], FieldRole::FurtherModels);
/// Tools may query another model.
const TOOLS: DecidingField = field(&["tools"], FieldRole::Other);
const STREAM: DecidingField = field(&["stream"], FieldRole::Switch);
const TIER: DecidingField = field(&["service_tier"], FieldRole::Other);
const MAX_TOKENS: DecidingField = field(&["max_tokens"], FieldRole::Limit);
const N_PREDICT: DecidingField = field(&["n_predict"], FieldRole::Limit);
const CHOICES: DecidingField = field(&["n"], FieldRole::Choices);
const BEST_OF: DecidingField = field(&["best_of"], FieldRole::Choices);
const N_CMPL: DecidingField = field(&["n_cmpl"], FieldRole::Choices);
const BACKGROUND: DecidingField = field(&["background"], FieldRole::Background);

/// The fields of Chat Completions.
pub(crate) const CHAT: &[DecidingField] = &[
    MODEL,
    MODELS,
    FALLBACKS,
    field(&["max_completion_tokens"], FieldRole::Limit),
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
    field(&["max_output_tokens"], FieldRole::Limit),
    MAX_TOKENS,
    N_PREDICT,
    N_CMPL,
    field(&["max_tool_calls"], FieldRole::Other),
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
    field(&["thinking"], FieldRole::Other),
    field(&["speed"], FieldRole::Other),
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
        FieldRole::Group(&[
            field(&["maxOutputTokens", "max_output_tokens"], FieldRole::Limit),
            field(&["candidateCount", "candidate_count"], FieldRole::Choices),
            field(&["thinkingConfig", "thinking_config"], FieldRole::Other),
        ]),
    ),
    field(&["serviceTier", "service_tier"], FieldRole::Other),
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
    field(&["prompt"], FieldRole::Prompts),
    STREAM,
    TIER,
];

/// The fields of services that generate nothing.
pub const NON_GENERATING: &[DecidingField] = &[MODEL, MODELS, FALLBACKS, TIER];

/// The fields of Gemini's request for several embeddings. Each item of the list has its own `model`, which
/// must be the model in the path.
pub(crate) const EMBEDDED_ITEMS: &[DecidingField] =
    &[MODEL, MODELS, FALLBACKS, TIER, field(&["requests"], FieldRole::Items(NON_GENERATING))];
