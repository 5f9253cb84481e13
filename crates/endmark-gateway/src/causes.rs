//! Errors as people read them.

use std::error::Error;

/// An error with its causes in one line: the innermost is the one that helps.
///
/// ```
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(endmark_gateway::with_causes(&error), "the disk is full");
/// ```
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
