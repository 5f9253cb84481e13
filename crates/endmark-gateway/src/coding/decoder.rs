//! Reads what is compressed, as far as it came.

use bytes::{Buf, Bytes, BytesMut};

use super::Codings;
use super::units::{Unit, unit};

/// Output of one step. A unit gives at most that much more than it was asked for.
pub(super) const STEP: usize = 32 * 1024;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The bytes are not of that coding.
    #[error("it is no {coding}")]
    Malformed { coding: &'static str },
    /// It ended within.
    #[error("its {coding} ends within")]
    Truncated { coding: &'static str },
}

/// Decodes a body of one or more codings, a piece at a time.
pub(crate) struct Decoder {
    /// The one that was applied last comes first.
    stages: Vec<Stage>,
    has_ended: bool,
}

struct Stage {
    unit: Box<dyn Unit>,
    /// What is still to be decoded.
    waiting: BytesMut,
    /// A body of no bytes at all is whole in any coding.
    has_begun: bool,
}

impl Decoder {
    /// A decoder for a body that was compressed so.
    pub(crate) fn new(codings: &Codings) -> Self {
        let stage = |coding| Stage { unit: unit(coding), waiting: BytesMut::new(), has_begun: false };
        Self { stages: codings.0.iter().rev().copied().map(stage).collect(), has_ended: false }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(stage) = self.stages.first_mut() {
            stage.waiting.extend_from_slice(bytes);
        }
    }

    /// The body has no more bytes.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// The next piece of the plain body: empty if more has to come first, or after the end.
    pub(crate) fn pull(&mut self) -> Result<Bytes, DecodeError> {
        loop {
            let mut has_moved = false;
            let last = self.stages.len().saturating_sub(1);
            for index in 0..self.stages.len() {
                // Before a stage that has enough to do nothing more is made for it.
                if self.stages.get(index + 1).is_some_and(|next| next.waiting.len() >= STEP) {
                    continue;
                }
                let stage = &mut self.stages[index];
                let mut output = Vec::new();
                stage.has_begun |= !stage.waiting.is_empty();
                let consumed =
                    if stage.has_begun { stage.unit.step(&stage.waiting, &mut output)? } else { 0 };
                stage.waiting.advance(consumed);
                has_moved |= consumed > 0 || !output.is_empty();
                if output.is_empty() {
                    continue;
                }
                if index == last {
                    return Ok(output.into());
                }
                self.stages[index + 1].waiting.extend_from_slice(&output);
            }
            if !has_moved {
                break;
            }
        }
        if self.has_ended {
            for stage in &mut self.stages {
                if stage.has_begun && !stage.unit.is_complete() {
                    return Err(DecodeError::Truncated { coding: stage.unit.name() });
                }
            }
        }
        Ok(Bytes::new())
    }
}
