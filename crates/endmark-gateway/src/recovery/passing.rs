//! Handing on a continuation while it is still coming.

use endmark_core::detect::Detector;
use endmark_core::{Format, Verdict};

use super::expected::Expected;
use super::flow::{ClientGone, Flow};

/// Hands on an echoed continuation as it comes. Whether a continuation without an echo goes on from the
/// cut is only certain when it is there as a whole.
pub(super) struct Passing<'a> {
    expected: &'a Expected<'a>,
    /// What of the joined text was looked at.
    seen: usize,
    /// Says where a demanded JSON text ends, or leaves its grammar.
    detector: Option<Detector>,
    stopped: bool,
}

impl<'a> Passing<'a> {
    pub(super) fn new(expected: &'a Expected<'a>) -> Self {
        let detector = match expected.demanded {
            Some(format @ Format::Json) => {
                let mut detector = Detector::new(format);
                detector.push(expected.so_far.as_bytes());
                Some(detector)
            }
            _ => None,
        };
        // Other grammars end where only the whole text tells; what has no end of its own passes as it comes.
        let ends = expected.demanded.is_some_and(Format::has_grammar);
        let stopped = expected.echo.is_empty() || (detector.is_none() && ends);
        Self { expected, seen: 0, detector, stopped }
    }

    /// Takes all that was received so far, and hands on what of it is new and certain.
    pub(super) async fn pass(&mut self, received: &str, flow: &mut Flow<'_>) -> Result<(), ClientGone> {
        if self.stopped || !flow.is_live() {
            return Ok(());
        }
        let Some(rest) = received.strip_prefix(self.expected.echo) else { return Ok(()) };
        // A replacement character at the end may stand for one that is not there yet.
        let rest = rest.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let Some(fresh) = rest.get(self.seen..) else { return Ok(()) };
        let certain = self.certain(fresh);
        self.seen += certain;
        if certain > 0 {
            if let Some(unsent) = self.expected.so_far.get(flow.sent()..).filter(|unsent| !unsent.is_empty())
            {
                flow.extend(unsent).await?;
            }
            flow.extend(&fresh[..certain]).await?;
        }
        Ok(())
    }

    /// How many bytes of `fresh` belong to the reply for certain.
    fn certain(&mut self, fresh: &str) -> usize {
        let Some(detector) = &mut self.detector else { return fresh.len() };
        for (at, character) in fresh.char_indices() {
            let mut bytes = [0; 4];
            detector.push(character.encode_utf8(&mut bytes).as_bytes());
            if detector.is_malformed() {
                self.stopped = true;
                return at;
            }
            let may_close = matches!(character, '}' | ']' | '"');
            if may_close && matches!(detector.verdict(), Verdict::Whole) {
                self.stopped = true;
                return at + character.len_utf8();
            }
        }
        fresh.len()
    }
}
