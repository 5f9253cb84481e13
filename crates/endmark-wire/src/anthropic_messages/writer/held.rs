//! Held blocks around a call that may be cut. Each block is written at its original position.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::MessageWriter;
use crate::edit::Edits;
use crate::json::Value;
use crate::reply::{Event, Piece, ToolCall};
use crate::sse::Frame;

impl MessageWriter {
    /// Returns a held frame with the client's number of its block.
    pub(super) fn pass_held(&mut self, frame: &Frame) -> Vec<u8> {
        let own = self.client_numbers.as_ref().and_then(|_| block_number(frame));
        let given = self.client_numbers.as_mut().zip(own).and_then(|(numbers, own)| {
            if begins_block(frame) {
                numbers.insert(own, self.next_block);
            }
            numbers.get(&own).copied()
        });
        let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
        let (Some(root), Some(given)) = (root, given.filter(|given| own != Some(*given))) else {
            self.note(frame);
            return frame.raw.clone();
        };
        let mut edits = Edits::for_document(root);
        edits.set_field(root, "index", &given.to_string());
        let bytes = frame.with_data(&edits.finish());
        self.note(&Frame::read(bytes.clone()));
        bytes
    }

    /// Returns all held blocks that the client has not begun to receive. The blocks that it has begun to
    /// receive were closed.
    pub(super) fn pass_blocks(&mut self, held: &[(Frame, Event)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut started = HashSet::new();
        for (frame, _) in held {
            let Some(block) = block_number(frame) else { continue };
            if begins_block(frame) {
                started.insert(block);
            }
            if started.contains(&block) {
                bytes.extend(self.pass_held(frame));
            }
        }
        bytes
    }

    /// Returns a held call with these arguments, if the client has not begun to receive it. The held blocks
    /// before it come first. Returns `None` if its block is not held.
    pub(super) fn write_held_call(&mut self, call: &ToolCall) -> Option<Vec<u8>> {
        self.held.group_frames(|frame, _| block_number(frame));
        let position = self.held.events().position(|event| has_piece_of(event, call.index))?;
        let held = self.held.take_first(position);
        let block = self.held.frames().next().and_then(block_number);
        let own = self.held.take_while(|frame, _| block.is_some() && block_number(frame) == block);
        let mut bytes = self.end_blocks();
        bytes.extend(self.pass_blocks(&held));
        let came = own.iter().flat_map(|(_, event)| &event.pieces).filter_map(|delta| match &delta.piece {
            Piece::ToolCall { arguments, .. } => Some(arguments.as_str()),
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Refusal(_) => None,
        });
        if came.collect::<String>() == call.arguments {
            bytes.extend(self.pass_blocks(&own));
        } else {
            bytes.extend(self.write_call(call));
        }
        Some(bytes)
    }

    /// Removes the held blocks of these calls, and the held rest of calls that are open. Returns the calls
    /// that were held from their beginning.
    pub(super) fn remove_calls(&mut self, calls: &BTreeSet<u32>, open: &HashMap<u32, u64>) -> Vec<u32> {
        let held = self.held.take();
        let started = held.iter().filter(|(frame, _)| begins_block(frame)).filter_map(|(frame, event)| {
            let call = event.pieces.iter().find_map(|delta| piece_call(&delta.piece))?;
            let is_it = calls.contains(&call) && !open.contains_key(&call);
            is_it.then_some((block_number(frame)?, call))
        });
        let started: HashMap<u64, u32> = started.collect();
        let open: HashSet<u64> = open.values().copied().collect();
        let is_out = |block: u64| started.contains_key(&block) || open.contains(&block);
        let remaining =
            held.into_iter().filter(|(frame, _)| !block_number(frame).is_some_and(is_out)).collect();
        self.held.put_back(remaining);
        if !started.is_empty() {
            self.client_numbers.get_or_insert_default();
        }
        started.into_values().collect()
    }

    /// Returns a call in a block of its own.
    pub(super) fn write_call(&mut self, call: &ToolCall) -> Vec<u8> {
        let mut bytes = self.begin_call(call);
        bytes.extend(self.end_blocks());
        bytes
    }
}

pub(super) fn begins_block(frame: &Frame) -> bool {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.is_some_and(|root| root.has_text("type", "content_block_start"))
}

/// Returns the number of the block that a frame belongs to.
pub(super) fn block_number(frame: &Frame) -> Option<u64> {
    Value::parse_str(frame.data.as_deref()?).ok()?.field("index").and_then(Value::as_u64)
}

fn has_piece_of(event: &Event, call: u32) -> bool {
    event.pieces.iter().any(|delta| piece_call(&delta.piece) == Some(call))
}

/// Returns the number of the call that a piece belongs to.
fn piece_call(piece: &Piece) -> Option<u32> {
    if let Piece::ToolCall { index, .. } = piece { Some(*index) } else { None }
}
