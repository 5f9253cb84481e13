//! Paths such as `choices[0].message["odd key"]`.

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'p> {
    /// Into the field of this name.
    Field(&'p str),
    /// Into the item at this position.
    Item(usize),
    /// A syntax error in the path. It matches nothing.
    Invalid,
}

/// The steps of a path, one after another.
#[derive(Debug, Clone)]
pub struct Steps<'p> {
    remaining: &'p str,
    first: bool,
}

impl<'p> Steps<'p> {
    /// The steps of this path.
    pub fn new(path: &'p str) -> Self {
        Self { remaining: path, first: true }
    }
}

impl<'p> Iterator for Steps<'p> {
    type Item = Step<'p>;

    fn next(&mut self) -> Option<Step<'p>> {
        if self.remaining.is_empty() {
            return None;
        }
        let step = split_bracketed(self.remaining).or_else(|| {
            let named = if self.first { self.remaining } else { self.remaining.strip_prefix('.')? };
            let length = named.find(['.', '[']).unwrap_or(named.len());
            let (name, rest) = named.split_at(length);
            (!name.is_empty()).then_some((Step::Field(name), rest))
        });
        self.first = false;
        let (step, rest) = step.unwrap_or((Step::Invalid, ""));
        self.remaining = rest;
        Some(step)
    }
}

/// Splits `[0]` or `["odd key"]` from the rest of a path. The name must not contain quotes.
fn split_bracketed(path: &str) -> Option<(Step<'_>, &str)> {
    let inside = path.strip_prefix('[')?;
    if let Some(quoted) = inside.strip_prefix('"') {
        let (name, rest) = quoted.split_once("\"]")?;
        return Some((Step::Field(name), rest));
    }
    let (digits, rest) = inside.split_once(']')?;
    Some((Step::Item(digits.parse().ok()?), rest))
}
