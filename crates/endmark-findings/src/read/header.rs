//! What a result says of itself: whose it is, what was looked into, how many findings there are.

use crate::escapes;
use crate::narrow::narrow;
use crate::stand_in::{is_nothing, is_placeholder};

use crate::ReadFinding;

use super::checkpoint::list;
use super::names::Key;
use super::number::number;

/// What a result says before its findings, or behind them.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) agent_id: Option<String>,
    /// `<your agent id>`: the agent has left the template as it was.
    pub(super) is_agent_open: bool,
    pub(super) dimensions: Option<Vec<String>>,
    pub(super) declared: Option<u32>,
    /// Whether signs are written as `\u{1b}`: only our own writer says that.
    pub(super) is_escaped: bool,
}

impl Header {
    /// What has not been said.
    pub(super) fn lacks(&self) -> Vec<Key> {
        let known = [
            (Key::AgentId, self.agent_id.is_some()),
            (Key::Dimensions, self.dimensions.as_ref().is_some_and(|list| !list.is_empty())),
            (Key::Declared, self.declared.is_some()),
        ];
        known.into_iter().filter(|(_, is_there)| !is_there).map(|(key, _)| key).collect()
    }

    /// Takes a value; not if there is one.
    pub(super) fn set(&mut self, key: Key, value: &str) -> bool {
        if key == Key::Escapes {
            return !std::mem::replace(&mut self.is_escaped, value == escapes::FIELD.1);
        }
        if !self.lacks().contains(&key) {
            return false;
        }
        match key {
            Key::AgentId => {
                let value = value.trim_matches(['`', '*', '"']).trim();
                self.is_agent_open = is_placeholder(value) && value.contains(' ');
                let is_said = !value.is_empty() && !self.is_agent_open && !is_nothing(value);
                self.agent_id = is_said.then(|| value.to_owned());
            }
            Key::Dimensions => self.dimensions = Some(list(value)),
            _ => {
                let value = narrow(value);
                let digits = value.trim_matches(|character: char| !character.is_ascii_digit());
                self.declared = number(digits).and_then(|(number, rest)| rest.is_empty().then_some(number));
            }
        }
        true
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

    /// Takes back the escapes in it, and in the findings, where there are any.
    pub(super) fn unescape(&mut self, findings: &mut [ReadFinding]) {
        if !self.is_escaped {
            return;
        }
        for text in self.agent_id.iter_mut().chain(self.dimensions.iter_mut().flatten()) {
            *text = escapes::unescaped(text);
        }
        for read in findings {
            read.finding.unescape();
        }
    }
}
