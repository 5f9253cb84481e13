//! Renders reports in the formats of other tools.

mod github;
mod junit;
mod sarif;

pub use github::github;
pub use junit::junit;
pub use sarif::sarif;

use crate::finding::Assessment;

/// A report and the path of its artifact.
#[derive(Debug, Clone, Copy)]
pub struct AssessedArtifact<'r> {
    /// The path as it was given.
    pub path: &'r str,
    /// The guard's report.
    pub report: &'r Assessment,
}

/// Escapes text for XML. Characters that XML cannot contain are replaced or removed.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() && control != '\t' && control < '\u{80}' => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
