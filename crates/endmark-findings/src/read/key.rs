//! Recognises field names. (AR-1)

use crate::Field;
use crate::vocabulary::{find_list, fold};

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
    Finding(Field),
    /// An unknown name. The next lines may continue its value.
    Unknown,
}

impl Key {
    /// Returns the field of this name. A remark in parentheses is ignored: `Source (user input)`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let name = name.split('(').next().unwrap_or(name);
        Some(match find_list("field", &fold(name))? {
            "agent_id" => Self::AgentId,
            "dimensions" => Self::Dimensions,
            "declared_findings" => Self::Declared,
            "findings" => Self::Findings,
            "truncated" => Self::Truncated,
            "id" => Self::Id,
            "title" => Self::Title,
            "lines" => Self::Lines,
            "last_line" => Self::LastLine,
            name => Self::Finding(Field::ALL.into_iter().find(|field| field.name() == name)?),
        })
    }

    /// Whether the field is part of a result's header, and not of a finding.
    pub(super) fn is_header_field(self) -> bool {
        matches!(self, Self::AgentId | Self::Dimensions | Self::Declared)
    }

    /// Whether the field is part of a finding, except its id and title.
    pub(super) fn is_finding_field(self) -> bool {
        matches!(self, Self::Lines | Self::LastLine | Self::Finding(_))
    }
}
