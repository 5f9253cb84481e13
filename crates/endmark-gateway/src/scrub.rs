//! Removes known secrets in any encoding from everything that Endmark writes. It is the last line of defence.
//!
//! The first line of defence is the type `Secret`, which cannot be printed. This module handles text from elsewhere:
//! an upstream that repeats a key in an error, or a library that logs what it sends.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use endmark_store::Scrub;
use memchr::memmem;

/// The text that replaces a secret.
const REPLACEMENT: &str = "***";

/// Minimum length of a secret. Shorter ones are not realistic, and would match everywhere.
const MIN_SECRET_BYTES: usize = 6;

/// Minimum length of a text for which an automaton is worth building.
const LONG_TEXT_BYTES: usize = 16 * 1024;

/// How many layers of percent-encoding are decoded. A URL inside another URL is encoded twice.
const PERCENT_LAYERS: usize = 2;

/// Removes known secrets from text and bytes.
#[derive(Clone, Default)]
pub struct Scrubber {
    secrets: Vec<String>,
    /// The length of the shortest secret in bytes. Encodings are not shorter, so a shorter text contains no secret.
    shortest: usize,
    /// The encodings of all secrets, computed for the first text that may contain one.
    encodings: OnceLock<Vec<String>>,
    /// Finds all encodings in one pass. Building it takes longer than reading a request. It is built only for a long
    /// text, or after a secret was found.
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl Scrubber {
    /// Creates a scrubber for these secrets. It finds them unchanged, in base64 (also inside a longer base64
    /// text), and percent-encoded once or twice.
    ///
    /// ```
    /// let scrubber = endmark_gateway::Scrubber::new(["sk-secret"]);
    /// assert_eq!(scrubber.scrub("no such key: sk-secret"), "no such key: ***");
    /// assert_eq!(scrubber.scrub("nothing to hide"), "nothing to hide");
    /// ```
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut known: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref();
            // The keys of client and upstream are often equal.
            if secret.len() >= MIN_SECRET_BYTES && !known.iter().any(|other| other == secret) {
                known.push(secret.to_owned());
            }
        }
        let shortest = known.iter().map(String::len).min().unwrap_or(usize::MAX);
        Self { secrets: known, shortest, ..Self::default() }
    }

    /// Returns the text without secrets.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.scrub_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Like `scrub`, for bytes that need not be text.
    pub fn scrub_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.is_empty() || bytes.len() < self.shortest {
            return Cow::Borrowed(bytes);
        }
        let mut found = self.secret_ranges(bytes);
        let mut layer = DecodedBytes::decode(bytes);
        for _ in 0..PERCENT_LAYERS {
            let Some(decoded) = layer else { break };
            found.extend(
                self.secret_ranges(&decoded.bytes).into_iter().map(|place| decoded.source_range(&place)),
            );
            layer = decoded.decode_again();
        }
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        found.sort_unstable_by_key(|place| place.start);
        let mut scrubbed = Vec::with_capacity(bytes.len());
        let mut copied_until = 0;
        for place in found {
            if place.start >= copied_until {
                scrubbed.extend_from_slice(&bytes[copied_until..place.start]);
                scrubbed.extend_from_slice(REPLACEMENT.as_bytes());
            }
            copied_until = copied_until.max(place.end);
        }
        scrubbed.extend_from_slice(&bytes[copied_until..]);
        Cow::Owned(scrubbed)
    }

    /// Returns the positions of secrets in these bytes, without percent-decoding.
    fn secret_ranges(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let forms =
            self.encodings.get_or_init(|| self.secrets.iter().flat_map(|secret| encodings(secret)).collect());
        let is_short = bytes.len() < LONG_TEXT_BYTES && self.automaton.get().is_none();
        if is_short && !forms.iter().any(|form| memmem::find(bytes, form.as_bytes()).is_some()) {
            return Vec::new();
        }
        let automaton = self
            .automaton
            .get_or_init(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms).ok());
        automaton.iter().flat_map(|automaton| automaton.find_iter(bytes)).map(|found| found.range()).collect()
    }
}

/// Percent-decoded bytes, and the position of each byte in the encoded text.
struct DecodedBytes {
    bytes: Vec<u8>,
    /// The offset of each byte in the encoded text, followed by the length of that text.
    starts: Vec<usize>,
}

impl DecodedBytes {
    /// Percent-decodes a text, with hexadecimal digits in either case. Returns `None` if nothing is encoded.
    fn decode(bytes: &[u8]) -> Option<Self> {
        memmem::find(bytes, b"%")?;
        let mut decoded =
            Self { bytes: Vec::with_capacity(bytes.len()), starts: Vec::with_capacity(bytes.len()) };
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            decoded.starts.push(at);
            let encoded = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten().and_then(hex_value);
            decoded.bytes.push(encoded.unwrap_or(byte));
            at += if encoded.is_some() { 3 } else { 1 };
        }
        decoded.starts.push(at);
        (decoded.bytes.len() < bytes.len()).then_some(decoded)
    }

    /// Decodes a second time, for text that was encoded twice.
    fn decode_again(&self) -> Option<Self> {
        let mut inner = Self::decode(&self.bytes)?;
        for start in &mut inner.starts {
            *start = self.starts[*start];
        }
        Some(inner)
    }

    /// Maps a range of the decoded text to the encoded text.
    fn source_range(&self, place: &Range<usize>) -> Range<usize> {
        self.starts[place.start]..self.starts[place.end]
    }
}

/// Returns the value of two hexadecimal digits.
fn hex_value(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |value, digit| {
        let digit = char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())?;
        Some(value << 4 | digit)
    })
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scrubber").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// The secrets of the configuration and of one request. They must not be stored, logged or traced.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    pub(crate) settings_secrets: Arc<Scrubber>,
    pub(crate) request_secrets: Arc<Scrubber>,
}

impl Scrub for Secrets {
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.settings_secrets.scrub(text) {
            Cow::Borrowed(text) => self.request_secrets.scrub(text),
            Cow::Owned(text) => Cow::Owned(self.request_secrets.scrub(&text).into_owned()),
        }
    }
}

/// Returns the encodings of a secret without percent-encodings and duplicates. Most keys are equal in both base64
/// alphabets, and each encoding costs a search in all output.
fn encodings(secret: &str) -> Vec<String> {
    let mut forms = Vec::with_capacity(8);
    forms.push(secret.to_owned());
    for form in base64_encodings(secret) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns the characters of the base64 text that do not depend on the surrounding bytes, for three
/// alignments and two alphabets.
fn base64_encodings(secret: &str) -> impl Iterator<Item = String> {
    let shifted = [&[0, 0], secret.as_bytes()].concat();
    (0..3).flat_map(move |before| {
        let shifted = &shifted[2 - before..];
        // Omit the characters that also depend on the bytes before or after.
        let (first, last) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
        let mut form = STANDARD_NO_PAD.encode(shifted);
        form.truncate(last);
        form.drain(..first);
        let url_safe = form.contains(['+', '/']).then(|| form.replace('+', "-").replace('/', "_"));
        [Some(form), url_safe].into_iter().flatten().filter(|form| form.len() >= MIN_SECRET_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const SECRET: &str = "sk-canary/+_9 ä";

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        let scrubber = Scrubber::new([SECRET, "short", ""]);
        for before in ["", "u", "us", "user:", "user::"] {
            for after in ["", ".", "..", "..."] {
                let text = format!("{before}{SECRET}{after}");
                for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let left = scrubber.scrub(&encoded);
                    assert!(left.contains("***"), "{text}: {left}");
                    assert!(left.len() < 20, "{text}: {left}");
                }
            }
        }
        let every_byte = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
        let twice = every_byte.replace('%', "%25");
        let usual = ["sk%2Dcanary%2F%2B%5F9%20%C3%A4", "sk-canary%2f%2b_9%20%c3%a4", "sk-canary/%2B_9 ä"];
        for form in usual.into_iter().chain([SECRET, &every_byte, &twice]) {
            assert_eq!(scrubber.scrub(&format!("GET /?key={form}&x")), "GET /?key=***&x");
            assert_eq!(scrubber.scrub_bytes(format!("\u{1}{form}").as_bytes()), b"\x01***".as_slice());
        }
    }

    #[test]
    fn no_encoding_is_shorter_than_its_secret() {
        for length in MIN_SECRET_BYTES..80 {
            let secret = "+".repeat(length);
            for form in encodings(&secret) {
                assert!(form.len() >= length, "{form}");
            }
        }
    }

    #[test]
    fn each_encoding_is_listed_once() {
        // The secret contains only letters and digits, which are equal in both base64 alphabets.
        assert_eq!(encodings("canary").len(), 4, "{:?}", encodings("canary"));
        let forms = encodings(SECRET);
        assert!(forms.iter().enumerate().all(|(at, form)| !forms[..at].contains(form)), "{forms:?}");
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        let scrubber = Scrubber::new(["short", SECRET]);
        assert!(matches!(scrubber.scrub("a short text"), Cow::Borrowed("a short text")));
        assert_eq!(Scrubber::default().scrub(SECRET), SECRET);
    }
}
