//! Counts the tokens of a whole request in any format.
//!
//! The formats have texts in different fields. Every text in the fields that a model reads is counted; names, ids,
//! signatures and settings are not. A body is counted while it is parsed, because a tree of its values could need
//! twenty times its bytes.

mod compact;

use std::borrow::Cow;
use std::fmt;

use endmark_text::replace_lone_surrogates;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::image::{ASSUMED_DIMENSIONS, dimensions};
use super::{Count, Family, TextTally};
use compact::Compact;

/// Request fields that a model reads, in all formats.
const READ_FIELDS: &[&str] =
    &["messages", "contents", "input", "system", "instructions", "systemInstruction", "system_instruction"];
/// Fields that offer something to the model. They are counted as written, because the provider converts them to its
/// own form.
const OFFER_FIELDS: &[&str] = &["tools", "functions", "response_format", "responseSchema"];
/// Fields that no model reads, or whose content is opaque.
const UNREAD_FIELDS: &[&str] = &[
    "cache_control",
    "call_id",
    "encrypted_content",
    "file_id",
    "id",
    "role",
    "signature",
    "status",
    "thoughtSignature",
    "thought_signature",
    "tool_call_id",
    "tool_use_id",
    "type",
];
/// Fields with the media type of a file, which models do not read either.
const MEDIA_TYPE_FIELDS: &[&str] = &["media_type", "mimeType", "mime_type", "format"];
/// Values that the model sees as JSON: arguments and results of tools.
const JSON_FIELDS: &[&str] = &["args", "input", "response", "arguments"];
/// Tokens that frame the reply, and each message: OpenAI's figures, which are close enough for other providers.
const FRAME_TOKENS: u64 = 3;
const MESSAGE_TOKENS: u64 = 4;

/// Error of a body that is neither a request nor a list of messages.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The body is not JSON.
    #[error("the conversation is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The body is JSON of another kind.
    #[error("a request, or a list of its messages, was expected")]
    NoConversation,
}

/// Returns the tokens of a request body, or of a bare list of messages, for this model.
///
/// This is an estimate, because providers do not publish what they add around messages and tools.
///
/// ```
/// use endmark_context::count::request;
/// let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Keep the work whole."}]}"#;
/// let counted = request(body, "gpt-5")?;
/// assert_eq!((counted.tokens, counted.exact), (5 + 4 + 3, false));
/// # Ok::<(), endmark_context::count::Unreadable>(())
/// ```
pub fn request(body: &str, model: &str) -> Result<Count, Unreadable> {
    request_unless(|| false, body, model)
}

/// Like [`request`], but stops counting once `is_stopped` returns true.
pub fn request_unless(is_stopped: fn() -> bool, body: &str, model: &str) -> Result<Count, Unreadable> {
    let tokens = read(body, model, Measure::Vocabulary(is_stopped))?;
    Ok(Count { tokens: tokens.text.saturating_add(tokens.images), exact: false })
}

/// Tokens of a request by kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestTokens {
    /// Tokens of its texts and their frames.
    pub text: u64,
    /// Tokens of its images.
    pub images: u64,
}

/// Like [`request`], but without a vocabulary: a fast estimate that needs about as long as reading the body.
///
/// For a body that is not a conversation, all of its fields are counted.
///
/// # Errors
/// [`Unreadable::Json`] if the body is not JSON.
pub fn estimate_request(body: &str, model: &str) -> Result<RequestTokens, Unreadable> {
    read(body, model, Measure::Tally)
}

fn read(body: &str, model: &str, measure: Measure) -> Result<RequestTokens, Unreadable> {
    let texts = Texts { family: Family::of(model), measure, mode: Mode::Texts };
    let body = replace_lone_surrogates(body);
    let mut json = serde_json::Deserializer::from_str(&body);
    let read = json.deserialize_any(Body(texts)).and_then(|tokens| json.end().map(|()| tokens));
    let tokens =
        read.map_err(
            |error| {
                if error.is_data() { Unreadable::NoConversation } else { Unreadable::Json(error) }
            },
        )?;
    Ok(RequestTokens { text: tokens.text.saturating_add(FRAME_TOKENS), ..tokens })
}

impl RequestTokens {
    fn add(&mut self, other: Self) {
        self.text = self.text.saturating_add(other.text);
        self.images = self.images.saturating_add(other.images);
    }
}

fn contains_name(names: &[&str], name: &str) -> bool {
    names.contains(&name)
}

/// Counts a request, or a list of its messages.
struct Body(Texts);

impl<'de> Visitor<'de> for Body {
    type Value = RequestTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request, or a list of its messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<RequestTokens, A::Error> {
        Ok(self.0.visit_seq(items)?.tokens)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RequestTokens, A::Error> {
        let (mut tokens, mut others) = (RequestTokens::default(), RequestTokens::default());
        let (mut has_conversation, reads_others) = (false, matches!(self.0.measure, Measure::Tally));
        while let Some(name) = fields.next_key::<String>()? {
            if contains_name(READ_FIELDS, &name) {
                has_conversation = true;
                tokens.add(fields.next_value_seed(self.0)?.tokens);
            } else if contains_name(OFFER_FIELDS, &name) {
                let mut json = String::new();
                fields.next_value_seed(Compact(&mut json))?;
                tokens.text += self.0.count_text(&json);
            } else if reads_others && !has_conversation {
                others.add(fields.next_value_seed(self.0)?.tokens);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        match has_conversation {
            true => Ok(tokens),
            false if reads_others => Ok(others),
            false => Err(A::Error::custom("no conversation")),
        }
    }
}

/// How to measure a text.
#[derive(Clone, Copy)]
enum Measure {
    /// By the family's vocabulary, until this returns true.
    Vocabulary(fn() -> bool),
    /// By the kinds of its characters.
    Tally,
}

/// Counts all texts and images in a value.
#[derive(Clone, Copy)]
struct Texts {
    family: Family,
    measure: Measure,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Texts,
    /// An object counts as its JSON, which the model sees.
    Json,
    /// Keeps a text instead of counting it.
    Keep,
}

/// Tokens of a value, and its kept text.
#[derive(Default)]
struct MeasuredValue<'de> {
    tokens: RequestTokens,
    kept: Option<Cow<'de, str>>,
}

impl<'de> Texts {
    fn count_text(self, text: &str) -> u64 {
        match self.measure {
            Measure::Vocabulary(is_stopped) => self.family.count(text, is_stopped).tokens,
            Measure::Tally => TextTally::of(text).tokens(self.family),
        }
    }

    fn text_tokens(self, text: &str) -> RequestTokens {
        RequestTokens { text: self.count_text(text), images: 0 }
    }

    /// In OpenAI's format an image is a URL, which may contain the image itself. A data URL of another medium is not
    /// counted.
    fn text_or_medium_tokens(self, text: &str) -> RequestTokens {
        let inline = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((kind, image)) if kind.starts_with("image/") => self.image_tokens(image),
            Some(_) => RequestTokens::default(),
            None => self.text_tokens(text),
        }
    }

    fn image_tokens(self, base64: &str) -> RequestTokens {
        let images = self.family.image_tokens(dimensions(base64).unwrap_or(ASSUMED_DIMENSIONS));
        RequestTokens { text: 0, images }
    }

    fn text(self, text: Cow<'de, str>) -> MeasuredValue<'de> {
        match self.mode {
            Mode::Keep => MeasuredValue { kept: Some(text), ..MeasuredValue::default() },
            Mode::Texts | Mode::Json => {
                MeasuredValue { tokens: self.text_or_medium_tokens(&text), kept: None }
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Texts {
    type Value = MeasuredValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<MeasuredValue<'de>, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Texts {
    type Value = MeasuredValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<MeasuredValue<'de>, E> {
        Ok(MeasuredValue::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<MeasuredValue<'de>, E> {
        Ok(MeasuredValue::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<MeasuredValue<'de>, E> {
        Ok(MeasuredValue::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<MeasuredValue<'de>, E> {
        Ok(MeasuredValue::default())
    }

    fn visit_unit<E: Error>(self) -> Result<MeasuredValue<'de>, E> {
        Ok(MeasuredValue::default())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<MeasuredValue<'de>, E> {
        Ok(self.text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MeasuredValue<'de>, E> {
        Ok(self.text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<MeasuredValue<'de>, A::Error> {
        let mut found = MeasuredValue::default();
        while let Some(item) = items.next_element_seed(Self { mode: Mode::Texts, ..self })? {
            found.tokens.add(item.tokens);
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<MeasuredValue<'de>, A::Error> {
        if self.mode == Mode::Json {
            let mut json = String::new();
            Compact(&mut json).visit_map(fields)?;
            return Ok(MeasuredValue { tokens: self.text_tokens(&json), kept: None });
        }
        let mut tokens = RequestTokens::default();
        let (mut medium, mut data) = (None, None);
        while let Some(name) = fields.next_key::<String>()? {
            let is_media_type = contains_name(MEDIA_TYPE_FIELDS, &name);
            if !is_media_type && contains_name(UNREAD_FIELDS, &name) {
                tokens.text += if name == "role" { MESSAGE_TOKENS } else { 0 };
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let mode = match name.as_str() {
                "data" => Mode::Keep,
                _ if is_media_type => Mode::Keep,
                name if contains_name(JSON_FIELDS, name) => Mode::Json,
                _ => Mode::Texts,
            };
            let found = fields.next_value_seed(Self { mode, ..self })?;
            if is_media_type {
                medium = found.kept.or(medium);
            } else {
                tokens.add(found.tokens);
                data = found.kept.or(data);
            }
        }
        // In the formats of Anthropic and Google such an object is an image, and its other fields are not read.
        let is_of = |kind: &str| medium.as_ref().is_none_or(|medium| medium.starts_with(kind));
        let tokens = match data {
            Some(image) if medium.is_some() && is_of("image/") => self.image_tokens(&image),
            Some(text) if is_of("text/") => {
                tokens.add(self.text_or_medium_tokens(&text));
                tokens
            }
            _ => tokens,
        };
        Ok(MeasuredValue { tokens, kept: None })
    }
}
