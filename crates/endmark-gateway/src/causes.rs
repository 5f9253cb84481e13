//! Formats errors as messages for users.

use std::error::Error;

/// hyper-util's message for a name that cannot be resolved.
const RESOLVER_FAILURE: &str = "dns error";

/// Returns an error with all its causes in one line, because the innermost cause is the most useful.
///
/// ```
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(endmark_gateway::with_causes(&error), "the disk is full");
/// ```
pub fn with_causes(error: &dyn Error) -> String {
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    match causes.iter().position(|cause| cause.starts_with(RESOLVER_FAILURE)) {
        // The outer errors add no information, and "dns error" alone suggests that a DNS server failed.
        Some(at) => format!(
            "DNS failed: the name of the server cannot be resolved ({})",
            causes.get(at + 1..).unwrap_or_default().join(": ")
        ),
        None => causes.join(": "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct ChainedError(&'static str, #[source] Option<Box<ChainedError>>);

    #[test]
    fn an_unresolvable_name_is_reported_as_a_dns_failure() {
        let innermost = ChainedError("failed to lookup address information: Name or service not known", None);
        let error = ChainedError(
            "client error (Connect)",
            Some(Box::new(ChainedError("dns error", Some(Box::new(innermost))))),
        );
        let message = with_causes(&error);
        assert!(
            message.starts_with("DNS failed: ") && message.contains("Name or service not known"),
            "{message}"
        );
        assert!(!message.contains("Connect"), "{message}");
    }
}
