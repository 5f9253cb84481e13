//! Selects lines of an output while it is read, by number or by a regular expression.

use std::ops::ControlFlow;

use regex::bytes::{Regex, RegexBuilder};

use super::{Excerpt, ExcerptError, PartContent, PartError, PartLocation, value_path};
use crate::cap::{CapError, Capper, Limits, RequestedFormat};

/// Maximum memory in bytes for a compiled regular expression.
const MAX_PATTERN_MEMORY_BYTES: usize = 4 << 20;

/// Selects lines, and caps the selection like an output.
#[derive(Debug)]
pub struct LineSelector {
    selection: LineSelection,
    capper: Capper,
}

#[derive(Debug)]
enum LineSelection {
    Between([u64; 2]),
    Matching { pattern: Regex, matches: u64 },
}

impl LineSelector {
    /// Selects the lines between two numbers, including both.
    pub fn line_range(lines: [u64; 2], limits: &Limits) -> Result<Self, ExcerptError> {
        Ok(Self { selection: LineSelection::Between(lines), capper: line_capper(limits)? })
    }

    /// Selects the lines that match a regular expression. Each of them is preceded by its number.
    pub fn matching(pattern: &str, limits: &Limits) -> Result<Self, ExcerptError> {
        let regex = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_MEMORY_BYTES).build();
        let pattern = regex.map_err(|error| PartError::Pattern(error.to_string()))?;
        Ok(Self { selection: LineSelection::Matching { pattern, matches: 0 }, capper: line_capper(limits)? })
    }

    /// Adds a line to the selection if it is wanted. `number` counts from 1, and `line` includes the line
    /// break.
    ///
    /// A very long line may arrive in parts. Returns [`ControlFlow::Break`] if no later line can be selected.
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

    /// Returns the selected lines.
    pub fn finish(self) -> Result<Excerpt, CapError> {
        let place = match self.selection {
            LineSelection::Between(lines) => PartLocation::Lines(lines),
            LineSelection::Matching { matches, .. } => PartLocation::Matches(matches),
        };
        Ok(Excerpt { content: PartContent::Capped(self.capper.finish()?), location: place })
    }
}

fn line_capper(limits: &Limits) -> Result<Capper, CapError> {
    Ok(Capper::new(RequestedFormat::Auto, limits.clone())?.with_path(value_path()))
}
