//! The cost of a request by its path, and the location of its model: one table of the providers' paths.
//!
//! The table is used if a budget or a list of models applies. A path that servers can read in two ways is an
//! error, so that a request is judged by the same path that its upstream reads.

mod table;
mod usage;

pub use crate::deciding::fields::NON_GENERATING;
use crate::deciding::{self, DecidingField, fields};
use crate::edit::Edits;
use crate::json::Value;
use crate::{format, openai_chat, percent_decode};
use table::TABLE;
pub use usage::{only_counts, read_usage};

/// The cost of a request to a path.
#[derive(Debug, Clone, Copy)]
pub enum PathCost {
    /// Tokens of a reply in one of the formats.
    Reply,
    /// Tokens of another service, which most servers report in the response.
    Counted(TokenService),
    /// Nothing that is billed by tokens.
    Free,
    /// A cost that Endmark does not count, by its kind: `images`, `batches`, or `unknown`.
    Uncounted(&'static str),
}

/// A service other than replies that is billed by tokens.
#[derive(Debug, Clone, Copy)]
pub struct TokenService {
    /// Its name, such as `embeddings`.
    pub name: &'static str,
    /// The path of its requests, below the version.
    pub route: &'static str,
    /// The operation of a call, as named by the OpenTelemetry conventions (`gen_ai.operation.name`).
    pub operation: &'static str,
    /// The fields that decide the cost of its requests.
    pub fields: &'static [DecidingField],
}

impl TokenService {
    /// Returns whether the service generates output.
    pub fn generates_output(&self) -> bool {
        deciding::generates_output(self.fields)
    }

    /// Returns the request with `stream_options.include_usage`. Returns `None` if it is not for a stream, if
    /// it already requests usage, or if the service does not have this option.
    ///
    /// ```
    /// use endmark_wire::{json::Value, paths::{PathCost, read}};
    /// let PathCost::Counted(service) = read("POST", "/v1/completions", None)?.cost else { panic!() };
    /// let asking = |body| service.with_usage_request(Value::parse_str(body).unwrap());
    /// let expected = br#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    /// assert_eq!(asking(r#"{"stream":true}"#).as_deref(), Some(&expected[..]));
    /// assert_eq!(asking(r#"{"stream":false}"#), None);
    /// # Ok::<(), endmark_wire::paths::AmbiguousPath>(())
    /// ```
    pub fn with_usage_request(&self, root: Value<'_>) -> Option<Vec<u8>> {
        let has = |path| root.at(path).and_then(Value::as_bool) == Some(true);
        if self.name != COMPLETIONS || !has("stream") || has("stream_options.include_usage") {
            return None;
        }
        let mut edits = Edits::for_document(root);
        openai_chat::request_usage(root, &mut edits);
        Some(edits.finish())
    }
}

/// The location of the model's name in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelLocation {
    /// In the field `model` of its body, or in the path.
    InRequest,
    /// The request uses no model.
    Unused,
    /// In a file, in the items of a list, or in a stored object. The model is therefore unknown.
    InFile,
}

/// What is known about the requests to a path.
#[derive(Debug, Clone)]
pub struct PathUse {
    /// The cost of a request to it.
    pub cost: PathCost,
    /// The location of the model's name.
    pub model: ModelLocation,
    /// The model that the path names.
    pub model_in_path: Option<String>,
}

/// Error of a path that servers can read in two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("servers can read the path in two ways ({0}), and its cost is limited here: send it without that")]
pub struct AmbiguousPath(&'static str);

/// The name of OpenAI's older completions.
const COMPLETIONS: &str = "completions";

/// Gemini's stream as one JSON array.
const GEMINI_ARRAY: TokenService = TokenService {
    name: "gemini_array",
    route: "/models/{model}:streamGenerateContent",
    operation: "generate_content",
    fields: fields::GEMINI,
};

/// The kind of cost of a path that is not in the table.
pub const UNKNOWN_COST: &str = "unknown";

/// Classifies a request that is not read-only by its path, as the upstream will receive it.
///
/// ```
/// use endmark_wire::paths::{PathCost, read};
/// assert!(matches!(read("POST", "/v1/embeddings", None)?.cost, PathCost::Counted(_)));
/// assert!(matches!(read("POST", "/v1/files", None)?.cost, PathCost::Free));
/// assert!(matches!(read("POST", "/completion", None)?.cost, PathCost::Uncounted("unknown")));
/// assert!(read("POST", "/v1/completions%3f/count_tokens", None).is_err());
/// # Ok::<(), endmark_wire::paths::AmbiguousPath>(())
/// ```
///
/// # Errors
/// [`AmbiguousPath`] if servers can read it in two ways.
pub fn read(method: &str, path: &str, query: Option<&str>) -> Result<PathUse, AmbiguousPath> {
    let plain = plain_path(path)?;
    let segments: Vec<&str> = plain.split('/').skip(1).collect();
    let unknown = |model_in_path| PathUse {
        cost: PathCost::Uncounted(UNKNOWN_COST),
        model: ModelLocation::InRequest,
        model_in_path,
    };
    let of_row = |row: &&table::PathRow| row.roots.iter().find_map(|root| row.matches(root, &segments));
    let Some((row, found)) = TABLE.iter().find_map(|row| Some((row, of_row(&row)?))) else {
        return Ok(unknown(None));
    };
    if !found.is_exact {
        return Err(AmbiguousPath("some servers ignore case"));
    }
    let known = PathUse { cost: row.cost, model: row.model, model_in_path: found.model };
    Ok(match row.cost {
        PathCost::Free if matches!(method, "POST" | "PUT" | "PATCH") => known,
        _ if method != "POST" => unknown(known.model_in_path),
        PathCost::Reply if format::find(path, query).is_some() => known,
        // The array of chunks is not a supported format, but it reports its tokens.
        PathCost::Reply if plain.ends_with(":streamGenerateContent") => {
            PathUse { cost: PathCost::Counted(GEMINI_ARRAY), ..known }
        }
        PathCost::Reply => unknown(known.model_in_path),
        _ => known,
    })
}

/// Returns the known path that an unknown one probably means: the same path after `/v1`.
pub fn suggested_path(path: &str) -> Option<String> {
    let with_version = format!("/v1{path}");
    let is_known = !path.starts_with("/v1")
        && read("POST", &with_version, None)
            .is_ok_and(|found| matches!(found.cost, PathCost::Reply | PathCost::Counted(_)));
    is_known.then_some(with_version)
}

/// Returns the decoded path, or an error if servers could decode it differently.
fn plain_path(path: &str) -> Result<String, AmbiguousPath> {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let is_plain = |byte: u8| is_unreserved(byte) || b":@!$&'()*+,= ".contains(&byte);
    let is_encoded = path.contains('%');
    if path.bytes().any(|byte| !is_plain(byte) && !matches!(byte, b'/' | b'%') || byte == b' ') {
        return Err(AmbiguousPath("a character such as `;` or `\\`"));
    }
    let mut rest = path;
    while let Some((_, code)) = rest.split_once('%') {
        let byte = code.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if is_plain(byte) && !is_unreserved(byte) => rest = &code[2..],
            _ => return Err(AmbiguousPath("percent-encoding that is not needed, or hides a separator")),
        }
    }
    let plain = if is_encoded { percent_decode(path) } else { path.to_owned() };
    let mut segments = plain.split('/').skip(1);
    if !plain.starts_with('/') || (plain != "/" && segments.any(|segment| matches!(segment, "" | "." | "..")))
    {
        return Err(AmbiguousPath("an empty segment, `.`, `..`, or a slash at its end"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display_request(method: &str, path: &str) -> String {
        match read(method, path, None) {
            Err(_) => "ambiguous".to_owned(),
            Ok(found) => {
                let model = found.model_in_path.unwrap_or_default();
                match found.cost {
                    PathCost::Reply => format!("reply {model}"),
                    PathCost::Counted(service) => format!("{} {model}", service.name),
                    PathCost::Free => format!("free {model}"),
                    PathCost::Uncounted(kind) => format!("uncounted {kind} {model}"),
                }
                .trim_end()
                .to_owned()
            }
        }
    }

    #[test]
    fn a_path_is_classified_by_its_provider() {
        for (path, expected) in [
            ("/v1/chat/completions", "reply"),
            ("/v1/responses", "reply"),
            ("/v1/messages", "reply"),
            ("/openai/deployments/mine/chat/completions", "reply mine"),
            ("/v1beta/models/gemini-9:generateContent", "reply gemini-9"),
            ("/v1beta/models/gemini-9%3AgenerateContent", "reply gemini-9"),
            ("/v1beta/models/gemini-9:streamGenerateContent", "gemini_array gemini-9"),
            ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", "reply g"),
            ("/v1/embeddings", "embeddings"),
            ("/openai/deployments/m%20e/embeddings", "embeddings m e"),
            ("/v1/completions", "completions"),
            ("/v1beta/models/e:batchEmbedContents", "embeddings e"),
            ("/v1/rerank", "rerank"),
            ("/v2/rerank", "rerank"),
            ("/v1/responses/compact", "compaction"),
            ("/v1/messages/count_tokens", "free"),
            ("/v1/responses/input_tokens", "free"),
            ("/v1/responses/resp_1/cancel", "free"),
            ("/v1beta/models/gemini-9:countTokens", "free gemini-9"),
            ("/v1/files", "free"),
            ("/upload/v1beta/files", "free"),
            ("/v1/moderations", "free"),
            ("/v1/batches", "uncounted batches"),
            ("/v1/messages/batches", "uncounted batches"),
            ("/v1beta/models/gemini-9:batchGenerateContent", "uncounted batches gemini-9"),
            ("/v1/images/generations", "uncounted images"),
            ("/v1/threads/t/runs", "uncounted assistants"),
            ("/v1/fine_tuning/jobs", "uncounted fine_tuning"),
            ("/v1/realtime/client_secrets", "uncounted realtime"),
            ("/chat/completions", "uncounted unknown"),
            ("/completion", "uncounted unknown"),
            ("/models/cheap/v1/embeddings", "uncounted unknown"),
            ("/v1/x/count_tokens", "uncounted unknown"),
            ("/v1/completions/count_tokens", "uncounted unknown"),
            ("/", "uncounted unknown"),
        ] {
            assert_eq!(display_request("POST", path), expected, "{path}");
        }
        for (method, path) in
            [("PUT", "/v1/chat/completions"), ("POSTS", "/v1/files"), ("PUT", "/v1/embeddings")]
        {
            assert_eq!(display_request(method, path), "uncounted unknown", "{method} {path}");
        }
        assert_eq!(suggested_path("/chat/completions").as_deref(), Some("/v1/chat/completions"));
        assert_eq!(suggested_path("/completions").as_deref(), Some("/v1/completions"));
        assert_eq!((suggested_path("/v1/x"), suggested_path("/x")), (None, None));
    }

    #[test]
    fn a_path_that_servers_read_differently_is_ambiguous() {
        for path in [
            "/v1/completions%3f/count_tokens",
            "/v1/completions%3F/count_tokens",
            "/v1/completions%23/count_tokens",
            "/v1/completions;/count_tokens",
            "/v1/completions%3b/count_tokens",
            "/v1/completions%00/count_tokens",
            "/v1/completions/../messages/count_tokens",
            "/v1/completions%2f..%2ffiles",
            "/v1/completions%252f",
            "/v1//completions",
            "//v1/completions",
            "/v1/completions/",
            "/v1/./completions",
            "/v1\\completions",
            "/v1/%63ompletions",
            "/v1/files/%",
            "/v1/files/%4",
            "/v1/files/%zz",
            "/v1/files/%C3%A4",
            "/v1/files/\u{e4}",
            "/V1/completions",
            "/v1/Completions",
            "/v1/CHAT/completions",
            "/v1/Files",
            "/v1beta/models/g:GenerateContent",
            "/v1beta/models/g:counttokens",
            "",
        ] {
            assert_eq!(display_request("POST", path), "ambiguous", "{path}");
        }
    }
}
