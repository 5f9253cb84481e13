//! Divides a list that does not fit into one response into pages. No item is omitted. (EN-5)
//!
//! An external command has no cursors. It runs again for each page, and the page starts after the last item
//! of the previous page. Therefore, items that are inserted before that item do not shift the pages. If that
//! item no longer exists, the response is an error, because the position is unknown.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use endmark_envelope::{
    CursorError, Document, ErrorBody, FieldPath, Page, Pages, Segment, Size, Warning, cap,
};
use endmark_failure::ExitStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Number of bytes in the digest of an item, enough to distinguish the items of a list.
const DIGEST_BYTES: usize = 8;
/// Number of bytes that are reserved for the warning about further items.
const RESERVED_BYTES: usize = 600;
/// Maximum number of bytes that the duration adds to a response.
const DURATION_BYTES: usize = 20;

/// A request for a page of a list.
#[derive(Debug)]
pub struct PageRequest<'a> {
    /// The path of the list in the response document.
    pub list: &'a FieldPath,
    /// The command that prints the list.
    pub command: &'a [OsString],
    /// The cursor that the previous page returned. `None` requests the first page.
    pub cursor: Option<&'a str>,
    /// Maximum size of the whole response in bytes.
    pub max_response_bytes: usize,
}

/// The last item of a page, as a cursor stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LastItem {
    index: usize,
    digest: String,
}

/// Error of a page that cannot be returned.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor is invalid or belongs to another list.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The output of the command no longer contains the list.
    #[error("the output no longer contains the list")]
    NoList,
    /// The list no longer contains the last item of the previous page.
    #[error("the list no longer contains the last item of the previous page")]
    ItemGone,
    /// An item cannot be serialised.
    #[error("an item cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl From<PageError> for ErrorBody {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Cursor(error) => Self::from(error).with_hint(
                "Begin again without --cursor, and pass on the `handle` of the warning about the list as it is.",
            ),
            PageError::NoList | PageError::ItemGone => {
                Self::new("LIST_CHANGED", ExitStatus::Negative.code(), error.to_string())
                    .about(FieldPath::root().key("cursor"))
                    .with_hint("Begin again without a cursor.")
            }
            PageError::Unwritable(_) => Self::new("bug", ExitStatus::Bug.code(), error.to_string()),
        }
    }
}

impl PageRequest<'_> {
    /// Fails if the cursor is invalid or belongs to another command.
    pub(crate) fn check(&self) -> Result<(), PageError> {
        self.last_item()?;
        Ok(())
    }

    fn pages(&self) -> Pages {
        Pages::of("exec")
            .filtered_by("command", &words_digest(self.command))
            .filtered_by("list", &self.list.to_string())
            .with_items(usize::MAX)
    }

    /// Returns the last item of the previous page. Returns `None` for the first page.
    fn last_item(&self) -> Result<Option<LastItem>, CursorError> {
        self.pages().decode_cursor(self.cursor)
    }
}

/// Returns the response with the requested page of the list. A first page that fits is returned unchanged,
/// and so is a response without the list.
pub(crate) fn paginate(mut document: Document, paging: &PageRequest<'_>) -> Result<Document, PageError> {
    let last = paging.last_item()?;
    let is_fitting = document.to_json().len() + DURATION_BYTES < paging.max_response_bytes;
    if last.is_none() && is_fitting {
        return Ok(document);
    }
    let in_data = paging.list.without_first();
    let Some(Value::Array(place)) = in_data.find_mut(&mut document.data) else {
        return if last.is_some() { Err(PageError::NoList) } else { Ok(document) };
    };
    let items = std::mem::take(place);
    let begin = match &last {
        Some(last) => 1 + find_last_item(&items, last).ok_or(PageError::ItemGone)?,
        None => 0,
    };
    let without_items = document.to_json().len();
    let mut room = paging.max_response_bytes.saturating_sub(without_items + RESERVED_BYTES);
    loop {
        let rows = items.iter().enumerate().skip(begin).map(|(index, item)| IndexedItem { index, item });
        let page = paging.pages().with_bytes(room).page(rows, IndexedItem::last);
        let page = page?;
        let shown = page_document(&document, paging.list, &items, begin, &page);
        let size = shown.to_json().len();
        if size + DURATION_BYTES < paging.max_response_bytes || page.items.len() <= 1 {
            return Ok(shown);
        }
        // The warnings about the items need more room than was reserved.
        room = room / 8 * 7;
    }
}

/// Like `paginate`, but shortens a single item that exceeds the limit, with a warning.
pub fn paginate_and_cap(document: Document, paging: &PageRequest<'_>) -> Result<Document, PageError> {
    Ok(cap(paginate(document, paging)?, paging.max_response_bytes))
}

/// An item of the list with its index.
struct IndexedItem<'a> {
    index: usize,
    item: &'a Value,
}

impl IndexedItem<'_> {
    fn last(&self) -> LastItem {
        LastItem { index: self.index, digest: digest(self.item.to_string().as_bytes()) }
    }
}

impl Serialize for IndexedItem<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.item.serialize(serializer)
    }
}

/// Builds the response with this page of items, the warnings about them, and the cursor of the next page.
fn page_document(
    document: &Document,
    list: &FieldPath,
    items: &[Value],
    begin: usize,
    page: &Page<IndexedItem<'_>>,
) -> Document {
    let end = begin + page.items.len();
    let mut shown = document.clone();
    shown.warnings =
        document.warnings.iter().filter_map(|warning| warning_on_page(warning, list, begin, end)).collect();
    let here = Value::Array(items[begin..end].to_vec());
    if let Some(cursor) = &page.next_cursor {
        let message = format!(
            "items {begin} to {} of {}; `--cursor` and the handle give the next",
            end - 1,
            items.len()
        );
        let all: Size = items.iter().map(|item| Size::of(&item.to_string())).fold(
            Size { bytes: 1, chars: 1 },
            |all, item| Size { bytes: all.bytes + item.bytes + 1, chars: all.chars + item.chars + 1 },
        );
        let warning = Warning::field_truncated(list.clone(), Size::of(&here.to_string()), message);
        shown.warnings.push(warning.with_original(all).with_handle(cursor.as_str()));
    }
    if let Some(place) = list.without_first().find_mut(&mut shown.data) {
        *place = here;
    }
    shown
}

/// Returns a warning with the item's index on this page. Returns `None` if the warning is about an item of
/// another page.
pub(super) fn warning_on_page(
    warning: &Warning,
    list: &FieldPath,
    begin: usize,
    end: usize,
) -> Option<Warning> {
    let below = warning.field.as_ref().and_then(|field| field.segments().strip_prefix(list.segments()));
    let Some([Segment::Index(index), inside @ ..]) = below else { return Some(warning.clone()) };
    if !(begin..end).contains(index) {
        return None;
    }
    let field = inside.iter().fold(list.clone().index(index - begin), |path, segment| match segment {
        Segment::Key(name) => path.key(name.as_str()),
        Segment::Index(index) => path.index(*index),
    });
    Some(Warning { field: Some(field), ..warning.clone() })
}

/// Returns the index of the last item of the previous page. If several items are equal, returns the one
/// nearest to the old index.
fn find_last_item(items: &[Value], last: &LastItem) -> Option<usize> {
    let is_meant = |(_, item): &(usize, &Value)| digest(item.to_string().as_bytes()) == last.digest;
    let found = items.iter().enumerate().filter(is_meant).map(|(index, _)| index);
    found.min_by_key(|index| index.abs_diff(last.index))
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(DIGEST_BYTES).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Hashes the words together with their lengths, so that `a b` and `ab` have different hashes.
fn words_digest(words: &[OsString]) -> String {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend(word.len().to_le_bytes());
        bytes.extend(word.as_bytes());
    }
    digest(&bytes)
}

#[cfg(test)]
mod tests;
