//! Checks whether an upstream can be a fallback.

use endmark_wire::gemini::GEMINI;
use endmark_wire::provider::Provider;
use endmark_wire::request::Address;

use super::base_url::BaseUrl;

/// The hosts of Azure. Without a deployment and a version in each request, they support only one form of base URL.
const AZURE_HOST_SUFFIXES: [&str; 3] =
    [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];

/// The host of Vertex AI, where each model is below a publisher.
const VERTEX_HOST_SUFFIX: &str = "aiplatform.googleapis.com";

/// Why an upstream cannot be a fallback (PC-9). A fallback does not get the path for another host, so its
/// configuration must be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnfitFallback {
    /// The base URL is on Azure, but is not that of the v1 API.
    #[error(
        "Azure's v1 API, like \"https://NAME.openai.azure.com/openai/v1\", since it is a fallback: the deployment and \
         version of another upstream's path mean nothing there"
    )]
    AzureBaseUrl,
    /// The base URL is on Vertex AI, but names no publisher and therefore no project.
    #[error(
        "the path above the models, like \"https://PLACE-aiplatform.googleapis.com/v1/projects/PROJECT/\
         locations/PLACE/publishers/google\", since it is a fallback: the project of another upstream's path means \
         nothing there"
    )]
    VertexBaseUrl,
    /// The model's name cannot be part of a path.
    #[error("a model's name as in paths, like \"gemini-2.5-flash\", since it is a fallback")]
    Model,
}

impl UnfitFallback {
    /// Returns why an upstream with this base URL, these formats and this model cannot be a fallback. Returns `None`
    /// if it can.
    ///
    /// ```
    /// use endmark_gateway::UnfitFallback;
    /// use endmark_wire::openai_chat::OPENAI;
    /// let azure = "https://mine.openai.azure.com/openai/deployments/x".parse().unwrap();
    /// assert_eq!(UnfitFallback::check(&azure, &OPENAI, None), Some(UnfitFallback::AzureBaseUrl));
    /// ```
    pub fn check(base_url: &BaseUrl, provider: &Provider, model: Option<&str>) -> Option<Self> {
        let host = base_url.origin().host().unwrap_or_default().to_ascii_lowercase();
        let path = base_url.path();
        if AZURE_HOST_SUFFIXES.iter().any(|of_azure| host.ends_with(of_azure))
            && !path.ends_with("/openai/v1")
        {
            return Some(Self::AzureBaseUrl);
        }
        if host.ends_with(VERTEX_HOST_SUFFIX) && !path.ends_with("/publishers/google") && *provider == GEMINI
        {
            return Some(Self::VertexBaseUrl);
        }
        let model = model?;
        let has_path = provider.formats().all(|format| {
            let path = format.path_at_other_upstream(&Address::default(), model, false);
            format.address(&path, None).is_some()
        });
        (!has_path).then_some(Self::Model)
    }

    /// Returns the configuration key of the upstream that must be changed.
    pub fn key(self) -> &'static str {
        match self {
            Self::AzureBaseUrl | Self::VertexBaseUrl => "base_url",
            Self::Model => "model",
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::anthropic_messages::ANTHROPIC;
    use endmark_wire::openai_chat::OPENAI;

    use super::*;

    #[test]
    fn a_fallback_without_values_for_its_paths_is_refused() {
        let google = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/google";
        for (base_url, provider, model, unfit) in [
            ("https://mine.openai.azure.com/openai/v1", &OPENAI, Some("a/b"), None),
            ("https://mine.openai.azure.com/openai/v1/", &OPENAI, None, None),
            ("https://MINE.OpenAI.Azure.com/v1", &OPENAI, None, Some(UnfitFallback::AzureBaseUrl)),
            ("https://mine.services.ai.azure.com", &OPENAI, None, Some(UnfitFallback::AzureBaseUrl)),
            (google, &GEMINI, Some("gemini-2.5-flash"), None),
            ("https://aiplatform.googleapis.com/v1/publishers/google", &GEMINI, None, None),
            ("https://aiplatform.googleapis.com/v1", &GEMINI, None, Some(UnfitFallback::VertexBaseUrl)),
            ("https://generativelanguage.googleapis.com/v1beta", &GEMINI, None, None),
            ("http://127.0.0.1:1/v1", &GEMINI, Some("models/gemini"), Some(UnfitFallback::Model)),
            ("http://127.0.0.1:1/v1", &GEMINI, Some("?x"), Some(UnfitFallback::Model)),
            ("http://127.0.0.1:1/v1", &ANTHROPIC, Some("?x"), None),
        ] {
            let parsed = base_url.parse().unwrap();
            assert_eq!(UnfitFallback::check(&parsed, provider, model), unfit, "{base_url} {model:?}");
        }
    }
}
