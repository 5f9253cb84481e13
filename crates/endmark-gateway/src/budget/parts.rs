//! Measures the tokens of a request's parts: text, and media whose size in bytes does not determine their tokens.

use std::borrow::Cow;

use endmark_context::count::{estimate_request, unread_tokens};
use endmark_wire::json::{Kind, Value};

/// Number of kinds of content. The following constants are the indexes of the kinds.
pub(super) const PART_KIND_COUNT: usize = 5;

pub(super) const TEXT: usize = 0;
const IMAGE: usize = 1;
const AUDIO: usize = 2;
const VIDEO: usize = 3;
const FILE: usize = 4;

/// Assumed tokens of one item of each kind of media: an image of about 1,000 by 1,000 pixels, a minute of
/// audio, a minute of video, and a document of ten pages.
const ASSUMED_TOKENS: [u64; PART_KIND_COUNT] = [0, 1_600, 2_000, 16_000, 20_000];

/// Maximum nesting depth at which media are searched. No known request nests them deeper.
const MAX_DEPTH: usize = 32;

/// Returns the tokens of a body for each kind of content, without corrections. Images count by their
/// dimensions if these are known. A body that is not JSON counts by its length.
pub(super) fn measure(body: &[u8], root: Option<Value<'_>>, model: &str) -> [u64; PART_KIND_COUNT] {
    let mut media = [0; PART_KIND_COUNT];
    if let Some(root) = root {
        count_media(root, MAX_DEPTH, &mut media);
    }
    let mut tokens: [u64; PART_KIND_COUNT] =
        std::array::from_fn(|kind| ASSUMED_TOKENS[kind].saturating_mul(media[kind]));
    match std::str::from_utf8(body).ok().and_then(|body| estimate_request(body, model).ok()) {
        None => tokens[TEXT] = unread_tokens(body.len() as u64),
        Some(read) => {
            tokens[TEXT] = read.text;
            tokens[IMAGE] = if read.images > 0 { read.images } else { tokens[IMAGE] };
        }
    }
    tokens
}

/// Counts the parts of each kind of media, inline or by URL.
fn count_media(value: Value<'_>, depth: usize, media: &mut [u64; PART_KIND_COUNT]) {
    match value.kind() {
        Kind::Object if depth > 0 => {
            let fields = MediaFields::new(value);
            if let Some(kind) = fields.media_kind() {
                media[kind] += 1;
            } else if fields.has_nested {
                value.fields().for_each(|field| count_media(field.value, depth - 1, media));
            }
        }
        Kind::Array if depth > 0 => value.items().for_each(|item| count_media(item, depth - 1, media)),
        _ => {}
    }
}

/// Returns the string value of a field.
fn string_field<'a>(object: Value<'a>, name: &str) -> Option<Cow<'a, str>> {
    object.field(name)?.text()
}

/// The fields that decide whether an object is media. They are collected in one pass, because every object of every
/// request is examined.
#[derive(Default)]
struct MediaFields<'a> {
    kind: Option<Value<'a>>,
    source: Option<Value<'a>>,
    /// The inline data of Gemini.
    data: Option<Value<'a>>,
    /// Whether any field has an object or a list as its value.
    has_nested: bool,
}

impl<'a> MediaFields<'a> {
    fn new(object: Value<'a>) -> Self {
        let mut found = Self::default();
        for field in object.fields() {
            found.has_nested |= matches!(field.value.kind(), Kind::Object | Kind::Array);
            let slot = match field.key.text().as_deref().unwrap_or_default() {
                "type" => &mut found.kind,
                "source" => &mut found.source,
                "inlineData" | "inline_data" | "fileData" | "file_data" => &mut found.data,
                _ => continue,
            };
            // If a name is repeated, the last value counts, as in servers.
            *slot = Some(field.value);
        }
        found
    }

    /// Returns the kind of media, or `None` if the object is not media.
    fn media_kind(&self) -> Option<usize> {
        if let Some(kind) = self.kind.and_then(Value::text) {
            return match &*kind {
                "image" | "image_url" | "input_image" => Some(IMAGE),
                "audio" | "audio_url" | "input_audio" => Some(AUDIO),
                "video" | "video_url" | "input_video" => Some(VIDEO),
                "file" | "input_file" => Some(FILE),
                // A plain-text document counts as text.
                "document" => {
                    let source_type = self.source.and_then(|source| string_field(source, "type"));
                    (source_type.as_deref() != Some("text")).then_some(FILE)
                }
                _ => None,
            };
        }
        // Gemini's media are distinguished by MIME type.
        let data = self.data?;
        let mime =
            string_field(data, "mimeType").or_else(|| string_field(data, "mime_type")).unwrap_or_default();
        Some(match mime.split('/').next() {
            Some("image") => IMAGE,
            Some("audio") => AUDIO,
            Some("video") => VIDEO,
            _ => FILE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure_text(body: &str) -> [u64; PART_KIND_COUNT] {
        measure(body.as_bytes(), Value::parse_str(body).ok(), "gemini-3-pro")
    }

    #[test]
    fn media_are_not_counted_as_text_in_any_format() {
        let data = "A".repeat(1_000);
        for (part, kind) in [
            (
                format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
                IMAGE,
            ),
            (format!(r#"{{"type":"input_audio","input_audio":{{"data":"{data}","format":"wav"}}}}"#), AUDIO),
            (
                format!(
                    r#"{{"type":"document","source":{{"type":"base64","media_type":"application/pdf","data":"{data}"}}}}"#
                ),
                FILE,
            ),
            (format!(r#"{{"inlineData":{{"mimeType":"video/mp4","data":"{data}"}}}}"#), VIDEO),
            (r#"{"fileData":{"mimeType":"video/mp4","fileUri":"gs://a/b"}}"#.to_owned(), VIDEO),
            (r#"{"type":"image_url","image_url":{"url":"https://a/b.png"}}"#.to_owned(), IMAGE),
        ] {
            let tokens = measure_text(&format!(r#"{{"contents":[{{"parts":[{part}]}}]}}"#));
            assert!(tokens[TEXT] < 20, "{part} {tokens:?}");
            let others = tokens
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(other, tokens)| (*other == kind) != (**tokens > 0));
            assert_eq!(others.count(), 0, "{part} {tokens:?}");
        }
        let text = r#"{"messages":[{"content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"All of it is text."}}]}]}"#;
        assert!(
            measure_text(text)[TEXT] > 5 && measure_text(text)[1..] == [0; 4],
            "{:?}",
            measure_text(text)
        );
        // A body that is not JSON counts by its length.
        assert_eq!(measure_text(&"{ not JSON ".repeat(4)), [11, 0, 0, 0, 0]);
    }
}
