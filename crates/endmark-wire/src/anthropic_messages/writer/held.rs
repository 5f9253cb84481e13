//! Blocks that are held back, with a call that may be cut before them or in them: each is written where it stands.

use super::MessageWriter;
use crate::edit::Edits;
use crate::json::Value;
use crate::reply::{Event, Piece, ToolCall};
use crate::sse::Frame;

impl MessageWriter {
    /// A frame that was held back, under the number that its block has for the client.
    pub(super) fn pass_held(&mut self, frame: &Frame) -> Vec<u8> {
        let own = self.numbers.as_ref().and_then(|_| block_of(frame));
        let given = self.numbers.as_mut().zip(own).and_then(|(numbers, own)| {
            if begins_block(frame) {
                numbers.retain(|(known, _)| *known != own);
                numbers.push((own, self.next));
            }
            numbers.iter().find(|(known, _)| *known == own).map(|(_, given)| *given)
        });
        let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
        let (Some(root), Some(given)) = (root, given.filter(|given| own != Some(*given))) else {
            self.note(frame);
            return frame.raw.clone();
        };
        let mut edits = Edits::of(root);
        edits.set_field(root, "index", &given.to_string());
        let bytes = frame.with_data(&edits.finish());
        self.note(&Frame::read(bytes.clone()));
        bytes
    }

    /// Of what is held back, all blocks that the client has nothing of; what it has a block's beginning of was closed.
    pub(super) fn pass_blocks(&mut self, held: &[(Frame, Event)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut begun = Vec::new();
        for (frame, _) in held {
            let Some(block) = block_of(frame) else { continue };
            if begins_block(frame) {
                begun.push(block);
            }
            if begun.contains(&block) {
                bytes.extend(self.pass_held(frame));
            }
        }
        bytes
    }

    /// A call of which the client has nothing, and whose block is held back: with these arguments, and before it the blocks
    /// in front of it. None where no block of it is held.
    pub(super) fn held_call(&mut self, call: &ToolCall) -> Option<Vec<u8>> {
        let mut held = self.held.take();
        let Some(position) = held.iter().position(|(_, event)| has_piece_of(event, call.index)) else {
            self.held.put_back(held);
            return None;
        };
        let behind = held.split_off(position);
        let block = behind.first().and_then(|(frame, _)| block_of(frame));
        let (own, rest): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|(frame, _)| block.is_some() && block_of(frame) == block);
        self.held.put_back(rest);
        let mut bytes = self.end_block();
        bytes.extend(self.pass_blocks(&held));
        let came = own.iter().flat_map(|(_, event)| &event.pieces).filter_map(|delta| match &delta.piece {
            Piece::ToolCall { arguments, .. } => Some(arguments.as_str()),
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Refusal(_) => None,
        });
        if came.collect::<String>() == call.arguments {
            bytes.extend(self.pass_blocks(&own));
        } else {
            bytes.extend(self.written_call(call));
        }
        Some(bytes)
    }

    /// Takes the block of a call that is held back out; answers whether there was one.
    pub(super) fn take_call_out(&mut self, call: u32) -> bool {
        let held = self.held.take();
        let begins = held.iter().find(|(frame, event)| begins_block(frame) && has_piece_of(event, call));
        let block = begins.and_then(|(frame, _)| block_of(frame));
        self.held.put_back(held);
        if let Some(block) = block {
            self.take_block_out(block);
            self.numbers.get_or_insert_default();
        }
        block.is_some()
    }

    /// Takes what is held back of the block of this number out.
    pub(super) fn take_block_out(&mut self, block: u64) {
        let mut held = self.held.take();
        held.retain(|(frame, _)| block_of(frame) != Some(block));
        self.held.put_back(held);
    }

    /// A block of its own for a call.
    pub(super) fn written_call(&mut self, call: &ToolCall) -> Vec<u8> {
        let mut bytes = self.begin_call(call);
        bytes.extend(self.end_block());
        bytes
    }
}

pub(super) fn begins_block(frame: &Frame) -> bool {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.is_some_and(|root| root.says("type", "content_block_start"))
}

/// The number of the block that a frame is of.
pub(super) fn block_of(frame: &Frame) -> Option<u64> {
    Value::parse_str(frame.data.as_deref()?).ok()?.field("index").and_then(Value::as_u64)
}

fn has_piece_of(event: &Event, call: u32) -> bool {
    let is_of = |piece: &Piece| matches!(piece, Piece::ToolCall { index, .. } if *index == call);
    event.pieces.iter().any(|delta| is_of(&delta.piece))
}
