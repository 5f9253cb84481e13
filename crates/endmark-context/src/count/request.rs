//! Counts the tokens of a whole request in any format.
//!
//! Formats have texts in different fields. All texts in fields that a model reads are counted, but not names,
//! ids, signatures and settings. A body is counted while it is parsed, because a tree of its values could
//! need twenty times the memory of the body.

mod compact;

use std::borrow::Cow;
use std::fmt;

use endmark_text::replace_lone_surrogates;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::image::{ASSUMED_DIMENSIONS, dimensions};
use super::{Family, TextTally, TokenCount};
use compact::CompactWriter;

/// Request fields that a model reads, in all formats.
const MODEL_FIELDS: &[&str] =
    &["messages", "contents", "input", "system", "instructions", "systemInstruction", "system_instruction"];
/// Fields that describe tools and reply formats to the model. They are counted as they are written, because
/// the provider converts them to its own form.
const DEFINITION_FIELDS: &[&str] = &["tools", "functions", "response_format", "responseSchema"];
/// Fields that no model reads, or with opaque content.
const IGNORED_FIELDS: &[&str] = &[
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
/// Fields that contain the media type of a file. Models do not read them either.
const MEDIA_TYPE_FIELDS: &[&str] = &["media_type", "mimeType", "mime_type", "format"];
/// Fields whose values the model sees as JSON: arguments and results of tools.
const JSON_FIELDS: &[&str] = &["args", "input", "response", "arguments"];
/// Tokens that OpenAI adds to the reply and to each message. The figures are close enough for other
/// providers.
const REPLY_FRAME_TOKENS: u64 = 3;
const MESSAGE_FRAME_TOKENS: u64 = 4;

/// Error of a body whose tokens cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum UncountableBody {
    /// The body is not JSON.
    #[error("the conversation is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The body is JSON, but neither a request nor a list of messages.
    #[error("a request, or a list of its messages, was expected")]
    NoConversation,
}

/// Returns the number of tokens in a request body, or in a list of messages, for this model.
///
/// The number is an estimate, because providers do not publish what they add around messages and tools.
///
/// ```
/// use endmark_context::count::request;
/// let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Keep the work whole."}]}"#;
/// let counted = request(body, "gpt-5")?;
/// assert_eq!((counted.tokens, counted.exact), (5 + 4 + 3, false));
/// # Ok::<(), endmark_context::count::UncountableBody>(())
/// ```
pub fn request(body: &str, model: &str) -> Result<TokenCount, UncountableBody> {
    request_unless(|| false, body, model)
}

/// Like [`request`], but stops once `is_stopped` returns true.
pub fn request_unless(
    is_stopped: fn() -> bool,
    body: &str,
    model: &str,
) -> Result<TokenCount, UncountableBody> {
    let tokens = read(body, model, CountMethod::Vocabulary(is_stopped))?;
    Ok(TokenCount { tokens: tokens.text.saturating_add(tokens.images), exact: false })
}

/// The number of tokens in a request, by kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestTokens {
    /// Tokens of texts and of the frames around messages.
    pub text: u64,
    /// Tokens of images.
    pub images: u64,
}

/// Like [`request`], but without a vocabulary. This fast estimate takes about as long as parsing the body.
///
/// If the body is not a conversation, all of its fields are counted.
///
/// # Errors
/// [`UncountableBody::Json`] if the body is not JSON.
pub fn estimate_request(body: &str, model: &str) -> Result<RequestTokens, UncountableBody> {
    read(body, model, CountMethod::Tally)
}

fn read(body: &str, model: &str, measure: CountMethod) -> Result<RequestTokens, UncountableBody> {
    let texts = ValueCounter { family: Family::of(model), measure, mode: ValueMode::Texts };
    let body = replace_lone_surrogates(body);
    let mut json = serde_json::Deserializer::from_str(&body);
    let read = json.deserialize_any(BodyVisitor(texts)).and_then(|tokens| json.end().map(|()| tokens));
    let tokens = read.map_err(|error| {
        if error.is_data() { UncountableBody::NoConversation } else { UncountableBody::Json(error) }
    })?;
    Ok(RequestTokens { text: tokens.text.saturating_add(REPLY_FRAME_TOKENS), ..tokens })
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

/// Counts a request, or a list of messages.
struct BodyVisitor(ValueCounter);

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = RequestTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request, or a list of its messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<RequestTokens, A::Error> {
        Ok(self.0.visit_seq(items)?.tokens)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RequestTokens, A::Error> {
        let (mut tokens, mut others) = (RequestTokens::default(), RequestTokens::default());
        let (mut has_conversation, reads_others) = (false, matches!(self.0.measure, CountMethod::Tally));
        while let Some(name) = fields.next_key::<String>()? {
            if contains_name(MODEL_FIELDS, &name) {
                has_conversation = true;
                tokens.add(fields.next_value_seed(self.0)?.tokens);
            } else if contains_name(DEFINITION_FIELDS, &name) {
                let mut json = String::new();
                fields.next_value_seed(CompactWriter(&mut json))?;
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

/// The method of counting a text.
#[derive(Clone, Copy)]
enum CountMethod {
    /// Count with the family's vocabulary, until this function returns true.
    Vocabulary(fn() -> bool),
    /// Estimate by the kinds of characters.
    Tally,
}

/// Counts all texts and images in a value.
#[derive(Clone, Copy)]
struct ValueCounter {
    family: Family,
    measure: CountMethod,
    mode: ValueMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueMode {
    Texts,
    /// Count an object as JSON, because the model sees it as JSON.
    Json,
    /// Keep a text instead of counting it.
    Keep,
}

/// The number of tokens in a value, and its text if it was kept.
#[derive(Default)]
struct MeasuredValue<'de> {
    tokens: RequestTokens,
    kept: Option<Cow<'de, str>>,
}

impl<'de> ValueCounter {
    fn count_text(self, text: &str) -> u64 {
        match self.measure {
            CountMethod::Vocabulary(is_stopped) => self.family.count(text, is_stopped).tokens,
            CountMethod::Tally => TextTally::of(text).tokens(self.family),
        }
    }

    fn text_tokens(self, text: &str) -> RequestTokens {
        RequestTokens { text: self.count_text(text), images: 0 }
    }

    /// In OpenAI's format an image is a URL, which may be a data URL that contains the image. Data URLs of
    /// other media are not counted.
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

    fn measure_text(self, text: Cow<'de, str>) -> MeasuredValue<'de> {
        match self.mode {
            ValueMode::Keep => MeasuredValue { kept: Some(text), ..MeasuredValue::default() },
            ValueMode::Texts | ValueMode::Json => {
                MeasuredValue { tokens: self.text_or_medium_tokens(&text), kept: None }
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueCounter {
    type Value = MeasuredValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<MeasuredValue<'de>, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueCounter {
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
        Ok(self.measure_text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MeasuredValue<'de>, E> {
        Ok(self.measure_text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<MeasuredValue<'de>, A::Error> {
        let mut found = MeasuredValue::default();
        while let Some(item) = items.next_element_seed(Self { mode: ValueMode::Texts, ..self })? {
            found.tokens.add(item.tokens);
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<MeasuredValue<'de>, A::Error> {
        if self.mode == ValueMode::Json {
            let mut json = String::new();
            CompactWriter(&mut json).visit_map(fields)?;
            return Ok(MeasuredValue { tokens: self.text_tokens(&json), kept: None });
        }
        let mut tokens = RequestTokens::default();
        let (mut medium, mut data) = (None, None);
        while let Some(name) = fields.next_key::<String>()? {
            let is_media_type = contains_name(MEDIA_TYPE_FIELDS, &name);
            if !is_media_type && contains_name(IGNORED_FIELDS, &name) {
                tokens.text += if name == "role" { MESSAGE_FRAME_TOKENS } else { 0 };
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let mode = match name.as_str() {
                "data" => ValueMode::Keep,
                _ if is_media_type => ValueMode::Keep,
                name if contains_name(JSON_FIELDS, name) => ValueMode::Json,
                _ => ValueMode::Texts,
            };
            let found = fields.next_value_seed(Self { mode, ..self })?;
            if is_media_type {
                medium = found.kept.or(medium);
            } else {
                tokens.add(found.tokens);
                data = found.kept.or(data);
            }
        }
        // In the formats of Anthropic and Google, such an object is an image. The model does not read its
        // other fields.
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
