//! Splits lists into pages. Nothing is omitted, because the next page contains the rest. (EN-5)

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cap::DEFAULT_MAX_RESPONSE_BYTES;
use crate::cursor::{self, CursorError};
use crate::document::measure_json;

/// The default number of items on a page.
pub const DEFAULT_PAGE_ITEMS: usize = 50;

/// The default size of the items on a page, in bytes. It leaves space for the rest of the answer.
pub const DEFAULT_PAGE_BYTES: usize = DEFAULT_MAX_RESPONSE_BYTES / 5 * 4;

/// Some items of a list, and the cursor for the following ones (EN-5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

/// Divides a list into pages.
///
/// A cursor contains the key of the last item of its page, and the next page begins after that key. Items
/// that are added between two requests do not move the others, so each item that existed at the beginning is
/// returned exactly once. The keys must be unique, in the list's order, and never change: `(created_at, id)`,
/// not a position.
///
/// A cursor is checked to belong to this list with these filters. It is neither secret nor signed, so treat
/// the key in it as user input.
///
/// ```
/// use endmark_envelope::Pages;
///
/// let ships = ["Aurora", "Beagle", "Calypso", "Discovery"];
/// let pages = Pages::of("ships").with_items(2);
/// // In SQL: WHERE name > ?1 ORDER BY name LIMIT ?2
/// let fetch = |after: Option<String>| {
///     let rows = ships.into_iter().filter(move |name| after.as_deref().is_none_or(|after| *name > after));
///     rows.take(pages.rows_to_fetch())
/// };
///
/// let first = pages.page(fetch(None), |name| *name)?;
/// assert_eq!(first.items, ["Aurora", "Beagle"]);
/// let after = pages.decode_cursor(first.next_cursor.as_deref())?;
/// let last = pages.page(fetch(after), |name| *name)?;
/// assert_eq!((last.items.as_slice(), last.next_cursor), (["Calypso", "Discovery"].as_slice(), None));
/// assert!(Pages::of("crews").decode_cursor::<String>(first.next_cursor.as_deref()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// The list's name and its filters. They must match those of a cursor.
    list: Fingerprint,
    items: usize,
    bytes: usize,
}

impl Pages {
    /// Creates the pages of the list with this name.
    pub fn of(list: &str) -> Self {
        Self {
            list: Fingerprint::default().with_word(list),
            items: DEFAULT_PAGE_ITEMS,
            bytes: DEFAULT_PAGE_BYTES,
        }
    }

    /// Adds a filter. A cursor with another value of the filter is rejected.
    #[must_use]
    pub fn filtered_by(mut self, name: &str, value: &str) -> Self {
        self.list = self.list.with_word(name).with_word(value);
        self
    }

    /// Sets the maximum number of items on a page. The minimum is 1.
    #[must_use]
    pub fn with_items(self, items: usize) -> Self {
        Self { items: items.max(1), ..self }
    }

    /// Sets the maximum size of a page's items as JSON, in bytes. A larger item gets a page of its own.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the key after which the page of this cursor begins. Returns `None` without a cursor, for the
    /// first page.
    pub fn decode_cursor<K: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<K>, CursorError> {
        cursor.map(|cursor| cursor::decode(self.list.checksum(), cursor)).transpose()
    }

    /// Returns the number of rows to request from a backend. It is one more than the items of a page, to show
    /// whether another page follows.
    pub fn rows_to_fetch(&self) -> usize {
        self.items.saturating_add(1)
    }

    /// Returns the page that consists of the first of these rows. `key` returns the sort key of a row. Fails
    /// only if an item or a key cannot be serialised to JSON.
    pub fn page<T: Serialize, K: Serialize>(
        &self,
        rows: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T>, serde_json::Error> {
        let mut items: Vec<T> = Vec::new();
        let mut bytes = 0_u64;
        for row in rows {
            bytes = bytes.saturating_add(measure_json(&row).bytes + 1);
            let is_full = items.len() >= self.items || bytes > self.bytes as u64;
            if let Some(last) = items.last().filter(|_| is_full) {
                let next_cursor = Some(cursor::encode(self.list.checksum(), &key(last))?);
                return Ok(Page { items, next_cursor });
            }
            items.push(row);
        }
        Ok(Page { items, next_cursor: None })
    }
}

/// The words that identify a list. Each is stored with its length, so that `ab`, `c` differs from `a`, `bc`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fingerprint(Vec<u8>);

impl Fingerprint {
    fn with_word(mut self, word: &str) -> Self {
        self.0.extend((word.len() as u64).to_be_bytes());
        self.0.extend(word.as_bytes());
        self
    }

    fn checksum(&self) -> u32 {
        crc32fast::hash(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_limited_in_bytes_but_never_empty() {
        let rows = || ["aaaa", "bbbb", "cccc"];
        let of = |bytes| Pages::of("x").with_bytes(bytes).page(rows(), |row| *row).unwrap();
        assert_eq!(of(14).items, ["aaaa", "bbbb"]);
        assert_eq!(of(13).items, ["aaaa"]);
        assert_eq!(of(0).items, ["aaaa"]);
        assert_eq!(of(21), Page { items: rows().to_vec(), next_cursor: None });
    }

    #[test]
    fn a_cursor_is_valid_only_for_its_own_filters() {
        let open = Pages::of("issues").filtered_by("state", "open").with_items(1);
        let cursor = open.page([1, 2], |row| *row).unwrap().next_cursor;
        assert_eq!(open.decode_cursor(cursor.as_deref()), Ok(Some(1)));
        for other in [
            Pages::of("issues"),
            Pages::of("issues").filtered_by("state", "closed"),
            Pages::of("issues").filtered_by("stat", "eopen"),
        ] {
            assert_eq!(other.decode_cursor::<i32>(cursor.as_deref()), Err(CursorError::OtherList));
        }
        assert_eq!(open.decode_cursor::<i32>(None), Ok(None));
    }
}
