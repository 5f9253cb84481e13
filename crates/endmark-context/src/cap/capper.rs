//! Caps a value that arrives in chunks.

use endmark_envelope::{FieldPath, MORE_TRUNCATED, Size, Warning};

use super::document::{self, CappedDocument};
use super::format::{self, Format, RequestedFormat};
use super::json::ShortenedValue;
use super::limits::Limits;
use super::lines::InvalidUtf8;
use super::marker::group_thousands;
use super::table::{self, TableCapper};
use super::text::{LandmarkKind, TextCapper};
use super::utf16::Utf16Decoder;
use super::{CapError, CappedValue, ShortenedList};

/// The format is detected from at most this many bytes at the beginning of the value.
const DETECTION_BYTES: usize = 64 << 10;
/// The largest JSON document that is parsed, in bytes. A larger document is replaced by its beginning and an
/// error.
pub const LARGEST_DOCUMENT_BYTES: usize = 32 << 20;
/// Maximum warnings about single cuts. One more warning counts the others.
const MAX_CUT_WARNINGS: usize = 100;

/// Caps a value that arrives in chunks of any size.
///
/// The result does not depend on the chunks. Memory is limited to a few times the limit, plus at most
/// [`LARGEST_DOCUMENT_BYTES`] for a JSON document.
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
    stage: CapperStage,
    bytes: u64,
    /// The decoder, if the value is UTF-16.
    utf16: Option<Utf16Decoder>,
}

#[derive(Debug)]
enum CapperStage {
    Beginning(Vec<u8>),
    Text(Format, Box<TextCapper>),
    Table(Format, Box<TableCapper>),
    Document(Vec<u8>),
    /// A document that is too large to parse, so only its beginning is kept.
    LargeDocument {
        beginning: String,
        chars: u64,
    },
    Binary(&'static str),
}

impl Capper {
    /// Returns a capper for one value. Fails if the limits are too small for a marker.
    pub fn new(requested_format: RequestedFormat, limits: Limits) -> Result<Self, CapError> {
        limits.check()?;
        let path = FieldPath::root().key("text");
        Ok(Self {
            requested: requested_format,
            limits,
            path,
            stage: CapperStage::Beginning(Vec::new()),
            bytes: 0,
            utf16: None,
        })
    }

    /// Sets the path of the value in warnings.
    #[must_use]
    pub fn with_path(self, path: FieldPath) -> Self {
        Self { path, ..self }
    }

    /// Reads the next chunk of the value.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        self.bytes += bytes.len() as u64;
        if let CapperStage::Beginning(beginning) = &mut self.stage {
            beginning.extend_from_slice(bytes);
            if beginning.len() < DETECTION_BYTES {
                return Ok(());
            }
            let all = std::mem::take(beginning);
            return self.detect_and_read(all, false);
        }
        match &mut self.utf16 {
            Some(utf16) => {
                let text = utf16.decode(bytes);
                self.read(text.as_bytes())
            }
            None => self.read(bytes),
        }
    }

    fn invalid_utf8_policy(&self) -> InvalidUtf8 {
        if self.requested == RequestedFormat::Auto { InvalidUtf8::Replace } else { InvalidUtf8::Reject }
    }

    fn stage_for(&self, format: Format) -> CapperStage {
        let text = |landmarks| {
            CapperStage::Text(
                format,
                Box::new(TextCapper::new(&self.limits, landmarks, self.invalid_utf8_policy())),
            )
        };
        let table = |kind| {
            CapperStage::Table(
                format,
                Box::new(TableCapper::new(kind, &self.limits, &self.path, self.invalid_utf8_policy())),
            )
        };
        match format {
            Format::Text => text(LandmarkKind::Errors),
            Format::Diff => text(LandmarkKind::Diff),
            Format::JsonLines => table(table::TableFormat::JsonLines),
            Format::Csv(delimiter) => table(table::TableFormat::Csv(delimiter)),
            Format::Json => CapperStage::Document(Vec::new()),
            Format::Binary(what) => CapperStage::Binary(what),
        }
    }

    /// Detects the format, and reads the bytes that have arrived. `is_whole` states that `all` is the
    /// complete value.
    fn detect_and_read(&mut self, all: Vec<u8>, is_whole: bool) -> Result<(), CapError> {
        // Always use the same number of bytes, so that the detected format does not depend on the chunks.
        let looked_at = if is_whole { all.len() } else { DETECTION_BYTES.min(all.len()) };
        self.utf16 =
            if self.requested == RequestedFormat::Auto { Utf16Decoder::from_mark(&all) } else { None };
        let (all, looked_at) = match &mut self.utf16 {
            Some(utf16) => {
                let (beginning, rest) = all.split_at(looked_at);
                let beginning = utf16.decode(beginning);
                let looked_at = beginning.len();
                ((beginning + &utf16.decode(rest)).into_bytes(), looked_at)
            }
            None => (all, looked_at),
        };
        let mut format = format::detect_format(&all[..looked_at], is_whole, self.requested);
        // The marker must not be longer than the value that it replaces.
        if matches!(format, Format::Binary(what) if self.binary_marker(what).chars().count() as u64 > self.bytes)
        {
            format = Format::Text;
        }
        self.stage = self.stage_for(format);
        match &mut self.stage {
            CapperStage::Document(document) => {
                // Move the bytes instead of copying them, because this may be the whole document.
                *document = all;
                self.read(&[])
            }
            _ => self.read(&all),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        match &mut self.stage {
            CapperStage::Text(_, text) => text.push(bytes),
            CapperStage::Table(_, table) => table.push(bytes),
            CapperStage::Document(document) => {
                document.extend_from_slice(bytes);
                if document.len() > LARGEST_DOCUMENT_BYTES {
                    let document = std::mem::take(document);
                    let shown = &document[..document.len().min(self.limits.max_buffered().saturating_mul(4))];
                    let beginning = shown.utf8_chunks().next().map_or("", |chunk| chunk.valid()).to_owned();
                    self.stage = CapperStage::LargeDocument { beginning, chars: count_chars(&document) };
                }
                Ok(())
            }
            CapperStage::LargeDocument { chars, .. } => {
                *chars += count_chars(bytes);
                Ok(())
            }
            CapperStage::Beginning(_) | CapperStage::Binary(_) => Ok(()),
        }
    }

    /// Returns the capped value.
    pub fn finish(mut self) -> Result<CappedValue, CapError> {
        if let CapperStage::Beginning(beginning) = &mut self.stage {
            let all = std::mem::take(beginning);
            self.detect_and_read(all, true)?;
        }
        let unfinished = self.utf16.as_mut().map(Utf16Decoder::finish).unwrap_or_default();
        self.read(unfinished.as_bytes())?;
        match std::mem::replace(&mut self.stage, CapperStage::Binary("")) {
            CapperStage::Text(format, text) => {
                let (shortened, replaced) = text.finish()?;
                let cut = ShortenedValue {
                    path: self.path.clone(),
                    returned: shortened.returned,
                    original: shortened.original,
                    items: None,
                };
                let cuts = shortened.omitted.map(|_| cut);
                Ok(self.build_capped(shortened.text, format, cuts.into_iter().collect(), replaced))
            }
            CapperStage::Table(format, table) => {
                let (shortened, replaced) = table.finish()?;
                Ok(self.build_capped(shortened.text, format, shortened.cuts, replaced))
            }
            CapperStage::Document(document) => self.finish_document(document),
            CapperStage::LargeDocument { beginning, chars } => {
                let (original, is_object) =
                    (Size { bytes: self.bytes, chars }, beginning.trim_start().starts_with('{'));
                let preview = |most| {
                    let (limits, path) = (&self.limits, &self.path);
                    CappedDocument::from_beginning("", &beginning, original, is_object, most, limits, path)
                };
                let CappedDocument { text, cuts } =
                    self.limits.render_within(preview, |document| &document.text);
                Ok(self.build_capped(text, Format::Json, cuts, 0))
            }
            CapperStage::Beginning(_) => Ok(self.build_capped(String::new(), Format::Text, Vec::new(), 0)),
            CapperStage::Binary(what) => {
                let text = self.binary_marker(what);
                let original = Size { bytes: self.bytes, chars: 0 };
                let returned = Size::default();
                let cut = ShortenedValue { path: self.path.clone(), returned, original, items: None };
                Ok(self.build_capped(text, Format::Binary(what), vec![cut], 0))
            }
        }
    }

    /// Returns the marker that replaces a binary value.
    fn binary_marker(&self, what: &str) -> String {
        let handle = self.limits.read_hint();
        format!("[… {} bytes of {what} are not shown …]{handle}", group_thousands(self.bytes))
    }

    fn finish_document(self, document: Vec<u8>) -> Result<CappedValue, CapError> {
        let text = match String::from_utf8(document) {
            Ok(text) => text,
            Err(error) if self.invalid_utf8_policy() == InvalidUtf8::Reject => {
                return Err(CapError::NotUtf8 { at: error.utf8_error().valid_up_to() as u64 });
            }
            Err(error) => return self.cap_as_text(error.as_bytes()),
        };
        match document::cap_document(&text, &self.limits, &self.path) {
            Some(CappedDocument { text, cuts }) => Ok(self.build_capped(text, Format::Json, cuts, 0)),
            None => self.cap_as_text(text.as_bytes()),
        }
    }

    /// Caps a value as text. It looked like JSON, or was requested as JSON, but is not JSON.
    fn cap_as_text(self, bytes: &[u8]) -> Result<CappedValue, CapError> {
        let mut text = TextCapper::new(&self.limits, LandmarkKind::Errors, self.invalid_utf8_policy());
        text.push(bytes)?;
        let is_asked = self.requested == RequestedFormat::Json;
        let path = self.path.clone();
        let mut capped = Self { stage: CapperStage::Text(Format::Text, Box::new(text)), ..self }.finish()?;
        if is_asked {
            let message = format!("`{path}` is not a JSON document: it is shown as text");
            capped.warnings.push(Warning::notice("NOT_JSON", message));
        }
        Ok(capped)
    }

    fn build_capped(
        &self,
        text: String,
        format: Format,
        cuts: Vec<ShortenedValue>,
        replaced: u64,
    ) -> CappedValue {
        let more = cuts.len().saturating_sub(MAX_CUT_WARNINGS);
        let is_cut = !cuts.is_empty();
        let shortened = |cut: &ShortenedValue| {
            cut.items.map(|(left_out, of)| ShortenedList { path: cut.path.clone(), kept: of - left_out, of })
        };
        let lists = cuts.iter().filter_map(shortened).collect();
        let mut warnings: Vec<Warning> =
            cuts.into_iter().take(MAX_CUT_WARNINGS).map(|cut| self.cut_warning(cut)).collect();
        if more > 0 {
            let message = format!("{more} further values are shortened");
            warnings.push(Warning::truncation(MORE_TRUNCATED, message));
        }
        if replaced > 0 {
            let message =
                format!("{} invalid UTF-8 sequences are shown as U+FFFD", group_thousands(replaced));
            warnings.push(Warning::notice("NOT_UTF8", message));
        }
        if self.utf16.is_some() {
            warnings.push(Warning::notice("UTF_16", "the value is UTF-16, and is shown as UTF-8"));
        }
        CappedValue { text, format, is_cut, warnings, lists }
    }

    fn cut_warning(&self, cut: ShortenedValue) -> Warning {
        let message = match cut.items {
            Some((items, of)) => {
                format!("{} of {} items are left out", group_thousands(items), group_thousands(of))
            }
            // For binary data, only the number of bytes is known.
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
