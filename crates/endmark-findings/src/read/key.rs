//! The names of fields. (AR-1)

use crate::Field;
use crate::vocabulary::{folded, list_of};

/// What a field can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    AgentId,
    Dimensions,
    Declared,
    /// The findings of a result in JSON.
    Findings,
    /// Whether a result in JSON was cut.
    Truncated,
    /// The name of a finding, where it is a field like others.
    Id,
    /// What is wrong, where it is a field like others.
    Title,
    /// Lines of the file that `location` names.
    Lines,
    /// The last of these lines, where that is a field of its own.
    LastLine,
    Of(Field),
    /// A name that is not known, whose value may follow on the next lines.
    Unknown,
}

impl Key {
    /// The field of this name; what stands in parentheses is said about it: `Source (user input)`.
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

    /// Whether it is said of a result, and not of a finding.
    pub(super) fn is_of_header(self) -> bool {
        matches!(self, Self::AgentId | Self::Dimensions | Self::Declared)
    }

    /// Whether it says something of a finding besides its name and title.
    pub(super) fn is_of_finding(self) -> bool {
        matches!(self, Self::Lines | Self::LastLine | Self::Of(_))
    }
}
