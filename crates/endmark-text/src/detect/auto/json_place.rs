//! Finds where JSON or tags may begin in a text.

use serde::{Deserialize, Serialize};

use super::super::markdown::{Blocks, FenceLanguage};
use super::OtherFormats;

/// A place where JSON may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JsonPlace {
    /// At the beginning of the text.
    First,
    /// At the beginning of a code fence that begins the text.
    FirstFence,
    /// At the beginning of a code fence that declares JSON.
    JsonFence,
    /// Anywhere else.
    Prose,
}

/// Looks for places where JSON may begin, and for lines that begin with a tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlaceFinder {
    /// Whether the current line contains only whitespace and quotation markers.
    blank_line: bool,
    /// Position of the first non-whitespace byte of the text.
    begun: Option<usize>,
}

impl Default for PlaceFinder {
    fn default() -> Self {
        Self { blank_line: true, begun: None }
    }
}

impl PlaceFinder {
    /// Reads bytes up to the first one where JSON may begin. Returns the number of bytes before it, and the
    /// kind of place. Starts to look for tags at each line that begins with one.
    pub(super) fn find(&mut self, bytes: &[u8], whole: &mut OtherFormats) -> (usize, Option<JsonPlace>) {
        let mut at = 0;
        while at < bytes.len() {
            let in_fence = whole.markdown.blocks().fence().is_some();
            if !self.blank_line {
                let found = if in_fence {
                    memchr::memchr2(b'\n', b'\r', &bytes[at..])
                } else {
                    memchr::memchr3(b'\n', b'\r', b'{', &bytes[at..])
                };
                let length = found.unwrap_or(bytes.len() - at);
                whole.push(&bytes[at..at + length]);
                at += length;
            }
            let Some(&byte) = bytes.get(at) else { break };
            if let Some(place) = self.json_place(byte, whole.markdown.blocks()) {
                return (at, Some(place));
            }
            if byte == b'<' && self.blank_line && !in_fence {
                whole.begin_tags(self.begun.is_none());
            }
            self.advance(byte, whole.markdown.position());
            whole.push(&bytes[at..=at]);
            at += 1;
        }
        (at, None)
    }

    fn advance(&mut self, byte: u8, offset: usize) {
        match byte {
            b'\n' | b'\r' => self.blank_line = true,
            b' ' | b'\t' => {}
            _ => {
                self.blank_line &= byte == b'>';
                self.begun.get_or_insert(offset);
            }
        }
    }

    /// Returns the place if JSON may begin with this byte.
    fn json_place(&self, byte: u8, blocks: &Blocks) -> Option<JsonPlace> {
        match (blocks.fence(), byte) {
            (None, b'{' | b'[') if self.begun.is_none() => Some(JsonPlace::First),
            (None, b'{') => Some(JsonPlace::Prose),
            (None, b'[') if self.blank_line => Some(JsonPlace::Prose),
            (Some(fence), b'{' | b'[') if self.blank_line && fence.empty => match fence.language {
                FenceLanguage::Other => None,
                _ if self.begun == Some(fence.start) => Some(JsonPlace::FirstFence),
                FenceLanguage::Json => Some(JsonPlace::JsonFence),
                FenceLanguage::Unsaid => Some(JsonPlace::Prose),
            },
            _ => None,
        }
    }

    /// Continues after bytes that were treated as JSON. `blank_line`: whether the last line of these bytes is
    /// blank.
    pub(super) fn resume(&mut self, blank_line: bool) {
        self.begun.get_or_insert(0);
        self.blank_line = blank_line;
    }
}
