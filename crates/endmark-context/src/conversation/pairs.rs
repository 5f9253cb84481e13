//! Finds the result of each call in a conversation (CX-3).

mod references;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Call, Content, Conversation, ToolResult};

/// The position of a part in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartPosition {
    /// Index of the turn.
    pub turn: usize,
    /// Index of the part in its turn.
    pub part: usize,
}

/// The pairs of calls and results in a conversation.
///
/// A result belongs to the newest earlier call with the same id that has no result yet, because agents reuse
/// ids.
///
/// If the call or the result has no id, the names must be the same. The result then belongs to a call without
/// a result: the first such call in the newest turn that has one. There may be other turns between call and
/// result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPairs {
    results: HashMap<PartPosition, PartPosition>,
    calls: HashMap<PartPosition, PartPosition>,
    unanswered_calls: Vec<PartPosition>,
    orphan_results: Vec<PartPosition>,
    steps: Vec<Vec<usize>>,
}

impl CallPairs {
    /// Finds the pairs of a conversation.
    pub fn of(conversation: &Conversation<'_>) -> Self {
        let mut pairs = Self::default();
        let mut open = OpenCalls::default();
        // Turns by the id of the item, and the turns that a later item connects.
        let (mut items, mut links) = (HashMap::new(), Vec::new());
        for (turn, standing) in conversation.turns.iter().enumerate() {
            for (part, content) in standing.parts.iter().enumerate() {
                let place = PartPosition { turn, part };
                match &content.content {
                    Content::Call(Call { id: Some(id), .. }) | Content::Reference { id } => {
                        items.insert(id.as_ref(), place);
                    }
                    Content::Server { follows: Some(id), .. } => {
                        links.extend(items.get(id.as_ref()).map(|item| (*item, turn)));
                    }
                    _ => {}
                }
                if let Some(call) = content.call() {
                    open.add(place, call);
                } else if let Some(result) = content.result() {
                    match open.take_call_of(result) {
                        Some(call) => {
                            pairs.results.insert(call, place);
                            pairs.calls.insert(place, call);
                        }
                        None => pairs.orphan_results.push(place),
                    }
                }
            }
        }
        pairs.unanswered_calls = open.remaining();
        let mut steps = references::reference_groups(conversation, &mut pairs.orphan_results);
        steps.extend(links.into_iter().map(|(item, turn)| {
            pairs.result_of(item).map(|result| result.turn).into_iter().chain([item.turn, turn]).collect()
        }));
        pairs.steps = join_groups(&steps);
        pairs
    }

    /// Returns the result of a call. Returns `None` if the call has none.
    pub fn result_of(&self, call: PartPosition) -> Option<PartPosition> {
        self.results.get(&call).copied()
    }

    /// Returns the call of a result. Returns `None` if the result has none.
    pub fn call_of(&self, result: PartPosition) -> Option<PartPosition> {
        self.calls.get(&result).copied()
    }

    /// Returns the pairs of call and result, in any order.
    pub fn pairs(&self) -> impl Iterator<Item = (PartPosition, PartPosition)> {
        self.results.iter().map(|(call, result)| (*call, *result))
    }

    /// Returns the calls without a result, in order.
    pub fn unanswered(&self) -> &[PartPosition] {
        &self.unanswered_calls
    }

    /// Returns the groups of turns that must be kept or dropped together, each in order. No turn is in two
    /// groups.
    ///
    /// A group consists of references to stored items and the results of calls that may be among these items,
    /// or of an approval, its answer, and the call that refers to it.
    pub fn turn_groups(&self) -> &[Vec<usize>] {
        &self.steps
    }

    /// Returns the results without a call, in order. A result is not included if a reference may be its call.
    pub fn orphan_results(&self) -> &[PartPosition] {
        &self.orphan_results
    }

    /// Whether this result has no call.
    pub fn is_orphan(&self, result: PartPosition) -> bool {
        self.orphan_results.binary_search(&result).is_ok()
    }
}

/// Joins groups that have a turn in common.
fn join_groups(steps: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut parents: Vec<usize> = (0..steps.len()).collect();
    let root = |parents: &mut [usize], mut step: usize| {
        while parents[step] != step {
            parents[step] = parents[parents[step]];
            step = parents[step];
        }
        step
    };
    let mut step_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (step, turns) in steps.iter().enumerate() {
        for turn in turns {
            let own = root(&mut parents, step);
            let other = root(&mut parents, *step_of.entry(*turn).or_insert(own));
            parents[own] = other;
        }
    }
    let mut joined: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (turn, step) in step_of {
        joined.entry(root(&mut parents, step)).or_default().push(turn);
    }
    joined.into_values().collect()
}

/// The calls that have no result yet.
#[derive(Debug, Default)]
struct OpenCalls<'c> {
    by_id: HashMap<&'c str, Vec<PartPosition>>,
    /// The same calls by name, for pairs in which the call or the result has no id.
    by_name: HashMap<&'c str, Vec<OpenCall>>,
    answered_calls: HashSet<PartPosition>,
    calls: Vec<PartPosition>,
}

#[derive(Debug, Clone, Copy)]
struct OpenCall {
    place: PartPosition,
    has_id: bool,
}

impl<'c> OpenCalls<'c> {
    fn add(&mut self, place: PartPosition, call: &'c Call<'_>) {
        if let Some(id) = call.id.as_deref() {
            self.by_id.entry(id).or_default().push(place);
        }
        self.by_name
            .entry(call.name.as_ref())
            .or_default()
            .push(OpenCall { place, has_id: call.id.is_some() });
        self.calls.push(place);
    }

    fn take_call_of(&mut self, result: &ToolResult<'_>) -> Option<PartPosition> {
        let found = match result.call_id.as_deref() {
            Some(id) => self.take_newest(id).or_else(|| self.take_named(result.name.as_deref()?, false)),
            None => self.take_named(result.name.as_deref()?, true),
        }?;
        self.answered_calls.insert(found);
        Some(found)
    }

    fn take_newest(&mut self, id: &str) -> Option<PartPosition> {
        let places = self.by_id.get_mut(id)?;
        while let Some(place) = places.pop() {
            if !self.answered_calls.contains(&place) {
                return Some(place);
            }
        }
        None
    }

    /// Returns the first open call with this name in the newest turn that has one.
    fn take_named(&mut self, name: &str, with_ids: bool) -> Option<PartPosition> {
        let waiting = self.by_name.get_mut(name)?;
        waiting.retain(|call| !self.answered_calls.contains(&call.place));
        let fits = |call: &&OpenCall| with_ids || !call.has_id;
        let newest = waiting.iter().rfind(fits)?.place.turn;
        waiting.iter().filter(fits).find(|call| call.place.turn == newest).map(|call| call.place)
    }

    fn remaining(self) -> Vec<PartPosition> {
        self.calls.into_iter().filter(|place| !self.answered_calls.contains(place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Content, Part, Role, Turn};
    use super::*;

    fn conversation(parts: Vec<Content<'_>>) -> Conversation<'_> {
        let turn =
            |content| Turn { role: Role::Other, span: 0..0, parts: vec![Part { span: 0..0, content }] };
        Conversation { turns: parts.into_iter().map(turn).collect(), ..Conversation::default() }
    }

    fn call(id: &'static str, name: &'static str) -> Content<'static> {
        let id = (!id.is_empty()).then(|| id.into());
        Content::Call(Call { id, name: name.into(), arguments: "{}".into(), can_be_answered: true })
    }

    fn result(id: &'static str, name: &'static str) -> Content<'static> {
        let word = |word: &'static str| (!word.is_empty()).then(|| word.into());
        Content::Result(ToolResult { call_id: word(id), name: word(name), ..ToolResult::default() })
    }

    fn place(turn: usize) -> PartPosition {
        PartPosition { turn, part: 0 }
    }

    #[test]
    fn calls_and_results_are_paired_by_id() {
        let conversation = conversation(vec![
            call("a", "f"),
            call("b", "f"),
            Content::Text("typed meanwhile".into()),
            result("b", ""),
            result("a", ""),
            result("a", ""),
            call("a", "f"),
            result("a", ""),
            call("c", "f"),
        ]);
        let pairs = CallPairs::of(&conversation);
        let results = [0, 1, 6, 8].map(|turn| pairs.result_of(place(turn)).map(|place| place.turn));
        assert_eq!(results, [Some(4), Some(3), Some(7), None]);
        assert_eq!((pairs.orphan_results(), pairs.unanswered()), (&[place(5)][..], &[place(8)][..]));
    }

    #[test]
    fn calls_without_ids_are_paired_by_name_and_order() {
        let conversation = conversation(vec![
            call("", "f"),
            call("", "g"),
            result("", "g"),
            result("", "f"),
            result("", "f"),
            call("", "g"),
            result("x", "g"),
            call("id", "g"),
            result("y", "g"),
            result("", "g"),
        ]);
        let pairs = CallPairs::of(&conversation);
        let results = [0, 1, 5, 7].map(|turn| pairs.result_of(place(turn)).map(|place| place.turn));
        assert_eq!(results, [Some(3), Some(2), Some(6), Some(9)]);
        assert_eq!(pairs.orphan_results(), [place(4), place(8)]);
    }
}
