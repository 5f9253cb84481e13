//! Converts errors to messages for people.

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
        // The causes add no information, and "dns error" alone suggests a failure of the server.
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
    struct Link(&'static str, #[source] Option<Box<Link>>);

    #[test]
    fn an_unresolvable_name_is_reported_as_a_dns_failure() {
        let innermost = Link("failed to lookup address information: Name or service not known", None);
        let error =
            Link("client error (Connect)", Some(Box::new(Link("dns error", Some(Box::new(innermost))))));
        let message = with_causes(&error);
        assert!(
            message.starts_with("DNS failed: ") && message.contains("Name or service not known"),
            "{message}"
        );
        assert!(!message.contains("Connect"), "{message}");
    }
}
