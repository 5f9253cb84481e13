//! The header of a result: its agent, dimensions and number of findings. (AR-1)

use super::checkpoint::{list, number};
use super::key::Key;
use crate::stand_in::{is_nothing, is_placeholder};
use crate::unknown_fields::OtherFields;

#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) agent_id: Option<String>,
    pub(super) dimensions: Option<Vec<String>>,
    pub(super) declared: Option<u32>,
    /// Unknown fields.
    pub(super) other: OtherFields,
    last_value: &'static str,
}

impl Header {
    /// Sets a value. Returns `false` if one is already set or the header has no such field.
    pub(super) fn set(&mut self, key: Key, value: &str) -> bool {
        match key {
            Key::AgentId if self.agent_id.is_none() => {
                let value = value.trim_matches(['`', '*', '"']).trim();
                // `<your agent id>`: the agent did not fill in the template.
                let is_open = is_placeholder(value) && value.contains(' ');
                // `auth-2, dimensions: a` contains more than a name.
                let is_name = !value.contains(": ");
                let is_said = !value.is_empty() && !is_open && !is_nothing(value) && is_name;
                self.agent_id = is_said.then(|| value.to_owned());
            }
            Key::Dimensions if self.dimensions.as_ref().is_none_or(Vec::is_empty) => {
                self.dimensions = Some(list(value));
            }
            Key::Declared if self.declared.is_none() => self.declared = number(value),
            _ => return false,
        }
        self.last_value = match key {
            Key::AgentId => "agent_id",
            Key::Dimensions => "dimensions",
            _ => "declared_findings",
        };
        true
    }

    /// Sets an unknown field, unless its name is already present.
    pub(super) fn set_other(&mut self, name: &str, value: &str) -> bool {
        self.other.set(name, value, self.last_value)
    }

    /// Continues the last value.
    pub(super) fn append(&mut self, key: Key, more: &str) {
        match key {
            Key::Dimensions => self.dimensions.get_or_insert_default().extend(list(more)),
            Key::AgentId if self.agent_id.is_none() => self.agent_id = Some(more.to_owned()),
            _ => {}
        }
    }

    /// Removes a value.
    pub(super) fn forget(&mut self, key: Key) {
        match key {
            Key::AgentId => self.agent_id = None,
            Key::Dimensions => self.dimensions = None,
            Key::Declared => self.declared = None,
            _ => {}
        }
    }
}
