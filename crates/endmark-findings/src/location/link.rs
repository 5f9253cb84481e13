//! The links of Markdown in a location. (AR-1)

use std::borrow::Cow;

use super::{Named, named};

/// A text with each link's own text in place of the link. Lines that only its target names stand behind that:
/// `[src/a.rs](src/a.rs#L10-L20)`; where the text names no file, the target does.
pub(super) fn unlinked(text: &str) -> Cow<'_, str> {
    let Some(link) = Link::first(text) else { return Cow::Borrowed(text) };
    let before = &text[..link.begins];
    Cow::Owned(format!("{before}{}{}", link.said(), unlinked(&text[link.ends..])))
}

struct Link<'a> {
    begins: usize,
    ends: usize,
    text: &'a str,
    target: &'a str,
}

impl<'a> Link<'a> {
    fn first(text: &'a str) -> Option<Self> {
        text.match_indices("](").find_map(|(closes, _)| {
            let begins = opening(&text[..closes])?;
            let behind = &text[closes + 2..];
            let length = behind.find(')')?;
            let target = behind[..length].split_whitespace().next()?;
            Some(Self { begins, ends: closes + 2 + length + 1, text: &text[begins + 1..closes], target })
        })
    }

    fn said(&self) -> Cow<'a, str> {
        let target = self.target.trim_matches(['<', '>']);
        match (named(self.text), named(target)) {
            (Named::Place(place, _), Named::Place(linked, _)) if place.lines.is_none() => {
                match linked.lines {
                    Some(lines) => Cow::Owned(format!("{}#L{}-L{}", self.text, lines.start, lines.end)),
                    None => Cow::Borrowed(self.text),
                }
            }
            (Named::Words, Named::Place(linked, _)) if linked.lines.is_some() => {
                Cow::Owned(format!("{} ({target})", self.text))
            }
            _ => Cow::Borrowed(self.text),
        }
    }
}

/// Where the bracket opens that closes at the end of a text.
fn opening(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    for (at, sign) in text.char_indices().rev() {
        match sign {
            ']' => open += 1,
            '[' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}
