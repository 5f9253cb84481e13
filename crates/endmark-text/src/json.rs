//! Reads JSON in place: values are spans of the bytes, without a tree.
//!
//! [`Value::parse`] strictly checks a whole document once (RFC 8259), without recursion. Later steps rely on
//! this check. If an object repeats a key, the last value counts, as in most parsers.

mod path;
mod scan;
mod string;

use std::borrow::Cow;
use std::ops::Range;

pub use path::{PathStep, PathSteps};
pub use scan::{Visit, string_end, visit};
pub(crate) use string::decode;
pub use string::{append_escaped, quote};

/// Error for bytes that are not a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON at byte {offset}: {reason}")]
pub struct JsonError {
    /// Byte offset of the first invalid byte. It is the length of the input if the document ends too early.
    pub offset: usize,
    /// Description of the fault, as a lowercase fragment.
    pub reason: &'static str,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number in any notation.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
}

/// The decoded characters of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedString<'a> {
    /// The characters. A lone surrogate becomes U+FFFD.
    pub text: Cow<'a, str>,
    /// False if a lone surrogate was replaced.
    pub exact: bool,
}

/// Returns the body without a leading byte order mark, which some servers and proxies add. RFC 8259 forbids
/// adding one, but allows readers to ignore it.
///
/// ```
/// assert_eq!(endmark_text::json::without_byte_order_mark(b"\xEF\xBB\xBF{}"), b"{}");
/// ```
pub fn without_byte_order_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body)
}

/// A value in a document that was checked as a whole.
///
/// ```
/// use endmark_text::json::Value;
/// let body = br#"{"choices": [ {"message":{"content":"Hi \u00e9"}} ], "n": 1, "n": 2}"#;
/// let root = Value::parse(body)?;
/// assert_eq!(root.at("choices[0].message.content").and_then(Value::text).as_deref(), Some("Hi é"));
/// assert_eq!(root.field("n").and_then(Value::as_u64), Some(2));
/// # Ok::<(), endmark_text::json::JsonError>(())
/// ```
#[derive(Debug, Clone, Copy, Eq)]
pub struct Value<'a> {
    document: &'a str,
    start: usize,
    end: usize,
}

impl PartialEq for Value<'_> {
    /// Compares positions first, because the values are usually in the same document.
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.end) == (other.start, other.end)
            && (std::ptr::eq(self.document, other.document) || self.document == other.document)
    }
}

fn to_text(bytes: &[u8]) -> Result<&str, JsonError> {
    let not_text =
        |error: std::str::Utf8Error| JsonError { offset: error.valid_up_to(), reason: "not UTF-8" };
    std::str::from_utf8(bytes).map_err(not_text)
}

impl<'a> Value<'a> {
    /// Checks that the bytes are one JSON document, and returns its value. Only memory limits the nesting
    /// depth.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        Self::parse_str(to_text(bytes)?)
    }

    /// Parses like [`parse`](Self::parse), but accepts a byte order mark at the start. The mark stays in the
    /// document.
    pub fn parse_body(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let document = to_text(bytes)?;
        let unmarked = without_byte_order_mark(bytes);
        let mark = bytes.len() - unmarked.len();
        let span = scan::check(unmarked)
            .map_err(|error| JsonError { offset: error.offset + mark, reason: error.reason })?;
        Ok(Self { document, start: span.start + mark, end: span.end + mark })
    }

    /// Parses like [`parse`](Self::parse), for text that is known to be UTF-8.
    pub fn parse_str(text: &'a str) -> Result<Self, JsonError> {
        let span = scan::check(text.as_bytes())?;
        Ok(Self { document: text, start: span.start, end: span.end })
    }

    /// Returns the value at a span that an earlier check of the same text returned.
    pub fn from_checked(document: &'a str, span: Range<usize>) -> Self {
        Self { document, start: span.start, end: span.end }
    }

    /// Returns the document that contains the value.
    pub fn document(self) -> &'a str {
        self.document
    }

    /// Returns the byte range of the value in the document.
    pub fn span(self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the source text of the value.
    pub fn raw(self) -> &'a str {
        self.document.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        match self.document.as_bytes().get(self.start) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Returns a boolean, or `None` for other values.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// Returns a non-negative integer, or `None` for other values. `4096.0` and `4e3` are integers.
    pub fn as_u64(self) -> Option<u64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.raw().parse().ok().or_else(|| {
            let number: f64 = self.raw().parse().ok()?;
            #[expect(clippy::cast_precision_loss, reason = "a bound, far above any count of tokens")]
            let fits = number.fract() == 0.0 && number >= 0.0 && number < (1_u64 << 53) as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
            fits.then_some(number as u64)
        })
    }

    /// Returns the decoded characters of a string, or `None` for other values.
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.decode().map(|decoded| decoded.text)
    }

    /// Returns the decoded characters of a string and whether they are exact, or `None` for other values.
    pub fn decode(self) -> Option<DecodedString<'a>> {
        (self.kind() == Kind::String).then(|| string::decode(self.string_content()))
    }

    /// Decodes like [`decode`](Self::decode), for one chunk of a text. `half` is a high surrogate that ended
    /// the previous chunk. Returns a high surrogate at the end of this chunk separately, for the next call.
    pub fn decode_after(self, half: Option<u32>) -> Option<(DecodedString<'a>, Option<u32>)> {
        (self.kind() == Kind::String).then(|| string::decode_chunk(half, self.string_content()))
    }

    /// Returns the value of the last field with this name, or `None` if this is not an object.
    pub fn field(self, name: &str) -> Option<Value<'a>> {
        self.fields().filter(|field| field.has_name(name)).last().map(|field| field.value)
    }

    /// Returns the item at this index, or `None` if there is no such item or this is not an array.
    pub fn item(self, position: usize) -> Option<Value<'a>> {
        self.items().nth(position)
    }

    /// Returns the value at a path such as `choices[0].message["odd key"]`.
    pub fn at(self, path: &str) -> Option<Value<'a>> {
        PathSteps::new(path).try_fold(self, |value, step| match step {
            PathStep::Field(name) => value.field(name),
            PathStep::Item(position) => value.item(position),
            PathStep::Invalid => None,
        })
    }

    /// Returns the characters of a string field, or `None` if the field is missing, empty or not a string.
    pub fn non_empty_text(self, name: &str) -> Option<String> {
        self.field(name).and_then(Value::text).map(Cow::into_owned).filter(|word| !word.is_empty())
    }

    /// Returns a non-empty string field, or the digits of a number.
    pub fn text_or_number(self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        match value.kind() {
            Kind::String => value.text().map(Cow::into_owned),
            Kind::Number => Some(value.raw().to_owned()),
            Kind::Object | Kind::Array | Kind::Bool | Kind::Null => None,
        }
    }

    /// Whether a field is this string.
    pub fn has_text(self, name: &str, word: &str) -> bool {
        self.field(name).and_then(Value::text).as_deref() == Some(word)
    }

    /// Whether the value is null, an empty string or an empty array.
    pub fn is_blank(self) -> bool {
        match self.kind() {
            Kind::Null => true,
            Kind::String => self.string_content().is_empty(),
            // This does not read the first item.
            Kind::Array => scan::next_start(self.document.as_bytes(), self.start + 1).is_none(),
            Kind::Object | Kind::Number | Kind::Bool => false,
        }
    }

    /// Returns a field that is neither null nor empty.
    pub fn non_empty(self, name: &str) -> Option<Value<'a>> {
        self.field(name).filter(|value| !value.is_blank())
    }

    /// Returns the value if it is of this kind.
    pub fn as_kind(self, kind: Kind) -> Option<Value<'a>> {
        (self.kind() == kind).then_some(self)
    }

    /// Returns the fields of an object in order, including duplicates. Returns no fields for other values.
    pub fn fields(self) -> impl Iterator<Item = Field<'a>> {
        let mut next = (self.kind() == Kind::Object).then_some(self.start + 1);
        std::iter::from_fn(move || {
            let key = self.value_at(scan::next_start(self.document.as_bytes(), next?)?);
            let colon = scan::next_start(self.document.as_bytes(), key.end)?;
            let value = self.value_at(scan::next_start(self.document.as_bytes(), colon + 1)?);
            next = Some(value.end);
            Some(Field { key, value })
        })
    }

    /// Returns the items of an array. Returns no items for other values.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let mut next = (self.kind() == Kind::Array).then_some(self.start + 1);
        std::iter::from_fn(move || {
            let item = self.value_at(scan::next_start(self.document.as_bytes(), next?)?);
            next = Some(item.end);
            Some(item)
        })
    }

    fn value_at(self, start: usize) -> Self {
        Self { start, end: scan::value_end(self.document.as_bytes(), start), ..self }
    }

    /// Returns the source between the quotes of a string.
    fn string_content(self) -> &'a str {
        self.document.get(self.start + 1..self.end.saturating_sub(1)).unwrap_or_default()
    }
}

/// All fields of an object, found in one pass. It is faster than [`Value::field`] for several lookups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields<'a>(Vec<NamedField<'a>>);

/// A field, and the source of its name between the quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedField<'a> {
    name: &'a str,
    is_escaped: bool,
    field: Field<'a>,
}

impl<'a> Fields<'a> {
    /// Reads the fields of an object. Other values have no fields.
    pub fn new(object: Value<'a>) -> Self {
        let named = |field: Field<'a>| {
            let name = field.key.string_content();
            NamedField { name, is_escaped: name.bytes().any(|byte| byte == b'\\'), field }
        };
        // This is enough for most objects. Growing the vector repeatedly would cost more than finding the
        // fields.
        let mut all = Vec::with_capacity(8);
        all.extend(object.fields().map(named));
        Self(all)
    }

    /// Returns the value of the last field with this name.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let is_it =
            |named: &&NamedField<'a>| named.name == name || (named.is_escaped && named.field.has_name(name));
        self.0.iter().rfind(is_it).map(|named| named.field.value)
    }

    /// Returns a field that is neither null nor empty.
    pub fn non_empty(&self, name: &str) -> Option<Value<'a>> {
        self.get(name).filter(|value| !value.is_blank())
    }

    /// Returns all fields in order, including duplicates.
    pub fn iter(&self) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter().map(|named| &named.field)
    }
}

/// A field of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name of the field, as a JSON string.
    pub key: Value<'a>,
    /// The value of the field.
    pub value: Value<'a>,
}

impl Field<'_> {
    /// Whether the field has this name after decoding escapes.
    pub fn has_name(&self, name: &str) -> bool {
        let inside = self.key.string_content();
        // An escape is longer than the character that it encodes.
        inside == name
            || (inside.len() > name.len() && inside.contains('\\') && string::decode(inside).text == name)
    }
}

#[cfg(test)]
mod tests;
