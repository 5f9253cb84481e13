//! The field names. (AR-1)

use crate::Field;
use crate::vocabulary::{folded, list_of};

/// A field of a result or a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    AgentId,
    Dimensions,
    Declared,
    /// The findings of a JSON result.
    Findings,
    /// Whether a JSON result was cut.
    Truncated,
    /// The id of a finding, as a separate field.
    Id,
    /// The title of a finding, as a separate field.
    Title,
    /// The line or lines in the file that `location` names.
    Lines,
    /// The last of these lines, as a separate field.
    LastLine,
    Of(Field),
    /// An unknown name, whose value may follow on the next lines.
    Unknown,
}

impl Key {
    /// Returns the field of this name. A remark in parentheses is ignored: `Source (user input)`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.split('(').next().unwrap_or(name);
        Some(match list_of("field", &folded(name))? {
            "agent_id" => Self::AgentId,
            "dimensions" => Self::Dimensions,
            "declared_findings" => Self::Declared,
            "findings" => Self::Findings,
            "truncated" => Self::Truncated,
            "id" => Self::Id,
            "title" => Self::Title,
            "lines" => Self::Lines,
            "last_line" => Self::LastLine,
            name => Self::Of(Field::ALL.into_iter().find(|field| field.name() == name)?),
        })
    }

    /// Whether it is a field of a result, not of a finding.
    pub(super) fn is_of_header(self) -> bool {
        matches!(self, Self::AgentId | Self::Dimensions | Self::Declared)
    }

    /// Whether it is a field of a finding other than its id and title.
    pub(super) fn is_of_finding(self) -> bool {
        matches!(self, Self::Lines | Self::LastLine | Self::Of(_))
    }
}
