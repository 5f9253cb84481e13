//! What a result says of itself: whose it is, what was looked into, how many findings there are. (AR-1)

use super::checkpoint::{list, number};
use super::key::Key;
use crate::other::OtherFields;
use crate::stand_in::{is_nothing, is_placeholder};

#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) agent_id: Option<String>,
    pub(super) dimensions: Option<Vec<String>>,
    pub(super) declared: Option<u32>,
    /// Fields that are not known.
    pub(super) other: OtherFields,
    said_last: &'static str,
}

impl Header {
    /// Takes a value; not if there is one.
    pub(super) fn set(&mut self, key: Key, value: &str) -> bool {
        match key {
            Key::AgentId if self.agent_id.is_none() => {
                let value = value.trim_matches(['`', '*', '"']).trim();
                // `<your agent id>`: the agent has left the template as it was.
                let is_open = is_placeholder(value) && value.contains(' ');
                // `auth-2, dimensions: a` is more than a name.
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
        self.said_last = match key {
            Key::AgentId => "agent_id",
            Key::Dimensions => "dimensions",
            _ => "declared_findings",
        };
        true
    }

    /// Takes a field that is not known, unless its name is there already.
    pub(super) fn set_other(&mut self, name: &str, value: &str) -> bool {
        self.other.set(name, value, self.said_last)
    }

    /// Goes on with what was said last.
    pub(super) fn go_on(&mut self, key: Key, more: &str) {
        match key {
            Key::Dimensions => self.dimensions.get_or_insert_default().extend(list(more)),
            Key::AgentId if self.agent_id.is_none() => self.agent_id = Some(more.to_owned()),
            _ => {}
        }
    }

    /// Takes a value back.
    pub(super) fn forget(&mut self, key: Key) {
        match key {
            Key::AgentId => self.agent_id = None,
            Key::Dimensions => self.dimensions = None,
            Key::Declared => self.declared = None,
            _ => {}
        }
    }
}
