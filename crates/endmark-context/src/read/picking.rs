//! Picks lines from an output as it is read: by number, or by a pattern.

use std::ops::ControlFlow;

use regex::bytes::{Regex, RegexBuilder};

use super::{Content, Excerpt, ExcerptError, PartError, Place, value_path};
use crate::cap::{CapError, Capper, Limits, RequestedFormat};

/// Most memory for a compiled pattern.
const PATTERN_BYTES: usize = 4 << 20;

/// Picks lines, and caps them like an output.
#[derive(Debug)]
pub struct Picking {
    selection: LineSelection,
    capper: Capper,
}

#[derive(Debug)]
enum LineSelection {
    Between([u64; 2]),
    Matching { pattern: Regex, matches: u64 },
}

impl Picking {
    /// Picks the lines between two numbers, inclusive.
    pub fn line_range(lines: [u64; 2], limits: &Limits) -> Result<Self, ExcerptError> {
        Ok(Self { selection: LineSelection::Between(lines), capper: capper(limits)? })
    }

    /// Picks the lines that match a regular expression, and puts its number before each of them.
    pub fn matching(pattern: &str, limits: &Limits) -> Result<Self, ExcerptError> {
        let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        let pattern = regex.map_err(|error| PartError::Pattern(error.to_string()))?;
        Ok(Self { selection: LineSelection::Matching { pattern, matches: 0 }, capper: capper(limits)? })
    }

    /// Examines a line. Its number is counted from 1, and its line break is included.
    ///
    /// A very long line may arrive in parts. Returns whether further lines may match.
    pub fn push_line(&mut self, number: u64, line: &[u8]) -> Result<ControlFlow<()>, CapError> {
        match &mut self.selection {
            LineSelection::Between([_, to]) if number > *to => return Ok(ControlFlow::Break(())),
            LineSelection::Between([from, _]) if number < *from => {}
            LineSelection::Between(_) => self.capper.push(line)?,
            LineSelection::Matching { pattern, matches } => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                if pattern.is_match(line.strip_suffix(b"\r").unwrap_or(line)) {
                    *matches += 1;
                    self.capper.push(format!("{number}:").as_bytes())?;
                    self.capper.push(line)?;
                    self.capper.push(b"\n")?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the picked lines.
    pub fn finish(self) -> Result<Excerpt, CapError> {
        let place = match self.selection {
            LineSelection::Between(lines) => Place::Lines(lines),
            LineSelection::Matching { matches, .. } => Place::Matches(matches),
        };
        Ok(Excerpt { content: Content::Capped(self.capper.finish()?), place })
    }
}

fn capper(limits: &Limits) -> Result<Capper, CapError> {
    Ok(Capper::new(RequestedFormat::Auto, limits.clone())?.with_path(value_path()))
}
