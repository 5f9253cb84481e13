//! Caps a value that arrives in chunks.

use endmark_envelope::{FieldPath, MORE_TRUNCATED, Size, Warning};

use super::document::{self, Document};
use super::format::{self, Format, RequestedFormat};
use super::json::Cut;
use super::limits::Limits;
use super::lines::InvalidUtf8;
use super::marker::group_thousands;
use super::table::{self, Table};
use super::text::{Landmarks, Text};
use super::utf16::Utf16;
use super::{CapError, Capped, ShortenedList};

/// How much of a value is used to detect its format.
const BEGINNING_BYTES: usize = 64 << 10;
/// The largest JSON document that is parsed. A larger document is replaced by its beginning and an error.
pub const LARGEST_DOCUMENT_BYTES: usize = 32 << 20;
/// Most warnings about single cuts. One more warning counts the others.
const MAX_WARNINGS: usize = 100;

/// Caps a value that arrives in chunks of any size.
///
/// The result does not depend on chunking. However large the value is, memory is limited to a few times the limit, or a
/// JSON document of at most [`LARGEST_DOCUMENT_BYTES`].
///
/// ```
/// use endmark_context::cap::{RequestedFormat, Capper, Limits};
///
/// let mut capper = Capper::new(RequestedFormat::Auto, Limits { most: 300, ..Limits::default() })?;
/// for number in 0..1_000 {
///     capper.push(format!("job {number} {}\n", if number == 500 { "FAILED" } else { "done" }).as_bytes())?;
/// }
/// let capped = capper.finish()?;
/// assert!(capped.text.chars().count() <= 300);
/// assert!(capped.text.contains("job 500 FAILED\n") && capped.text.ends_with("job 999 done\n"));
/// # Ok::<(), endmark_context::cap::CapError>(())
/// ```
#[derive(Debug)]
pub struct Capper {
    requested: RequestedFormat,
    limits: Limits,
    path: FieldPath,
    stage: Stage,
    bytes: u64,
    /// The decoder, if the value is UTF-16.
    utf16: Option<Utf16>,
}

#[derive(Debug)]
enum Stage {
    Beginning(Vec<u8>),
    Text(Format, Box<Text>),
    Table(Format, Box<Table>),
    Document(Vec<u8>),
    /// A document that is too large, so only its beginning is kept.
    LargeDocument {
        beginning: String,
        chars: u64,
    },
    Binary(&'static str),
}

impl Capper {
    /// Returns a capper for one value. Fails if the limits leave no room.
    pub fn new(requested_format: RequestedFormat, limits: Limits) -> Result<Self, CapError> {
        limits.check()?;
        let path = FieldPath::root().key("text");
        Ok(Self {
            requested: requested_format,
            limits,
            path,
            stage: Stage::Beginning(Vec::new()),
            bytes: 0,
            utf16: None,
        })
    }

    /// Sets the path that warnings show for the value.
    #[must_use]
    pub fn with_path(self, path: FieldPath) -> Self {
        Self { path, ..self }
    }

    /// Reads the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        self.bytes += bytes.len() as u64;
        if let Stage::Beginning(beginning) = &mut self.stage {
            beginning.extend_from_slice(bytes);
            if beginning.len() < BEGINNING_BYTES {
                return Ok(());
            }
            let all = std::mem::take(beginning);
            return self.begin(all, false);
        }
        match &mut self.utf16 {
            Some(utf16) => {
                let text = utf16.decode(bytes);
                self.read(text.as_bytes())
            }
            None => self.read(bytes),
        }
    }

    fn foreign(&self) -> InvalidUtf8 {
        if self.requested == RequestedFormat::Auto { InvalidUtf8::Replace } else { InvalidUtf8::Reject }
    }

    fn stage_for(&self, format: Format) -> Stage {
        let text =
            |landmarks| Stage::Text(format, Box::new(Text::new(&self.limits, landmarks, self.foreign())));
        let table =
            |kind| Stage::Table(format, Box::new(Table::new(kind, &self.limits, &self.path, self.foreign())));
        match format {
            Format::Text => text(Landmarks::Errors),
            Format::Diff => text(Landmarks::Diff),
            Format::JsonLines => table(table::TableFormat::JsonLines),
            Format::Csv(delimiter) => table(table::TableFormat::Csv(delimiter)),
            Format::Json => Stage::Document(Vec::new()),
            Format::Binary(what) => Stage::Binary(what),
        }
    }

    /// Detects the format, and reads the bytes so far. `all` is the complete value if it `is_whole`.
    fn begin(&mut self, all: Vec<u8>, is_whole: bool) -> Result<(), CapError> {
        // The bytes used for detection must not depend on chunking.
        let looked_at = if is_whole { all.len() } else { BEGINNING_BYTES.min(all.len()) };
        self.utf16 = if self.requested == RequestedFormat::Auto { Utf16::from_mark(&all) } else { None };
        let (all, looked_at) = match &mut self.utf16 {
            Some(utf16) => {
                let (beginning, rest) = all.split_at(looked_at);
                let beginning = utf16.decode(beginning);
                let looked_at = beginning.len();
                ((beginning + &utf16.decode(rest)).into_bytes(), looked_at)
            }
            None => (all, looked_at),
        };
        let mut format = format::detect(&all[..looked_at], is_whole, self.requested);
        // The marker must not be longer than the value that it replaces.
        if matches!(format, Format::Binary(what) if self.binary_marker(what).chars().count() as u64 > self.bytes)
        {
            format = Format::Text;
        }
        self.stage = self.stage_for(format);
        match &mut self.stage {
            Stage::Document(document) => {
                // Moves the bytes to avoid a copy, because this may be the whole document.
                *document = all;
                self.read(&[])
            }
            _ => self.read(&all),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        match &mut self.stage {
            Stage::Text(_, text) => text.push(bytes),
            Stage::Table(_, table) => table.push(bytes),
            Stage::Document(document) => {
                document.extend_from_slice(bytes);
                if document.len() > LARGEST_DOCUMENT_BYTES {
                    let document = std::mem::take(document);
                    let shown = &document[..document.len().min(self.limits.max_buffered().saturating_mul(4))];
                    let beginning = shown.utf8_chunks().next().map_or("", |chunk| chunk.valid()).to_owned();
                    self.stage = Stage::LargeDocument { beginning, chars: count_chars(&document) };
                }
                Ok(())
            }
            Stage::LargeDocument { chars, .. } => {
                *chars += count_chars(bytes);
                Ok(())
            }
            Stage::Beginning(_) | Stage::Binary(_) => Ok(()),
        }
    }

    /// Returns the value within its limits.
    pub fn finish(mut self) -> Result<Capped, CapError> {
        if let Stage::Beginning(beginning) = &mut self.stage {
            let all = std::mem::take(beginning);
            self.begin(all, true)?;
        }
        let unfinished = self.utf16.as_mut().map(Utf16::finish).unwrap_or_default();
        self.read(unfinished.as_bytes())?;
        match std::mem::replace(&mut self.stage, Stage::Binary("")) {
            Stage::Text(format, text) => {
                let (shortened, replaced) = text.finish()?;
                let cut = Cut {
                    path: self.path.clone(),
                    returned: shortened.returned,
                    original: shortened.original,
                    items: None,
                };
                let cuts = shortened.omitted.map(|_| cut);
                Ok(self.build_capped(shortened.text, format, cuts.into_iter().collect(), replaced))
            }
            Stage::Table(format, table) => {
                let (shortened, replaced) = table.finish()?;
                Ok(self.build_capped(shortened.text, format, shortened.cuts, replaced))
            }
            Stage::Document(document) => self.document(document),
            Stage::LargeDocument { beginning, chars } => {
                let (original, is_object) =
                    (Size { bytes: self.bytes, chars }, beginning.trim_start().starts_with('{'));
                let preview = |most| {
                    let (limits, path) = (&self.limits, &self.path);
                    Document::from_beginning("", &beginning, original, is_object, most, limits, path)
                };
                let Document { text, cuts } = self.limits.fit(preview, |document| &document.text);
                Ok(self.build_capped(text, Format::Json, cuts, 0))
            }
            Stage::Beginning(_) => Ok(self.build_capped(String::new(), Format::Text, Vec::new(), 0)),
            Stage::Binary(what) => {
                let text = self.binary_marker(what);
                let original = Size { bytes: self.bytes, chars: 0 };
                let returned = Size::default();
                let cut = Cut { path: self.path.clone(), returned, original, items: None };
                Ok(self.build_capped(text, Format::Binary(what), vec![cut], 0))
            }
        }
    }

    /// Returns the marker that replaces a binary value.
    fn binary_marker(&self, what: &str) -> String {
        let handle = self.limits.read_hint();
        format!("[… {} bytes of {what} are not shown …]{handle}", group_thousands(self.bytes))
    }

    fn document(self, document: Vec<u8>) -> Result<Capped, CapError> {
        let text = match String::from_utf8(document) {
            Ok(text) => text,
            Err(error) if self.foreign() == InvalidUtf8::Reject => {
                return Err(CapError::NotUtf8 { at: error.utf8_error().valid_up_to() as u64 });
            }
            Err(error) => return self.cap_as_text(error.as_bytes()),
        };
        match document::cap(&text, &self.limits, &self.path) {
            Some(Document { text, cuts }) => Ok(self.build_capped(text, Format::Json, cuts, 0)),
            None => self.cap_as_text(text.as_bytes()),
        }
    }

    /// Caps a value as text that looked like JSON, or was requested as JSON, but is not JSON.
    fn cap_as_text(self, bytes: &[u8]) -> Result<Capped, CapError> {
        let mut text = Text::new(&self.limits, Landmarks::Errors, self.foreign());
        text.push(bytes)?;
        let is_asked = self.requested == RequestedFormat::Json;
        let path = self.path.clone();
        let mut capped = Self { stage: Stage::Text(Format::Text, Box::new(text)), ..self }.finish()?;
        if is_asked {
            let message = format!("`{path}` is not a JSON document: it is shown as text");
            capped.warnings.push(Warning::notice("NOT_JSON", message));
        }
        Ok(capped)
    }

    fn build_capped(&self, text: String, format: Format, cuts: Vec<Cut>, replaced: u64) -> Capped {
        let more = cuts.len().saturating_sub(MAX_WARNINGS);
        let is_cut = !cuts.is_empty();
        let shortened = |cut: &Cut| {
            cut.items.map(|(left_out, of)| ShortenedList { path: cut.path.clone(), kept: of - left_out, of })
        };
        let lists = cuts.iter().filter_map(shortened).collect();
        let mut warnings: Vec<Warning> =
            cuts.into_iter().take(MAX_WARNINGS).map(|cut| self.warning(cut)).collect();
        if more > 0 {
            let message = format!("{more} further values are shortened");
            warnings.push(Warning::truncation(MORE_TRUNCATED, message));
        }
        if replaced > 0 {
            let message =
                format!("{} places that are no UTF-8 are shown as U+FFFD", group_thousands(replaced));
            warnings.push(Warning::notice("NOT_UTF8", message));
        }
        if self.utf16.is_some() {
            warnings.push(Warning::notice("UTF_16", "the value is UTF-16, and is shown as UTF-8"));
        }
        Capped { text, format, is_cut, warnings, lists }
    }

    fn warning(&self, cut: Cut) -> Warning {
        let message = match cut.items {
            Some((items, of)) => {
                format!("{} of {} items are left out", group_thousands(items), group_thousands(of))
            }
            // Binary data has only a size in bytes.
            None if cut.original.chars == 0 => "it is not shown".to_owned(),
            None => {
                let chars = cut.original.chars;
                let missing = chars.saturating_sub(cut.returned.chars);
                format!("{} of {} characters are left out", group_thousands(missing), group_thousands(chars))
            }
        };
        let warning = Warning::field_truncated(cut.path, cut.returned, message).with_original(cut.original);
        match &self.limits.handle {
            Some(handle) => warning.with_handle(handle),
            None => warning,
        }
    }
}

fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64
}
