//! Answers that are larger than an envelope: lists in pages, and what would stand beside them. (EN-5)

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

use endmark_envelope::{FieldPath, Warning};
use endmark_failure::CommandError;
use serde::Serialize;

use crate::context::Context;
use crate::view::answer::ListInPages;

/// What a list of an answer is of: a cursor of anything else is refused.
pub(super) struct Asked<'a> {
    pub(super) command: &'static str,
    pub(super) files: &'a [PathBuf],
    /// What else makes a difference, as who is in the team.
    pub(super) with: Option<&'a dyn Debug>,
    pub(super) cursor: Option<&'a str>,
}

impl Asked<'_> {
    /// Its list in pages. Fails where a page is asked for and the answer is not the envelope, which alone has pages.
    pub(super) fn in_pages(self, list: FieldPath, context: &Context) -> Result<ListInPages, CommandError> {
        if self.cursor.is_some() && !context.global.json {
            return Err(CommandError::input(
                "usage",
                "--cursor goes on with a page of --json, which is not asked for",
                "Add --json; or leave --cursor out: without --json everything is printed at once.",
            ));
        }
        let mut asked = vec![OsString::from(self.command)];
        asked.extend(self.files.iter().map(|file| file.clone().into_os_string()));
        // What is in the file counts, and not only what it is called.
        asked.extend(self.with.map(|with| OsString::from(format!("{with:?}"))));
        Ok(ListInPages { list, asked, cursor: self.cursor.map(str::to_owned) })
    }
}

/// How many bytes of a list within an item come with it: a longer list makes several items.
const MOST_IN_ITEM: usize = 500_000;

/// The list in pieces that each fit into a page, with the number of the first in each; one piece at least.
pub(super) fn pieces<T: Serialize>(list: Vec<T>) -> Result<Vec<(usize, Vec<T>)>, CommandError> {
    let mut pieces = vec![(0, Vec::new())];
    let mut bytes = 0;
    for (at, item) in list.into_iter().enumerate() {
        let text = serde_json::to_vec(&item).map_err(|error| CommandError::Bug(error.to_string()))?;
        bytes += text.len() + 1;
        match pieces.last_mut() {
            Some((_, piece)) if piece.is_empty() || bytes <= MOST_IN_ITEM => piece.push(item),
            _ => {
                bytes = text.len() + 1;
                pieces.push((at, vec![item]));
            }
        }
    }
    Ok(pieces)
}

/// A text that says all findings again stands beside the list of them only up to this size: else that comes in pages.
const MOST_BESIDE: usize = 200_000;

/// The text, or the warning that it is left out of the envelope, where that is asked for.
pub(super) fn beside_pages<'t>(text: &'t str, context: &Context) -> (Option<&'t str>, Option<Warning>) {
    if text.len() <= MOST_BESIDE {
        return (Some(text), None);
    }
    let message = "the text is left out, since the findings come in pages: without --json it is whole";
    (None, context.global.json.then(|| Warning::truncation("TEXT_LEFT_OUT", message)))
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn a_list_is_taken_apart_only_where_it_is_too_long_for_an_item() {
        let of = |sizes: &[usize]| -> Vec<(usize, usize)> {
            let texts = sizes.iter().map(|size| "x".repeat(*size)).collect();
            pieces::<String>(texts).unwrap().into_iter().map(|(from, piece)| (from, piece.len())).collect()
        };
        assert_eq!(of(&[]), [(0, 0)]);
        assert_eq!(of(&[10; 3]), [(0, 3)]);
        assert_eq!(of(&[200_000; 5]), [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(of(&[10, 900_000, 10]), [(0, 1), (1, 1), (2, 1)]);
    }
}
