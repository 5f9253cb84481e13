//! Answers that exceed an envelope: lists are split into pages, and texts are omitted (EN-5).

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

use endmark_envelope::{FieldPath, Warning};
use endmark_failure::CommandError;
use serde::Serialize;

use crate::context::Context;
use crate::view::answer::PagedList;

/// The identity of a list. A cursor of any other list is rejected.
pub(super) struct ListIdentity<'a> {
    pub(super) command: &'static str,
    pub(super) files: &'a [PathBuf],
    /// Other inputs that affect the list, such as the team.
    pub(super) options: Option<&'a dyn Debug>,
    pub(super) cursor: Option<&'a str>,
}

impl ListIdentity<'_> {
    /// Returns the list in pages. Fails if a cursor is given without `--json`, because only the envelope has pages.
    pub(super) fn into_pages(self, list: FieldPath, context: &Context) -> Result<PagedList, CommandError> {
        if self.cursor.is_some() && !context.global.json {
            return Err(CommandError::input(
                "usage",
                "--cursor needs --json, which is missing",
                "Add --json, or omit --cursor: without --json the whole list is printed at once.",
            ));
        }
        let mut next_command = vec![OsString::from(self.command)];
        next_command.extend(self.files.iter().map(|file| file.clone().into_os_string()));
        // The content of the team file counts, not only its name.
        next_command.extend(self.options.map(|with| OsString::from(format!("{with:?}"))));
        Ok(PagedList { list, identity: next_command, cursor: self.cursor.map(str::to_owned) })
    }
}

/// Maximum size of a nested list in one item, in bytes. A longer list is split into several items.
const MAX_ITEM_BYTES: usize = 500_000;

/// Splits the list into pieces that each fit into a page, with the index of the first element of each.
///
/// There is always at least one piece.
pub(super) fn split_list<T: Serialize>(list: Vec<T>) -> Result<Vec<(usize, Vec<T>)>, CommandError> {
    let mut pieces = vec![(0, Vec::new())];
    let mut bytes = 0;
    for (at, item) in list.into_iter().enumerate() {
        let text = serde_json::to_vec(&item).map_err(|error| CommandError::Bug(error.to_string()))?;
        bytes += text.len() + 1;
        match pieces.last_mut() {
            Some((_, piece)) if piece.is_empty() || bytes <= MAX_ITEM_BYTES => piece.push(item),
            _ => {
                bytes = text.len() + 1;
                pieces.push((at, vec![item]));
            }
        }
    }
    Ok(pieces)
}

/// Maximum size of a text that repeats all findings and is included beside their list, in bytes.
///
/// A larger text is omitted, and the list is split into pages.
const MAX_TEXT_BESIDE_LIST_BYTES: usize = 200_000;

/// Returns the text. If an envelope is requested and the text is too large, returns a warning instead.
pub(super) fn text_unless_paged<'t>(text: &'t str, context: &Context) -> (Option<&'t str>, Option<Warning>) {
    if text.len() <= MAX_TEXT_BESIDE_LIST_BYTES {
        return (Some(text), None);
    }
    let message =
        "the text is omitted because the findings are split into pages: without --json it is complete";
    (None, context.global.json.then(|| Warning::truncation("TEXT_LEFT_OUT", message)))
}

#[cfg(test)]
mod tests {
    use super::split_list;

    #[test]
    fn only_a_list_too_long_for_an_item_is_split() {
        let of = |sizes: &[usize]| -> Vec<(usize, usize)> {
            let texts = sizes.iter().map(|size| "x".repeat(*size)).collect();
            split_list::<String>(texts)
                .unwrap()
                .into_iter()
                .map(|(from, piece)| (from, piece.len()))
                .collect()
        };
        assert_eq!(of(&[]), [(0, 0)]);
        assert_eq!(of(&[10; 3]), [(0, 3)]);
        assert_eq!(of(&[200_000; 5]), [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(of(&[10, 900_000, 10]), [(0, 1), (1, 1), (2, 1)]);
    }
}
