//! What a request's body is made of: text, and media whose bytes say nothing of their tokens.

use std::borrow::Cow;

use endmark_wire::json::{Kind, Value};

/// The kinds of media, in the order of [`Parts::media`].
pub(super) const KINDS: usize = 4;

/// Tokens of one part of each kind before any was reported: an image of about a thousand pixels a side, a minute of audio,
/// a minute of video, and a document of ten pages.
pub(super) const USUAL_MEDIA_TOKENS: [u64; KINDS] = [1_600, 2_000, 16_000, 20_000];

const IMAGE: usize = 0;
const AUDIO: usize = 1;
const VIDEO: usize = 2;
const FILE: usize = 3;

/// Deeper values count as text: no request has media there.
const MAX_DEPTH: usize = 32;

/// The parts of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Parts {
    /// All bytes of the body, to know it by.
    pub(super) bytes: u64,
    /// Bytes outside media.
    pub(super) text_bytes: u64,
    /// Parts of each kind of media, inline or by an address.
    pub(super) media: [u64; KINDS],
}

impl Parts {
    /// Reads a body of this length; one that is not JSON is text.
    pub(super) fn of(length: usize, root: Option<Value<'_>>) -> Self {
        let bytes = length as u64;
        let mut parts = Self { bytes, text_bytes: bytes, media: [0; KINDS] };
        if let Some(root) = root {
            parts.add(root, MAX_DEPTH);
        }
        parts
    }

    /// Whether there are media that no formula counts by their bytes.
    pub(super) fn has_uncounted_media(&self) -> bool {
        self.media.iter().enumerate().any(|(kind, count)| kind != IMAGE && *count > 0)
    }

    pub(super) fn has_media(&self) -> bool {
        self.media != [0; KINDS]
    }

    /// Returns the tokens of all media, with `each` tokens for a part of each kind.
    pub(super) fn media_tokens(&self, each: &[u64; KINDS]) -> u64 {
        self.media
            .iter()
            .zip(each)
            .fold(0, |sum, (count, tokens)| sum.saturating_add(count.saturating_mul(*tokens)))
    }

    fn add(&mut self, value: Value<'_>, depth: usize) {
        match value.kind() {
            Kind::Object if depth > 0 => match medium(value) {
                Some(kind) => {
                    self.media[kind] += 1;
                    self.text_bytes = self.text_bytes.saturating_sub(value.raw().len() as u64);
                }
                None => value.fields().for_each(|field| self.add(field.value, depth - 1)),
            },
            Kind::Array if depth > 0 => value.items().for_each(|item| self.add(item, depth - 1)),
            _ => {}
        }
    }
}

/// The string in a field.
fn word<'a>(object: Value<'a>, name: &str) -> Option<Cow<'a, str>> {
    object.field(name)?.text()
}

/// The kind of media that an object is a part of; `None` for all else.
fn medium(object: Value<'_>) -> Option<usize> {
    if let Some(kind) = word(object, "type") {
        return match &*kind {
            "image" | "image_url" | "input_image" => Some(IMAGE),
            "audio" | "audio_url" | "input_audio" => Some(AUDIO),
            "video" | "video_url" | "input_video" => Some(VIDEO),
            "file" | "input_file" => Some(FILE),
            // A document of text is text.
            "document" => {
                let of_source = object.field("source").and_then(|source| word(source, "type"));
                (of_source.as_deref() != Some("text")).then_some(FILE)
            }
            _ => None,
        };
    }
    // Gemini's, by what they are of.
    let data =
        ["inlineData", "inline_data", "fileData", "file_data"].iter().find_map(|name| object.field(name))?;
    let mime = word(data, "mimeType").or_else(|| word(data, "mime_type")).unwrap_or_default();
    Some(match mime.split('/').next() {
        Some("image") => IMAGE,
        Some("audio") => AUDIO,
        Some("video") => VIDEO,
        _ => FILE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Parts {
        Parts::of(body.len(), Value::parse_str(body).ok())
    }

    #[test]
    fn media_is_no_text_in_any_format() {
        let data = "A".repeat(1_000);
        for (part, media) in [
            (
                format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
                [1, 0, 0, 0],
            ),
            (
                format!(r#"{{"type":"input_audio","input_audio":{{"data":"{data}","format":"wav"}}}}"#),
                [0, 1, 0, 0],
            ),
            (format!(r#"{{"type":"document","source":{{"type":"base64","data":"{data}"}}}}"#), [0, 0, 0, 1]),
            (format!(r#"{{"inlineData":{{"mimeType":"video/mp4","data":"{data}"}}}}"#), [0, 0, 1, 0]),
            (r#"{"fileData":{"mimeType":"video/mp4","fileUri":"gs://a/b"}}"#.to_owned(), [0, 0, 1, 0]),
        ] {
            let body = format!(r#"{{"contents":[{{"parts":[{part}]}}]}}"#);
            let parts = of(&body);
            assert_eq!((parts.media, parts.text_bytes), (media, (body.len() - part.len()) as u64), "{part}");
        }
        let text = r#"{"type":"document","source":{"type":"text","data":"All of it is text."}}"#;
        assert_eq!(of(text).text_bytes, text.len() as u64);
        assert!(!of("{ no JSON").has_media());
    }
}
