//! Makes the ids of tool calls unique. Some servers restart their numbering in each response, so that a tool
//! result could be assigned to the wrong tool call.

use std::collections::{HashMap, HashSet};

use endmark_wire::reply::ToolCall;

/// The ids of a choice's tool calls.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used_ids: HashSet<String>,
    /// The last number appended to each id.
    numbers: HashMap<String, u32>,
}

impl CallIds {
    pub(super) fn new<'a>(calls: impl IntoIterator<Item = &'a ToolCall>) -> Self {
        let taken = calls.into_iter().filter_map(|call| call.id.clone()).collect();
        Self { used_ids: taken, numbers: HashMap::new() }
    }

    /// Gives a tool call a different id if an earlier one has the same id.
    pub(super) fn make_unique(&mut self, call: &mut ToolCall) {
        let Some(id) = call.id.clone() else { return };
        let mut own = id.clone();
        while !self.used_ids.insert(own.clone()) {
            let number = self.numbers.entry(id.clone()).or_insert(1);
            *number = number.saturating_add(1);
            own = format!("{id}_{number}");
        }
        call.id = Some(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_unique_id() {
        let call = |id: &str| ToolCall { id: Some(id.to_owned()), ..ToolCall::default() };
        let mut ids = CallIds::new(&[call("a"), call("a_2")]);
        let mut given = |id: &str| {
            let mut call = call(id);
            ids.make_unique(&mut call);
            call.id.unwrap()
        };
        assert_eq!([given("a"), given("b"), given("a"), given("b")], ["a_3", "b", "a_4", "b_2"]);
        assert_eq!(given("a_3"), "a_3_2");
    }
}
