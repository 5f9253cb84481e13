//! The table of the providers' paths.
//!
//! Sources: all paths to which the clients openai 3.54.0, anthropic 2.12.0 and google-genai 3.4.0 (from `PyPI`)
//! send model calls, and the base paths of their Azure and Vertex AI clients. For reranking: the READMEs of
//! the vLLM and llama.cpp servers. Their other paths (organizations, agents, vaults) are rejected as unknown.

use super::{COMPLETIONS, ModelLocation, PathCost, TokenService};
use crate::deciding::{DecidingField, fields};

/// A path below one of its roots. `{}` is any segment, `{model}` is a segment with a model's name, and `**`
/// is any number of further segments.
pub(super) struct PathRow {
    pub(super) roots: &'static [&'static str],
    path: &'static str,
    pub(super) cost: PathCost,
    pub(super) model: ModelLocation,
}

/// A path that matches a row.
pub(super) struct MatchedPath {
    pub(super) model: Option<String>,
    /// Whether the path is spelled as in the table, including case.
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

const fn row(
    roots: &'static [&'static str],
    path: &'static str,
    cost: PathCost,
    model: ModelLocation,
) -> PathRow {
    PathRow { roots, path, cost, model }
}

const fn reply_path(roots: &'static [&'static str], path: &'static str) -> PathRow {
    row(roots, path, PathCost::Reply, ModelLocation::InRequest)
}

const fn counted_path(
    roots: &'static [&'static str],
    path: &'static str,
    (name, operation): (&'static str, &'static str),
    fields: &'static [DecidingField],
) -> PathRow {
    row(
        roots,
        path,
        PathCost::Counted(TokenService { name, route: path, operation, fields }),
        ModelLocation::InRequest,
    )
}

const fn free_path(roots: &'static [&'static str], path: &'static str) -> PathRow {
    row(roots, path, PathCost::Free, ModelLocation::Unused)
}

/// A path without cost, whose model must still be allowed.
const fn free_path_with_model(roots: &'static [&'static str], path: &'static str) -> PathRow {
    row(roots, path, PathCost::Free, ModelLocation::InRequest)
}

/// A path that is billed in units other than tokens, with the model in the request.
const fn media_path(roots: &'static [&'static str], path: &'static str, kind: &'static str) -> PathRow {
    row(roots, path, PathCost::Uncounted(kind), ModelLocation::InRequest)
}

/// A path for a batch or a stored object. The batch or the object contains the model's name.
const fn stored_path(roots: &'static [&'static str], path: &'static str, kind: &'static str) -> PathRow {
    row(roots, path, PathCost::Uncounted(kind), ModelLocation::InFile)
}

/// The table; the first row that matches counts.
pub(super) const TABLE: &[PathRow] = &[
    reply_path(OPENAI, "/chat/completions"),
    reply_path(OPENAI, "/responses"),
    reply_path(ANTHROPIC, "/messages"),
    reply_path(GEMINI, "/models/{model}:generateContent"),
    reply_path(GEMINI, "/models/{model}:streamGenerateContent"),
    counted_path(OPENAI, "/embeddings", ("embeddings", "embeddings"), fields::NON_GENERATING),
    counted_path(OPENAI, "/completions", (COMPLETIONS, "text_completion"), fields::COMPLETIONS),
    counted_path(OPENAI, "/responses/compact", ("compaction", "chat"), fields::RESPONSES),
    counted_path(RERANKERS, "/rerank", ("rerank", "rerank"), fields::NON_GENERATING),
    counted_path(RERANKERS, "/reranking", ("rerank", "rerank"), fields::NON_GENERATING),
    counted_path(
        GEMINI,
        "/models/{model}:embedContent",
        ("embeddings", "embeddings"),
        fields::NON_GENERATING,
    ),
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
    media_path(OPENAI, "/images/**", "images"),
    media_path(OPENAI, "/audio/**", "audio"),
    media_path(OPENAI, "/videos", "video"),
    stored_path(OPENAI, "/videos/**", "video"),
    media_path(GEMINI, "/models/{model}:predict", "images"),
    media_path(GEMINI, "/models/{model}:predictLongRunning", "video"),
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

impl PathRow {
    /// Matches a path against this row's pattern after `root`, which is one of the row's roots.
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
