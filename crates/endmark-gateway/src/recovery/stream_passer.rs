//! Forwards a continuation while it arrives.

use endmark_recovery::stitch::{CertainText, ReasoningSigns, SignWatch, StitchStream, json_state_after};
use endmark_recovery::{AskedFrom, Join, PromptedStream};
use endmark_text::Format;
use endmark_text::detect::Detector;

use super::expected_answer::ExpectedAnswer;
use crate::reply::{ClientGone, Flow};

/// Forwards the bytes of a continuation that certainly belong to the reply: everything after an echo, or after a
/// certain seam.
pub(super) struct StreamPasser<'a> {
    expected: &'a ExpectedAnswer<'a>,
    /// How much of the response was examined.
    seen_bytes: usize,
    mode: ReadMode,
}

/// How the response is read.
enum ReadMode {
    /// After the echo, the response is the reply itself. The detector finds where required JSON ends or violates its
    /// grammar.
    Echo { detector: Option<Box<Detector>>, watch: SignWatch },
    /// The response is joined as it arrives.
    Stitched {
        stream: Box<ArrivingJoin>,
        /// Whether the joined text is known to begin with the bytes that the client has.
        agrees: bool,
    },
    /// Nothing is forwarded, because only the complete response shows whether it belongs to the reply.
    Closed,
}

/// How a continuation is joined as it arrives.
enum ArrivingJoin {
    /// Searches for the seam.
    Stitched(StitchStream),
    /// Joins at the position where the response provably continues.
    Prompted(PromptedStream),
}

impl ArrivingJoin {
    fn push(&mut self, text: &str) {
        match self {
            Self::Stitched(stream) => stream.push(text),
            Self::Prompted(stream) => stream.push(text),
        }
    }

    fn certain(&self) -> Option<CertainText<'_>> {
        match self {
            Self::Stitched(stream) => stream.certain(),
            Self::Prompted(stream) => stream.certain(),
        }
    }
}

impl<'a> StreamPasser<'a> {
    pub(super) fn new(expected: &'a ExpectedAnswer<'a>) -> Self {
        let known = expected.known_markers.union(ReasoningSigns::from_text(expected.so_far));
        let echoed = |detector| ReadMode::Echo { detector, watch: SignWatch::new(known) };
        let way = match expected.required_format {
            _ if expected.is_held_back => ReadMode::Closed,
            _ if expected.echo.is_empty() && !expected.is_exact => stitch_mode(expected),
            // A remark after a JSON document is not part of the document.
            None => echoed(json_state_after(expected.so_far).map(Box::new)),
            Some(format @ Format::Json) => {
                let mut detector = Detector::new(format);
                detector.push(expected.so_far.as_bytes());
                echoed(Some(Box::new(detector)))
            }
            // Text without a defined end is forwarded as it arrives. With other grammars, only the complete text
            // shows the end.
            Some(format) if !format.has_grammar() => echoed(None),
            Some(_) => ReadMode::Closed,
        };
        Self { expected, seen_bytes: 0, mode: way }
    }

    /// Examines all data received so far, and forwards new bytes that are certain.
    pub(super) async fn pass(&mut self, received: &str, flow: &mut Flow<'_>) -> Result<(), ClientGone> {
        if !flow.is_live() {
            return Ok(());
        }
        let echo = self.expected.echo;
        if !received.starts_with(echo)
            && !echo.starts_with(received)
            && matches!(self.mode, ReadMode::Echo { .. })
        {
            // The upstream was expected to repeat its message, but did not.
            self.mode = stitch_mode(self.expected);
        }
        // A replacement character at the end may be part of an incomplete character.
        let sound = received.trim_end_matches(char::REPLACEMENT_CHARACTER);
        match &mut self.mode {
            ReadMode::Closed => Ok(()),
            ReadMode::Echo { detector, watch } => {
                let Some(rest) = sound.strip_prefix(echo) else { return Ok(()) };
                // Reasoning is not part of the reply. The complete response decides how to handle it.
                let Some(rest) = rest.get(..watch.read(rest)) else { return Ok(()) };
                let Some(fresh) = rest.get(self.seen_bytes..) else { return Ok(()) };
                let certain = certain_bytes(detector.as_deref_mut(), fresh);
                self.seen_bytes += certain;
                if certain < fresh.len() {
                    self.mode = ReadMode::Closed;
                }
                if certain == 0 {
                    return Ok(());
                }
                let unsent = self.expected.so_far.get(flow.sent_bytes()..).unwrap_or_default();
                flow.extend(unsent).await?;
                flow.extend(&fresh[..certain]).await
            }
            ReadMode::Stitched { stream, agrees } => {
                let Some(fresh) = sound.get(self.seen_bytes..) else { return Ok(()) };
                stream.push(fresh);
                self.seen_bytes = sound.len();
                let Some(certain) = stream.certain() else { return Ok(()) };
                let kept = self.expected.so_far.get(..certain.keep).unwrap_or_default();
                let joined = [kept, certain.glue, certain.rest];
                if !*agrees {
                    match begins_with(joined, self.expected.so_far.as_bytes().get(..flow.sent_bytes())) {
                        Some(true) => *agrees = true,
                        Some(false) => {
                            self.mode = ReadMode::Closed;
                            return Ok(());
                        }
                        None => return Ok(()),
                    }
                }
                flow.extend(&skip_sent(joined, flow.sent_bytes())).await
            }
        }
    }
}

fn stitch_mode(expected: &ExpectedAnswer<'_>) -> ReadMode {
    let format = expected.required_format.unwrap_or(&Format::Text);
    let so_far = expected.so_far;
    let known = expected.known_markers;
    let stream = match expected.join {
        Some(Join::Stitched(from)) => {
            ArrivingJoin::Stitched(StitchStream::new(so_far, format, from).with_reasoning_signs(known))
        }
        Some(Join::Prompted) => ArrivingJoin::Prompted(
            PromptedStream::new(so_far, expected.question, format).with_reasoning_signs(known),
        ),
        Some(Join::Shown) => ArrivingJoin::Stitched(
            StitchStream::new(so_far, format, AskedFrom::Unknown).with_reasoning_signs(known),
        ),
        Some(Join::InMessage) => {
            ArrivingJoin::Stitched(StitchStream::for_same_message(so_far, format).with_reasoning_signs(known))
        }
        Some(Join::Exact) | None => return ReadMode::Closed,
    };
    ReadMode::Stitched { stream: Box::new(stream), agrees: false }
}

/// Returns how many bytes of `fresh` certainly belong to an echoed reply.
fn certain_bytes(detector: Option<&mut Detector>, fresh: &str) -> usize {
    let Some(detector) = detector else { return fresh.len() };
    for (at, character) in fresh.char_indices() {
        detector.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        if detector.is_malformed() {
            return at;
        }
        if detector.is_whole() && matches!(character, '}' | ']' | '"') {
            return at + character.len_utf8();
        }
    }
    fresh.len()
}

/// Whether the joined parts begin with the bytes that the client has. Returns `None` while they are too short
/// for a decision.
fn begins_with(joined: [&str; 3], client_bytes: Option<&[u8]>) -> Option<bool> {
    let Some(had) = client_bytes else { return Some(false) };
    let length: usize = joined.iter().map(|part| part.len()).sum();
    let agrees = joined.iter().flat_map(|part| part.bytes()).zip(had).all(|(left, right)| left == *right);
    (!agrees || length >= had.len()).then_some(agrees)
}

/// Returns the joined parts without their first `sent` bytes.
fn skip_sent(joined: [&str; 3], mut sent: usize) -> String {
    let mut fresh = String::new();
    for part in joined {
        fresh.push_str(part.get(sent..).unwrap_or_default());
        sent = sent.saturating_sub(part.len());
    }
    fresh
}
