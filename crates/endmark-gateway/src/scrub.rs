//! The last line of defence: known secrets are taken out of what Endmark writes, in whatever form they stand there.
//!
//! The first is the type `Secret`, which cannot be printed. This is for what others print: an upstream that repeats
//! a key in its error, a library that logs what it sends.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use endmark_store::Scrub;
use memchr::memmem;

/// What stands in a secret's place.
const SCRUBBED: &str = "***";

/// Below this a secret would be found in everything, and is none.
const MIN_SECRET_BYTES: usize = 6;

/// From here on one pass over a text is worth an automaton.
const LONG_TEXT_BYTES: usize = 16 * 1024;

/// What addresses need not have encoded, besides letters and digits (RFC 3986, 2.3).
const UNRESERVED: &[u8] = b"-._~";

const HEX: [&[u8; 16]; 2] = [b"0123456789ABCDEF", b"0123456789abcdef"];

/// Finds secrets and takes them out.
#[derive(Clone, Default)]
pub struct Scrubber {
    secrets: Vec<String>,
    /// The bytes of the shortest secret: none of its forms has fewer, and a shorter text holds none.
    shortest: usize,
    /// The forms of all secrets; made for the first text that may hold one.
    forms: OnceLock<Vec<String>>,
    /// What finds any of them in one pass. To make it takes longer than all else that a request is read for, so that it waits
    /// for a long text, or for a secret that was found.
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl Scrubber {
    /// Knows these secrets as they are, in base64 (also as a part of something longer), and percent-encoded.
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
            // A client's key is often the upstream's.
            if secret.len() >= MIN_SECRET_BYTES && !known.iter().any(|other| other == secret) {
                known.push(secret.to_owned());
            }
        }
        let shortest = known.iter().map(String::len).min().unwrap_or(usize::MAX);
        Self { secrets: known, shortest, ..Self::default() }
    }

    /// The text without them.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.found_in(text.as_bytes()) {
            Some(forms) => Cow::Owned(forms.replace_all(text, &vec![SCRUBBED; forms.patterns_len()])),
            None => Cow::Borrowed(text),
        }
    }

    /// The same of bytes that need not be text.
    pub fn scrub_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.found_in(bytes) {
            Some(forms) => Cow::Owned(forms.replace_all_bytes(bytes, &vec![SCRUBBED; forms.patterns_len()])),
            None => Cow::Borrowed(bytes),
        }
    }

    /// What finds the secrets, where there is one in these bytes.
    fn found_in(&self, bytes: &[u8]) -> Option<&AhoCorasick> {
        if self.secrets.is_empty() || bytes.len() < self.shortest {
            return None;
        }
        let forms = self.forms.get_or_init(|| self.secrets.iter().flat_map(|secret| forms(secret)).collect());
        let is_short = bytes.len() < LONG_TEXT_BYTES && self.automaton.get().is_none();
        if is_short && !forms.iter().any(|form| memmem::find(bytes, form.as_bytes()).is_some()) {
            return None;
        }
        let automaton = self
            .automaton
            .get_or_init(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms).ok());
        automaton.as_ref().filter(|automaton| automaton.is_match(bytes))
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scrubber").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// The secrets of the configuration, and those of one request: nothing of either is stored, logged or traced.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    pub(crate) of_settings: Arc<Scrubber>,
    pub(crate) of_request: Arc<Scrubber>,
}

impl Scrub for Secrets {
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.of_settings.scrub(text) {
            Cow::Borrowed(text) => self.of_request.scrub(text),
            Cow::Owned(text) => Cow::Owned(self.of_request.scrub(&text).into_owned()),
        }
    }
}

/// A secret in every form in which it may stand, each once: most keys are the same in several of them, and each form is
/// looked for in all that a request leaves behind.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::with_capacity(8);
    for form in percent_encoded(secret).chain(in_base64(secret)) {
        if form != secret && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms.push(secret.to_owned());
    forms
}

/// With all but letters and digits encoded, and with all but the unreserved characters; both in either case of hex.
fn percent_encoded(secret: &str) -> impl Iterator<Item = String> {
    let encode = move |kept: &[u8], hex: &[u8; 16]| {
        let mut encoded = String::with_capacity(3 * secret.len());
        for byte in secret.bytes() {
            if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                let digit = |value: u8| char::from(hex[usize::from(value & 0xF)]);
                encoded.extend(['%', digit(byte >> 4), digit(byte)]);
            }
        }
        encoded
    };
    [b"".as_slice(), UNRESERVED].into_iter().flat_map(move |kept| HEX.map(|hex| encode(kept, hex)))
}

/// What of its base64 is the same wherever it stands in what is encoded: three alignments, two alphabets.
fn in_base64(secret: &str) -> impl Iterator<Item = String> {
    let shifted = [&[0, 0], secret.as_bytes()].concat();
    (0..3).flat_map(move |before| {
        let shifted = &shifted[2 - before..];
        // The characters that also depend on what stands before or behind it.
        let (first, last) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
        let mut form = STANDARD_NO_PAD.encode(shifted);
        form.truncate(last);
        form.drain(..first);
        let of_addresses = form.contains(['+', '/']).then(|| form.replace('+', "-").replace('/', "_"));
        [Some(form), of_addresses].into_iter().flatten().filter(|form| form.len() >= MIN_SECRET_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const SECRET: &str = "sk-canary/+_9 ä";

    #[test]
    fn a_secret_is_found_in_every_form() {
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
        for form in [SECRET, "sk%2Dcanary%2F%2B%5F9%20%C3%A4", "sk-canary%2f%2b_9%20%c3%a4"] {
            assert_eq!(scrubber.scrub(&format!("GET /?key={form}&x")), "GET /?key=***&x");
            assert_eq!(scrubber.scrub_bytes(format!("\u{1}{form}").as_bytes()), b"\x01***".as_slice());
        }
    }

    #[test]
    fn no_form_is_shorter_than_its_secret() {
        for length in MIN_SECRET_BYTES..80 {
            let secret = "+".repeat(length);
            for form in forms(&secret) {
                assert!(form.len() >= length, "{form}");
            }
        }
    }

    #[test]
    fn each_form_is_there_once() {
        // All of it is letters and digits, and neither alphabet of base64 has signs for it.
        assert_eq!(forms("canary").len(), 4, "{:?}", forms("canary"));
        let forms = forms(SECRET);
        assert!(forms.iter().enumerate().all(|(at, form)| !forms[..at].contains(form)), "{forms:?}");
    }

    #[test]
    fn what_holds_none_is_not_touched() {
        let scrubber = Scrubber::new(["short", SECRET]);
        assert!(matches!(scrubber.scrub("a short text"), Cow::Borrowed("a short text")));
        assert_eq!(Scrubber::default().scrub(SECRET), SECRET);
    }
}
