//! Collects the header of a result: its agent, dimensions and number of findings. (AR-1)

use super::checkpoint::{parse_list, parse_number};
use super::key::Key;
use crate::placeholder::{is_placeholder, means_no_value};
use crate::unknown_fields::OtherFields;

#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) agent_id: Option<String>,
    pub(super) dimensions: Option<Vec<String>>,
    pub(super) declared: Option<u32>,
    /// The unknown fields.
    pub(super) other: OtherFields,
    last_field_name: &'static str,
}

impl Header {
    /// Sets a value. Returns `false` if one is already set or the header has no such field.
    pub(super) fn set(&mut self, key: Key, value: &str) -> bool {
        match key {
            Key::AgentId if self.agent_id.is_none() => {
                let value = value.trim_matches(['`', '*', '"']).trim();
                // `<your agent id>`: the agent did not fill in the template.
                let is_template = is_placeholder(value) && value.contains(' ');
                // `auth-2, dimensions: a` is more than a name.
                let is_name = !value.contains(": ");
                let is_stated = !value.is_empty() && !is_template && !means_no_value(value) && is_name;
                self.agent_id = is_stated.then(|| value.to_owned());
            }
            Key::Dimensions if self.dimensions.as_ref().is_none_or(Vec::is_empty) => {
                self.dimensions = Some(parse_list(value));
            }
            Key::Declared if self.declared.is_none() => self.declared = parse_number(value),
            _ => return false,
        }
        self.last_field_name = match key {
            Key::AgentId => "agent_id",
            Key::Dimensions => "dimensions",
            _ => "declared_findings",
        };
        true
    }

    /// Sets an unknown field, unless its name is already present. Returns whether it was set.
    pub(super) fn set_other(&mut self, name: &str, value: &str) -> bool {
        self.other.set(name, value, self.last_field_name)
    }

    /// Appends a line to the value of a field.
    pub(super) fn append(&mut self, key: Key, more: &str) {
        match key {
            Key::Dimensions => self.dimensions.get_or_insert_default().extend(parse_list(more)),
            Key::AgentId if self.agent_id.is_none() => self.agent_id = Some(more.to_owned()),
            _ => {}
        }
    }

    /// Removes the value of a field.
    pub(super) fn remove(&mut self, key: Key) {
        match key {
            Key::AgentId => self.agent_id = None,
            Key::Dimensions => self.dimensions = None,
            Key::Declared => self.declared = None,
            _ => {}
        }
    }
}
