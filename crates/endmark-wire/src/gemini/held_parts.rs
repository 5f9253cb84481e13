//! Held thoughts and signatures, which keep their position when the text around them continues.

use std::collections::VecDeque;

use super::candidate::{SIGNATURE, is_thought, part_signature, part_text, parts};
use super::response::signature_part;
use crate::edit::Edits;
use crate::json::{Kind, Value};

/// The held thoughts and signatures of one candidate, each with the number of bytes of held text before it.
#[derive(Debug)]
pub(super) struct HeldSignatures {
    pub(super) choice: u32,
    /// The number of text bytes that were already written.
    written: usize,
    parts: VecDeque<(usize, String)>,
}

impl HeldSignatures {
    /// Collects the thoughts and signatures from the held candidates of this choice, in order.
    pub(super) fn collect<'a>(choice: u32, held: impl Iterator<Item = Value<'a>>) -> Self {
        let mut signatures = Self { choice, written: 0, parts: VecDeque::new() };
        let mut before = 0;
        for part in held.flat_map(parts) {
            if is_thought(part) {
                signatures.parts.push_back((before, part.raw().to_owned()));
            } else if let Some(text) = part_text(part) {
                before += text.text().map_or(0, |text| text.len());
                let signed = part_signature(part).map(|signature| (before, signature_part(&signature)));
                signatures.parts.extend(signed);
            }
        }
        signatures
    }

    /// Removes and returns the beginning of `rest` up to the position of the next held part, and that part if
    /// it was reached. Both are empty at the end.
    pub(super) fn next_piece<'t>(&mut self, rest: &mut &'t str) -> (&'t str, Option<String>) {
        let due = self.parts.front().map(|(before, _)| before.saturating_sub(self.written));
        let Some(due) = due.filter(|due| *due <= rest.len()) else {
            self.written += rest.len();
            return (std::mem::take(rest), None);
        };
        // The text may have changed, so move the position to the end of a character.
        let due = (due..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (before, after) = rest.split_at_checked(due).unwrap_or((rest, ""));
        *rest = after;
        self.written += before.len();
        (before, self.parts.pop_front().map(|(_, part)| part))
    }

    /// Removes and returns the parts that were not reached because the text became shorter.
    pub(super) fn take_remaining(&mut self) -> impl Iterator<Item = String> + '_ {
        self.parts.drain(..).map(|(_, part)| part)
    }
}

/// Removes the separately written parts from a candidate.
pub(super) fn remove_from<'a>(edits: &mut Edits<'a>, candidate: Value<'a>) {
    let Some(array) = candidate.at("content.parts").and_then(|parts| parts.as_kind(Kind::Array)) else {
        return;
    };
    for (position, part) in array.items().enumerate() {
        if is_thought(part) {
            edits.remove_item(array, position);
        } else if part_text(part).is_some() {
            for name in SIGNATURE {
                edits.remove_field(part, name);
            }
        }
    }
}
