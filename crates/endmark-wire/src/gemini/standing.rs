//! Parts that are held back next to a text, and keep their place where that text goes on.

use std::collections::VecDeque;

use super::candidate::{SIGNATURE, is_thought, parts, signature_of, text_of};
use super::response::signed_part;
use crate::edit::Edits;
use crate::json::{Kind, Value};

/// Thoughts and signatures of one candidate that are held back, each with the number of bytes of the held text before it.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) choice: u32,
    /// How much of the text was written.
    written: usize,
    parts: VecDeque<(usize, String)>,
}

impl Standing {
    /// What stands in the candidates that are held back of this choice, in their order.
    pub(super) fn of<'a>(choice: u32, held: impl Iterator<Item = Value<'a>>) -> Self {
        let mut standing = Self { choice, written: 0, parts: VecDeque::new() };
        let mut before = 0;
        for part in held.flat_map(parts) {
            if is_thought(part) {
                standing.parts.push_back((before, part.raw().to_owned()));
            } else if let Some(text) = text_of(part) {
                before += text.text().map_or(0, |text| text.len());
                let signed = signature_of(part).map(|signature| (before, signed_part(&signature)));
                standing.parts.extend(signed);
            }
        }
        standing
    }

    /// The next piece of the text: as much of it as stands before the next part, and that part if it is all there is
    /// before it. Nothing is left where both are empty.
    pub(super) fn next<'t>(&mut self, rest: &mut &'t str) -> (&'t str, Option<String>) {
        let due = self.parts.front().map(|(before, _)| before.saturating_sub(self.written));
        let Some(due) = due.filter(|due| *due <= rest.len()) else {
            self.written += rest.len();
            return (std::mem::take(rest), None);
        };
        // The text may have become another one: a part never divides a character.
        let due = (due..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (before, behind) = rest.split_at_checked(due).unwrap_or((rest, ""));
        *rest = behind;
        self.written += before.len();
        (before, self.parts.pop_front().map(|(_, part)| part))
    }

    /// Those that did not get their turn, since the text is shorter than it was.
    pub(super) fn left(&mut self) -> impl Iterator<Item = String> + '_ {
        self.parts.drain(..).map(|(_, part)| part)
    }
}

/// Takes out of a candidate what was written in its place.
pub(super) fn take_out<'a>(edits: &mut Edits<'a>, candidate: Value<'a>) {
    let Some(array) = candidate.at("content.parts").and_then(|parts| parts.of_kind(Kind::Array)) else {
        return;
    };
    for (position, part) in array.items().enumerate() {
        if is_thought(part) {
            edits.remove_item(array, position);
        } else if text_of(part).is_some() {
            for name in SIGNATURE {
                edits.remove_field(part, name);
            }
        }
    }
}
