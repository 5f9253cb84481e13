//! Reads the model from the path of any request.

use crate::format::find_by_path;
use crate::gemini::GEMINI;
use crate::percent_decode;

/// The path segments before a model's name.
const MODEL_PATH_PREFIXES: [&str; 2] = ["/models/", "/deployments/"];

/// Returns the model in a path, percent-decoded, or `None` if the path names no model.
///
/// ```
/// use endmark_wire::model_in_path;
/// assert_eq!(model_in_path("/v1/models/ft%3Agpt-4o%3Aorg%3A%3Aid").as_deref(), Some("ft:gpt-4o:org::id"));
/// assert_eq!(model_in_path("/v1beta/models/gemini-9:countTokens").as_deref(), Some("gemini-9"));
/// assert_eq!(model_in_path("/v1/embeddings"), None);
/// ```
pub fn model_in_path(path: &str) -> Option<String> {
    let (before, named) =
        MODEL_PATH_PREFIXES.into_iter().find_map(|before| Some((before, path.split_once(before)?.1)))?;
    let named = named.trim_end_matches('/');
    let is_geminis = || find_by_path(path).is_some_and(|format| *format.provider() == GEMINI);
    let name = if before == MODEL_PATH_PREFIXES[1] {
        // The operation follows the name of the deployment.
        percent_decode(named.split('/').next()?)
    } else if is_geminis() {
        let whole = percent_decode(named);
        match whole.rsplit_once(':') {
            Some((name, method)) if is_method(method) => name.to_owned(),
            // A resource of the model, such as an operation, may follow.
            _ => percent_decode(named.split('/').next()?),
        }
    } else {
        percent_decode(named)
    };
    Some(name).filter(|name| !name.is_empty())
}

/// Returns whether the text after a colon can be a method's name.
fn is_method(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_is_kept_as_the_client_wrote_it() {
        for (path, model) in [
            ("/v1beta/models/gemini-9:generateContent", Some("gemini-9")),
            ("/v1beta/models/gemini-9%3AcountTokens", Some("gemini-9")),
            ("/v1beta/models/gemini-9", Some("gemini-9")),
            ("/v1beta/models/gemini-9/operations/o", Some("gemini-9")),
            ("/v1beta/models/llama3.2:1b:generateContent", Some("llama3.2:1b")),
            ("/v1beta/models/llama3.2%3A1b%3AgenerateContent", Some("llama3.2:1b")),
            ("/v1beta/models/llama3.2:1b", Some("llama3.2:1b")),
            ("/v1beta/models/meta-llama/Llama-3:generateContent", Some("meta-llama/Llama-3")),
            ("/v1beta/models/meta-llama%2FLlama-3:embedContent", Some("meta-llama/Llama-3")),
            ("/v1/models/gemini-9:countTokens", Some("gemini-9")),
            (
                "/v1/projects/p/locations/l/publishers/anthropic/models/claude-9@1:rawPredict",
                Some("claude-9@1"),
            ),
            ("/v1/models/ft:gpt-4o:org::id", Some("ft:gpt-4o:org::id")),
            ("/v1/models/ft%3agpt-4o%3Aorg%3A%3Aid/", Some("ft:gpt-4o:org::id")),
            ("/v1/models/meta-llama/Llama-3", Some("meta-llama/Llama-3")),
            ("/v1/models/meta-llama%2FLlama-3", Some("meta-llama/Llama-3")),
            ("/v1/models/llama3.2:1b", Some("llama3.2:1b")),
            ("/openai/v1/models/ft:x", Some("ft:x")),
            ("/openai/deployments/mine/chat/completions", Some("mine")),
            ("/openai/deployments/m%20e/embeddings", Some("m e")),
            ("/v1/models/50%", Some("50%")),
            ("/v1/models/%zz%4", Some("%zz%4")),
            ("/v1/models/%FF", Some("%FF")),
            ("/v1/models/%C3%A4", Some("ä")),
            ("/v1/models", None),
            ("/v1/models/", None),
            ("/v1beta/models/:generateContent", None),
            ("/v1/embeddings", None),
            ("", None),
        ] {
            assert_eq!(model_in_path(path).as_deref(), model, "{path}");
        }
    }
}
