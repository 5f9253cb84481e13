//! The path of a request, which names the model and the method, at Gemini's own address and at Vertex AI's.

use crate::request::Address;

const MODEL_PREFIXES: [&str; 2] = ["/v1beta/models/", "/v1/models/"];

/// The prefixes of Vertex AI's paths, which continue with projects, locations and publishers.
const VERTEX_PREFIXES: [&str; 2] = ["/v1/", "/v1beta1/"];

/// The API versions that no other provider has.
const GEMINI_VERSIONS: [&str; 3] = ["v1beta", "v1alpha", "v1beta1"];

/// The prefixes of file transfers. An API version follows them.
const FILE_TRANSFER_PREFIXES: [&str; 2] = ["upload", "download"];

/// The methods of a model.
const MODEL_METHODS: [&str; 12] = [
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    "embedContent",
    "batchEmbedContents",
    "batchGenerateContent",
    "asyncBatchEmbedContent",
    "generateAnswer",
    "predict",
    "predictLongRunning",
    "bidiGenerateContent",
    "transferOwnership",
];

/// Maximum length of a model's name in bytes. No known name is longer.
const MAX_MODEL_BYTES: usize = 256;

/// Parses a path. Returns `None` if it does not call one of the two methods, if its model's name does not fit
/// into another path, or if it requests the stream as an array. Such a request passes unchanged.
pub(super) fn read(path: &str, query: Option<&str>) -> Option<Address> {
    let (base, named) = path.split_at(path.rfind('/')? + 1);
    if !MODEL_PREFIXES.contains(&base) && !is_vertex_path(base) {
        return None;
    }
    let (model, method) = split_method(named)?;
    let stream = match method {
        "generateContent" => false,
        "streamGenerateContent" if asks_for_events(query) => true,
        _ => return None,
    };
    if !is_model_name(model) {
        return None;
    }
    Some(Address { base: base.to_owned(), model: Some(model.to_owned()), stream: Some(stream) })
}

/// Returns whether a path is the part before a model's name at Vertex AI, with or without a project and a location.
fn is_vertex_path(base: &str) -> bool {
    // If a base URL ends with the version, the project follows directly.
    let below = VERTEX_PREFIXES.into_iter().chain(["/"]).find_map(|version| base.strip_prefix(version));
    let Some(below) = below else { return false };
    let Some(named) = below.strip_suffix("publishers/google/models/") else { return false };
    // The name of an organisation's project contains the organisation's domain and a colon.
    let is_word = |word: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        word.bytes().all(is_part) && word.bytes().any(|byte| byte.is_ascii_alphanumeric())
    };
    match named.split('/').collect::<Vec<_>>()[..] {
        [""] => true,
        ["projects", project, "locations", place, ""] => is_word(project) && is_word(place),
        _ => false,
    }
}

/// Returns whether a path belongs to Gemini. Under `/v1`, which other providers share, only paths with a
/// model method do. A colon alone proves nothing: names of other providers' models contain colons, and no
/// name of a Gemini model does.
pub(super) fn is_gemini(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or_default().split('/').next().unwrap_or_default();
    let has_method = |named: &str| {
        split_method(named)
            .is_some_and(|(model, method)| MODEL_METHODS.contains(&method) && split_method(model).is_none())
    };
    let is_vertex = || {
        let below = [VERTEX_PREFIXES[0], "/"].into_iter().find_map(|version| path.strip_prefix(version));
        below.is_some_and(|below| below.starts_with("projects/") || below.starts_with("publishers/"))
    };
    GEMINI_VERSIONS.contains(&first)
        || FILE_TRANSFER_PREFIXES.contains(&first)
        || is_vertex()
        || path.strip_prefix(MODEL_PREFIXES[1]).is_some_and(has_method)
}

/// Returns the part of a path before the last colon, and the method after it.
fn split_method(path: &str) -> Option<(&str, &str)> {
    ["%3A", "%3a", ":"]
        .into_iter()
        .filter_map(|colon| path.rsplit_once(colon))
        .min_by_key(|(_, method)| method.len())
}

/// Returns the address without the projects and locations of this host. A path below `/v1` is valid below any
/// upstream's base URL.
pub(super) fn for_other_upstream(address: &Address) -> Address {
    let base =
        if is_vertex_path(&address.base) { MODEL_PREFIXES[1].to_owned() } else { address.base.clone() };
    Address { base, ..address.clone() }
}

/// Returns the path for a model, streamed or not.
pub(super) fn write(address: &Address, model: &str, stream: bool) -> String {
    let base = if address.base.is_empty() { MODEL_PREFIXES[0] } else { &address.base };
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("{base}{model}:{method}")
}

fn asks_for_events(query: Option<&str>) -> bool {
    query.into_iter().flat_map(|query| query.split('&')).any(|pair| pair == "alt=sse" || pair == "$alt=sse")
}

/// Returns whether this can only be a model's name within a path.
fn is_model_name(model: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@');
    (1..=MAX_MODEL_BYTES).contains(&model.len())
        && model.bytes().all(is_part)
        && model.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_both_versions_and_spellings_are_recognised() {
        for path in [
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
            "/v1/models/gemini-2.5-flash:streamGenerateContent",
            "/v1beta/models/gemini-2.5-flash%3AstreamGenerateContent",
            "/v1/models/gemini-2.5-flash%3astreamGenerateContent",
            "/v1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
            "/v1beta1/projects/example.com:p/locations/global/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
            "/v1/publishers/google/models/gemini-2.5-flash%3AstreamGenerateContent",
            "/projects/p-1/locations/global/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
        ] {
            let address = read(path, Some("key=x&alt=sse")).unwrap();
            assert_eq!(address.model.as_deref(), Some("gemini-2.5-flash"), "{path}");
            assert_eq!(address.stream, Some(true), "{path}");
            assert!(path.starts_with(&address.base), "{path}");
            let other_path = write(&address, "gemini-2.5-pro", false);
            assert_eq!(other_path, format!("{}gemini-2.5-pro:generateContent", address.base));
            assert_eq!(read(&other_path, None).unwrap().stream, Some(false));
        }
    }

    #[test]
    fn under_v1_only_known_methods_belong_to_gemini() {
        for path in [
            "/v1beta/models",
            "/v1alpha/models/m:generateContent",
            "/upload/v1beta/files",
            "/download/v1beta/files/x:download",
            "/v1/models/m:countTokens",
            "/v1/models/m%3AembedContent",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            "/v1beta1/projects/p/locations/l/endpoints",
        ] {
            assert!(is_gemini(path), "{path}");
        }
        for path in [
            "/v1/models",
            "/v1/models/ft:gpt-4o-mini:org::abc",
            "/v1/models/ft:gpt-4o-mini:org::predict",
            "/v1/models/llama3:8b",
            "/v1/models/ft%3Agpt-4o-mini%3Aorg",
            "/v1betatest/models",
            "/v1/uploads",
            "/v1/x/m:countTokens",
            "",
        ] {
            assert!(!is_gemini(path), "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_parsed() {
        for (path, query) in [
            ("/v1beta/models", None),
            ("/v1beta/models/m", None),
            ("/v1beta/models/m:countTokens", None),
            ("/v1beta/models/m:streamGenerateContent", None),
            ("/v1beta/models/m:streamGenerateContent", Some("alt=json")),
            ("/v2/models/m:generateContent", None),
            ("/v1beta/tunedModels/m:generateContent", None),
            ("/v1/projects/p/locations/l/publishers/google/models/m:countTokens", None),
            ("/v1/projects/p/locations/l/publishers/meta/models/m:generateContent", None),
            ("/v1/projects/../locations/l/publishers/google/models/m:generateContent", None),
            ("/v1/projects/p%2Fq/locations/l/publishers/google/models/m:generateContent", None),
            ("/v1/projects/p/publishers/google/models/m:generateContent", None),
            ("/v2/projects/p/locations/l/publishers/google/models/m:generateContent", None),
        ] {
            assert!(read(path, query).is_none(), "{path}");
        }
    }

    #[test]
    fn a_path_with_an_unusual_model_name_is_not_parsed() {
        for model in ["", ".", "..", "../../v1/files", "a/b", "a%2Fb", "a?b", "a b", "ä", "m:x"] {
            let path = format!("/v1beta/models/{model}:generateContent");
            assert!(read(&path, None).is_none(), "{model}");
        }
        assert!(read(&format!("/v1/models/{}:generateContent", "m".repeat(257)), None).is_none());
    }
}
