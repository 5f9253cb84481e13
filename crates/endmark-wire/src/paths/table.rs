//! The table of the providers' paths.
//!
//! Sources: all paths to which the clients openai 3.54.0, anthropic 2.12.0 and google-genai 3.4.0 (from the Python
//! index) send model calls, and the roots of their Azure and Vertex AI clients. For reranking: the READMEs of the
//! servers of vLLM and llama.cpp. Their other paths (organizations, agents, vaults) are unknown, and are rejected as
//! unknown.

use super::{COMPLETIONS, Cost, ModelPlace, Service};
use crate::deciding::{DecidingField, fields};

/// A path below one of its roots. `{}` is any segment, `{model}` is a segment with a model's name, and `**` is any
/// rest.
pub(super) struct Row {
    pub(super) roots: &'static [&'static str],
    path: &'static str,
    pub(super) cost: Cost,
    pub(super) model: ModelPlace,
}

/// A path that matches a row.
pub(super) struct MatchedPath {
    pub(super) model: Option<String>,
    /// Whether its spelling is that of the table, including case.
    pub(super) is_exact: bool,
}

const OPENAI: &[&str] = &["/v1", "/openai/v1", "/openai", "/openai/deployments/{model}"];
const ANTHROPIC: &[&str] = &["/v1"];
const GEMINI: &[&str] = &[
    "/v1beta",
    "/v1alpha",
    "/v1",
    "/v1/publishers/google",
    "/v1beta1/publishers/google",
    "/v1/projects/{}/locations/{}/publishers/google",
    "/v1beta1/projects/{}/locations/{}/publishers/google",
];
const RERANKERS: &[&str] = &["/v1", "/v2", ""];
const ROOT: &[&str] = &[""];

const fn row(roots: &'static [&'static str], path: &'static str, cost: Cost, model: ModelPlace) -> Row {
    Row { roots, path, cost, model }
}

const fn reply(roots: &'static [&'static str], path: &'static str) -> Row {
    row(roots, path, Cost::Reply, ModelPlace::Here)
}

const fn counted_path(
    roots: &'static [&'static str],
    path: &'static str,
    (name, operation): (&'static str, &'static str),
    fields: &'static [DecidingField],
) -> Row {
    row(roots, path, Cost::Counted(Service { name, route: path, operation, fields }), ModelPlace::Here)
}

const fn free_path(roots: &'static [&'static str], path: &'static str) -> Row {
    row(roots, path, Cost::Free, ModelPlace::Nowhere)
}

/// A free path whose model still counts.
const fn free_path_with_model(roots: &'static [&'static str], path: &'static str) -> Row {
    row(roots, path, Cost::Free, ModelPlace::Here)
}

/// A path billed by other units than tokens, with the model in the request.
const fn media(roots: &'static [&'static str], path: &'static str, kind: &'static str) -> Row {
    row(roots, path, Cost::Uncounted(kind), ModelPlace::Here)
}

/// A path for a batch or a stored object, which also names the model.
const fn stored_path(roots: &'static [&'static str], path: &'static str, kind: &'static str) -> Row {
    row(roots, path, Cost::Uncounted(kind), ModelPlace::InFile)
}

/// The table; the first row that matches counts.
pub(super) const TABLE: &[Row] = &[
    reply(OPENAI, "/chat/completions"),
    reply(OPENAI, "/responses"),
    reply(ANTHROPIC, "/messages"),
    reply(GEMINI, "/models/{model}:generateContent"),
    reply(GEMINI, "/models/{model}:streamGenerateContent"),
    counted_path(OPENAI, "/embeddings", ("embeddings", "embeddings"), fields::MODEL_ALONE),
    counted_path(OPENAI, "/completions", (COMPLETIONS, "text_completion"), fields::COMPLETIONS),
    counted_path(OPENAI, "/responses/compact", ("compaction", "chat"), fields::RESPONSES),
    counted_path(RERANKERS, "/rerank", ("rerank", "rerank"), fields::MODEL_ALONE),
    counted_path(RERANKERS, "/reranking", ("rerank", "rerank"), fields::MODEL_ALONE),
    counted_path(GEMINI, "/models/{model}:embedContent", ("embeddings", "embeddings"), fields::MODEL_ALONE),
    counted_path(
        GEMINI,
        "/models/{model}:batchEmbedContents",
        ("embeddings", "embeddings"),
        fields::EMBEDDED_ITEMS,
    ),
    free_path_with_model(ANTHROPIC, "/messages/count_tokens"),
    free_path_with_model(OPENAI, "/responses/input_tokens"),
    free_path_with_model(GEMINI, "/models/{model}:countTokens"),
    free_path_with_model(GEMINI, "/models/{model}:computeTokens"),
    free_path_with_model(OPENAI, "/moderations"),
    free_path(ROOT, "/tokenize"),
    free_path(ROOT, "/detokenize"),
    free_path(OPENAI, "/files"),
    free_path(OPENAI, "/uploads"),
    free_path(OPENAI, "/uploads/{}/parts"),
    free_path(OPENAI, "/uploads/{}/complete"),
    free_path(OPENAI, "/uploads/{}/cancel"),
    free_path(ROOT, "/upload/v1beta/files"),
    free_path(OPENAI, "/chat/completions/{}"),
    free_path(OPENAI, "/responses/{}/cancel"),
    free_path(OPENAI, "/conversations"),
    free_path(OPENAI, "/conversations/{}"),
    free_path(OPENAI, "/conversations/{}/items"),
    free_path(OPENAI, "/batches/{}/cancel"),
    free_path(ANTHROPIC, "/messages/batches/{}/cancel"),
    free_path(OPENAI, "/fine_tuning/jobs/{}/cancel"),
    free_path(OPENAI, "/threads/{}/runs/{}/cancel"),
    media(OPENAI, "/images/**", "images"),
    media(OPENAI, "/audio/**", "audio"),
    media(OPENAI, "/videos", "video"),
    stored_path(OPENAI, "/videos/**", "video"),
    media(GEMINI, "/models/{model}:predict", "images"),
    media(GEMINI, "/models/{model}:predictLongRunning", "video"),
    stored_path(OPENAI, "/batches/**", "batches"),
    stored_path(ANTHROPIC, "/messages/batches/**", "batches"),
    stored_path(GEMINI, "/models/{model}:batchGenerateContent", "batches"),
    stored_path(GEMINI, "/models/{model}:asyncBatchEmbedContent", "batches"),
    stored_path(GEMINI, "/models/{model}:bidiGenerateContent", "realtime"),
    stored_path(OPENAI, "/realtime/**", "realtime"),
    stored_path(OPENAI, "/assistants/**", "assistants"),
    stored_path(OPENAI, "/threads/**", "assistants"),
    stored_path(OPENAI, "/fine_tuning/**", "fine_tuning"),
    stored_path(GEMINI, "/tunedModels/**", "fine_tuning"),
    stored_path(GEMINI, "/cachedContents/**", "cached_contents"),
    stored_path(OPENAI, "/evals/**", "evals"),
    stored_path(OPENAI, "/vector_stores/**", "vector_stores"),
    stored_path(OPENAI, "/containers/**", "containers"),
];

impl Row {
    /// Compares a path with this row below one of its roots.
    pub(super) fn matches(&self, root: &str, path: &[&str]) -> Option<MatchedPath> {
        let mut matched = MatchedPath { model: None, is_exact: true };
        let mut path = path.iter();
        for pattern in root.split('/').skip(1).chain(self.path.split('/').skip(1)) {
            if pattern == "**" {
                return Some(matched);
            }
            let segment = *path.next()?;
            let word = match pattern.strip_prefix("{model}") {
                None => segment,
                Some("") => {
                    matched.model = Some(segment.to_owned());
                    continue;
                }
                Some(_) => {
                    let (model, _) = segment.rsplit_once(':')?;
                    matched.model = Some(model.to_owned());
                    &segment[model.len()..]
                }
            };
            let pattern = pattern.strip_prefix("{model}").unwrap_or(pattern);
            if pattern != "{}" && !word.eq_ignore_ascii_case(pattern) {
                return None;
            }
            matched.is_exact &= pattern == "{}" || word == pattern;
        }
        path.next().is_none().then_some(matched)
    }
}
