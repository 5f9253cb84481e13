//! Parses paths such as `choices[0].message["odd key"]`.

/// A step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep<'p> {
    /// Into the field of this name.
    Field(&'p str),
    /// Into the item at this index.
    Item(usize),
    /// A syntax error in the path. It matches no value.
    Invalid,
}

/// An iterator over the steps of a path.
#[derive(Debug, Clone)]
pub struct PathSteps<'p> {
    remaining: &'p str,
    is_first: bool,
}

impl<'p> PathSteps<'p> {
    /// Creates an iterator over the steps of `path`.
    pub fn new(path: &'p str) -> Self {
        Self { remaining: path, is_first: true }
    }
}

impl<'p> Iterator for PathSteps<'p> {
    type Item = PathStep<'p>;

    fn next(&mut self) -> Option<PathStep<'p>> {
        if self.remaining.is_empty() {
            return None;
        }
        let step = split_bracketed(self.remaining).or_else(|| {
            let named = if self.is_first { self.remaining } else { self.remaining.strip_prefix('.')? };
            let length = named.find(['.', '[']).unwrap_or(named.len());
            let (name, rest) = named.split_at(length);
            (!name.is_empty()).then_some((PathStep::Field(name), rest))
        });
        self.is_first = false;
        let (step, rest) = step.unwrap_or((PathStep::Invalid, ""));
        self.remaining = rest;
        Some(step)
    }
}

/// Splits `[0]` or `["odd key"]` from the rest of a path. The name must not contain quotes.
fn split_bracketed(path: &str) -> Option<(PathStep<'_>, &str)> {
    let inside = path.strip_prefix('[')?;
    if let Some(quoted) = inside.strip_prefix('"') {
        let (name, rest) = quoted.split_once("\"]")?;
        return Some((PathStep::Field(name), rest));
    }
    let (digits, rest) = inside.split_once(']')?;
    Some((PathStep::Item(digits.parse().ok()?), rest))
}
