//! Injects a fault into the bytes of a stream.

use std::time::Duration;

use bytes::Bytes;
use endmark_wire::format::WireFormat;
use endmark_wire::sse::{Decoder, Frame, Tail};

use super::limit_cut::LimitCut;
use crate::settings::{Fault, FaultKind, FaultPosition};

/// Maximum size of an event that is examined. Events of all providers are shorter.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The next step of a body with a fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyStep {
    Pass(Bytes),
    Wait(Duration),
    /// The body ends here.
    End(BodyEnd),
}

/// How a body ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Regular,
    Closed,
    Reset,
    Never,
}

/// A stream with a pending fault.
pub(super) struct FaultyStream {
    format: &'static dyn WireFormat,
    /// Cuts the reply at a limit, if the fault requires it.
    limit: Option<LimitCut>,
    kind: FaultKind,
    place: FaultPosition,
    decoder: Decoder,
    events: usize,
    bytes: usize,
    /// Whether the fault has occurred.
    has_occurred: bool,
    /// Whether an event was too long to examine. The remaining stream is then forwarded unchanged.
    passes_through: bool,
}

impl FaultyStream {
    pub(super) fn new(fault: &Fault, format: &'static dyn WireFormat) -> Self {
        Self {
            format,
            limit: (fault.kind == FaultKind::Cut).then(|| LimitCut::new(format)).flatten(),
            kind: fault.kind,
            place: fault.position,
            decoder: Decoder::new(MAX_EVENT_BYTES),
            events: 0,
            bytes: 0,
            has_occurred: false,
            passes_through: false,
        }
    }

    /// Processes the next bytes of the stream.
    pub(super) fn push(&mut self, data: &[u8]) -> Vec<BodyStep> {
        if self.passes_through {
            return vec![BodyStep::Pass(Bytes::copy_from_slice(data))];
        }
        if let (Some(end), FaultPosition::Bytes(at)) = (self.kind.body_end(), self.place) {
            let left = at.saturating_sub(self.bytes).min(data.len());
            self.bytes += left;
            let mut steps = pass_step(data.get(..left).unwrap_or_default());
            if self.bytes == at {
                self.has_occurred = true;
                steps.push(BodyStep::End(end));
            }
            return steps;
        }
        let mut steps = Vec::new();
        let too_long = self.decoder.push(data).is_err();
        while let Some(frame) = self.decoder.next_frame() {
            self.push_frame(&frame, &mut steps);
            if matches!(steps.last(), Some(BodyStep::End(_))) {
                return steps;
            }
        }
        if too_long {
            self.passes_through = true;
            steps.extend(self.finish());
        }
        steps
    }

    /// Returns the remaining bytes when the stream ends by itself.
    pub(super) fn finish(&mut self) -> Vec<BodyStep> {
        match std::mem::replace(&mut self.decoder, Decoder::new(MAX_EVENT_BYTES)).finish() {
            Tail::Clean => Vec::new(),
            Tail::Frame(frame) => pass_step(&frame.raw),
            Tail::Residue(bytes) => pass_step(&bytes),
        }
    }

    fn push_frame(&mut self, frame: &Frame, steps: &mut Vec<BodyStep>) {
        let Some(data) = &frame.data else {
            steps.extend(pass_step(&frame.raw));
            return;
        };
        match self.kind {
            FaultKind::Slow(pause) => steps.push(BodyStep::Wait(pause)),
            FaultKind::NoDone if data.trim() == "[DONE]" => return,
            _ => {}
        }
        let due = self.is_reached();
        if let Some(last) = self.limit.as_mut().and_then(|limit| limit.apply(frame, due)) {
            self.has_occurred = true;
            steps.extend(pass_step(&last));
            steps.push(BodyStep::End(BodyEnd::Regular));
            return;
        }
        if !self.has_occurred && due && self.inject(frame, data, steps) {
            return;
        }
        self.events += 1;
        self.bytes += frame.raw.len();
        steps.extend(pass_step(&frame.raw));
    }

    fn is_reached(&self) -> bool {
        match self.place {
            FaultPosition::Events(events) => self.events >= events,
            FaultPosition::Bytes(bytes) => self.bytes >= bytes,
            FaultPosition::Anywhere => true,
        }
    }

    /// Replaces this event by the fault. Returns `false` if the fault cannot occur here.
    fn inject(&mut self, frame: &Frame, data: &str, steps: &mut Vec<BodyStep>) -> bool {
        match self.kind {
            FaultKind::Error => {
                let message = "a rehearsed fault (--fault)";
                let error = self.format.error_event(500, "endmark_rehearsed_fault", message);
                steps.extend(pass_step(&error));
                steps.push(BodyStep::End(BodyEnd::Regular));
            }
            FaultKind::Malformed => {
                let half = (0..=data.len() / 2).rev().find(|at| data.is_char_boundary(*at)).unwrap_or(0);
                steps.extend(pass_step(&frame.with_data(data.get(..half).unwrap_or_default().as_bytes())));
                self.has_occurred = true;
                self.events += 1;
            }
            FaultKind::Drop | FaultKind::Reset | FaultKind::End | FaultKind::Stall => {
                steps.extend(self.kind.body_end().map(BodyStep::End));
            }
            FaultKind::Cut | FaultKind::NoDone | FaultKind::Slow(_) | FaultKind::Status(..) => return false,
        }
        self.has_occurred = true;
        true
    }
}

impl FaultKind {
    /// Returns how the body breaks off, or `None` if it ends normally.
    pub(super) fn body_end(self) -> Option<BodyEnd> {
        match self {
            Self::Drop => Some(BodyEnd::Closed),
            Self::Reset => Some(BodyEnd::Reset),
            Self::End => Some(BodyEnd::Regular),
            Self::Stall => Some(BodyEnd::Never),
            Self::Cut | Self::Error | Self::Malformed | Self::NoDone | Self::Slow(_) | Self::Status(..) => {
                None
            }
        }
    }
}

fn pass_step(bytes: &[u8]) -> Vec<BodyStep> {
    if bytes.is_empty() { Vec::new() } else { vec![BodyStep::Pass(Bytes::copy_from_slice(bytes))] }
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

    /// Returns the text that a reader receives if the stream arrives in pieces of `piece` bytes, and how the
    /// text ends.
    fn faulty_text(fault: &str, piece: usize) -> (String, Option<BodyEnd>) {
        let plan: FaultPlan = fault.parse().unwrap();
        let mut strike = FaultyStream::new(&plan.faults[0], &endmark_wire::openai_chat::Chat);
        let mut steps: Vec<BodyStep> = Vec::new();
        for data in STREAM.as_bytes().chunks(piece) {
            steps.extend(strike.push(data));
            if matches!(steps.last(), Some(BodyStep::End(_))) {
                break;
            }
        }
        if !matches!(steps.last(), Some(BodyStep::End(_))) {
            steps.extend(strike.finish());
        }
        let mut text = Vec::new();
        let mut end = None;
        for step in steps {
            match step {
                BodyStep::Pass(bytes) => text.extend_from_slice(&bytes),
                BodyStep::Wait(_) => {}
                BodyStep::End(how) => end = Some(how),
            }
        }
        (String::from_utf8(text).unwrap(), end)
    }

    #[test]
    fn a_fault_strikes_at_its_offset_in_any_chunking() {
        let first = STREAM.find("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"").unwrap();
        for piece in [1, 7, 1_000] {
            assert_eq!(faulty_text("drop@1", piece), (STREAM[..first].to_owned(), Some(BodyEnd::Closed)));
            assert_eq!(faulty_text("reset@30b", piece), (STREAM[..30].to_owned(), Some(BodyEnd::Reset)));
            assert_eq!(faulty_text("stall@0", piece), (": hello\n\n".to_owned(), Some(BodyEnd::Never)));
            let (cut, end) = faulty_text("cut@1", piece);
            assert_eq!(end, Some(BodyEnd::Regular));
            assert!(cut.starts_with(&STREAM[..first]) && cut.ends_with("data: [DONE]\n\n"), "{cut}");
            assert!(cut.contains(r#""delta":{},"finish_reason":"length""#), "{cut}");
            let (broken, end) = faulty_text("malformed@1", piece);
            assert_eq!(end, None);
            assert!(broken.ends_with("data: [DONE]\n\n") && !broken.contains("\"b\""), "{broken}");
            assert!(faulty_text("error@1", piece).0.contains("endmark_rehearsed_fault"));
            assert_eq!(faulty_text("no-done", piece), (STREAM.replace("data: [DONE]\n\n", ""), None));
            assert_eq!(faulty_text("slow@1ms", piece), (STREAM.to_owned(), None));
        }
    }

    #[test]
    fn a_reply_shorter_than_the_fault_offset_is_unchanged() {
        for fault in ["cut@2", "cut@50", "drop@50", "malformed@50", "error@9999b", "drop@9999b"] {
            assert_eq!(faulty_text(fault, 11), (STREAM.to_owned(), None), "{fault}");
        }
    }
}
