//! Injects a fault into a stream: takes bytes, and returns the bytes to forward.

use std::time::Duration;

use bytes::Bytes;
use endmark_wire::format::WireFormat;
use endmark_wire::sse::{Decoder, Frame, Tail};

use super::limit::Limit;
use crate::settings::{Fault, Kind, Place};

/// Maximum size of an event that is examined. Events of all providers are shorter.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The next step of the reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Pass(Bytes),
    Wait(Duration),
    /// The body ends here.
    End(End),
}

/// How to end a body too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    InOrder,
    Closed,
    Reset,
    Never,
}

/// A stream with a pending fault.
pub(super) struct Strike {
    format: &'static dyn WireFormat,
    /// Cuts the reply at a limit, if the fault requires it.
    limit: Option<Limit>,
    kind: Kind,
    place: Place,
    decoder: Decoder,
    events: usize,
    bytes: usize,
    /// Whether the fault has occurred.
    is_over: bool,
    /// Whether an event was too long to examine. The remaining stream is then forwarded unchanged.
    is_unread: bool,
}

impl Strike {
    pub(super) fn new(fault: &Fault, format: &'static dyn WireFormat) -> Self {
        Self {
            format,
            limit: (fault.kind == Kind::Cut).then(|| Limit::new(format)).flatten(),
            kind: fault.kind,
            place: fault.place,
            decoder: Decoder::new(MAX_EVENT_BYTES),
            events: 0,
            bytes: 0,
            is_over: false,
            is_unread: false,
        }
    }

    /// Processes the next bytes of the stream.
    pub(super) fn push(&mut self, data: &[u8]) -> Vec<Step> {
        if self.is_unread {
            return vec![Step::Pass(Bytes::copy_from_slice(data))];
        }
        if let (Some(end), Place::Bytes(at)) = (self.kind.end(), self.place) {
            let left = at.saturating_sub(self.bytes).min(data.len());
            self.bytes += left;
            let mut steps = pass(data.get(..left).unwrap_or_default());
            if self.bytes == at {
                self.is_over = true;
                steps.push(Step::End(end));
            }
            return steps;
        }
        let mut steps = Vec::new();
        let too_long = self.decoder.push(data).is_err();
        while let Some(frame) = self.decoder.next_frame() {
            self.push_frame(&frame, &mut steps);
            if matches!(steps.last(), Some(Step::End(_))) {
                return steps;
            }
        }
        if too_long {
            self.is_unread = true;
            steps.extend(self.finish());
        }
        steps
    }

    /// Returns the remaining bytes when the stream ends by itself.
    pub(super) fn finish(&mut self) -> Vec<Step> {
        match std::mem::replace(&mut self.decoder, Decoder::new(MAX_EVENT_BYTES)).finish() {
            Tail::Clean => Vec::new(),
            Tail::Frame(frame) => pass(&frame.raw),
            Tail::Residue(bytes) => pass(&bytes),
        }
    }

    fn push_frame(&mut self, frame: &Frame, steps: &mut Vec<Step>) {
        let Some(data) = &frame.data else {
            steps.extend(pass(&frame.raw));
            return;
        };
        match self.kind {
            Kind::Slow(pause) => steps.push(Step::Wait(pause)),
            Kind::NoDone if data.trim() == "[DONE]" => return,
            _ => {}
        }
        let due = self.is_reached();
        if let Some(last) = self.limit.as_mut().and_then(|limit| limit.apply(frame, due)) {
            self.is_over = true;
            steps.extend(pass(&last));
            steps.push(Step::End(End::InOrder));
            return;
        }
        if !self.is_over && due && self.strike(frame, data, steps) {
            return;
        }
        self.events += 1;
        self.bytes += frame.raw.len();
        steps.extend(pass(&frame.raw));
    }

    fn is_reached(&self) -> bool {
        match self.place {
            Place::Events(events) => self.events >= events,
            Place::Bytes(bytes) => self.bytes >= bytes,
            Place::Anywhere => true,
        }
    }

    /// Replaces this event by the fault. Returns `false` if the fault cannot occur here.
    fn strike(&mut self, frame: &Frame, data: &str, steps: &mut Vec<Step>) -> bool {
        match self.kind {
            Kind::Error => {
                let message = "a rehearsed fault (--fault)";
                let error = self.format.error_event(500, "endmark_rehearsed_fault", message);
                steps.extend(pass(&error));
                steps.push(Step::End(End::InOrder));
            }
            Kind::Malformed => {
                let half = (0..=data.len() / 2).rev().find(|at| data.is_char_boundary(*at)).unwrap_or(0);
                steps.extend(pass(&frame.with_data(data.get(..half).unwrap_or_default().as_bytes())));
                self.is_over = true;
                self.events += 1;
            }
            Kind::Drop | Kind::Reset | Kind::End | Kind::Stall => {
                steps.extend(self.kind.end().map(Step::End));
            }
            Kind::Cut | Kind::NoDone | Kind::Slow(_) | Kind::Status(..) => return false,
        }
        self.is_over = true;
        true
    }
}

impl Kind {
    /// Returns how the body breaks off, or `None` if it ends normally.
    pub(super) fn end(self) -> Option<End> {
        match self {
            Self::Drop => Some(End::Closed),
            Self::Reset => Some(End::Reset),
            Self::End => Some(End::InOrder),
            Self::Stall => Some(End::Never),
            Self::Cut | Self::Error | Self::Malformed | Self::NoDone | Self::Slow(_) | Self::Status(..) => {
                None
            }
        }
    }
}

fn pass(bytes: &[u8]) -> Vec<Step> {
    if bytes.is_empty() { Vec::new() } else { vec![Step::Pass(Bytes::copy_from_slice(bytes))] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FaultPlan;

    const STREAM: &str = concat!(
        ": hello\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    );

    /// Returns what a reader receives if the stream arrives in pieces of this many bytes, and how it ends.
    fn strike_text(fault: &str, piece: usize) -> (String, Option<End>) {
        let plan: FaultPlan = fault.parse().unwrap();
        let mut strike = Strike::new(&plan.faults[0], &endmark_wire::openai_chat::Chat);
        let mut steps: Vec<Step> = Vec::new();
        for data in STREAM.as_bytes().chunks(piece) {
            steps.extend(strike.push(data));
            if matches!(steps.last(), Some(Step::End(_))) {
                break;
            }
        }
        if !matches!(steps.last(), Some(Step::End(_))) {
            steps.extend(strike.finish());
        }
        let mut text = Vec::new();
        let mut end = None;
        for step in steps {
            match step {
                Step::Pass(bytes) => text.extend_from_slice(&bytes),
                Step::Wait(_) => {}
                Step::End(how) => end = Some(how),
            }
        }
        (String::from_utf8(text).unwrap(), end)
    }

    #[test]
    fn a_fault_strikes_at_its_offset_in_any_chunking() {
        let first = STREAM.find("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"").unwrap();
        for piece in [1, 7, 1_000] {
            assert_eq!(strike_text("drop@1", piece), (STREAM[..first].to_owned(), Some(End::Closed)));
            assert_eq!(strike_text("reset@30b", piece), (STREAM[..30].to_owned(), Some(End::Reset)));
            assert_eq!(strike_text("stall@0", piece), (": hello\n\n".to_owned(), Some(End::Never)));
            let (cut, end) = strike_text("cut@1", piece);
            assert_eq!(end, Some(End::InOrder));
            assert!(cut.starts_with(&STREAM[..first]) && cut.ends_with("data: [DONE]\n\n"), "{cut}");
            assert!(cut.contains(r#""delta":{},"finish_reason":"length""#), "{cut}");
            let (broken, end) = strike_text("malformed@1", piece);
            assert_eq!(end, None);
            assert!(broken.ends_with("data: [DONE]\n\n") && !broken.contains("\"b\""), "{broken}");
            assert!(strike_text("error@1", piece).0.contains("endmark_rehearsed_fault"));
            assert_eq!(strike_text("no-done", piece), (STREAM.replace("data: [DONE]\n\n", ""), None));
            assert_eq!(strike_text("slow@1ms", piece), (STREAM.to_owned(), None));
        }
    }

    #[test]
    fn a_reply_shorter_than_the_fault_offset_is_unchanged() {
        for fault in ["cut@2", "cut@50", "drop@50", "malformed@50", "error@9999b", "drop@9999b"] {
            assert_eq!(strike_text(fault, 11), (STREAM.to_owned(), None), "{fault}");
        }
    }
}
