//! Decodes compressed bytes as they arrive.

use bytes::{Buf, Bytes, BytesMut};

use super::Codings;
use super::coding_decoders::{CodingDecoder, decoder_for};

/// Target size of the output of one step, in bytes. The actual size is at most twice as large.
pub(super) const STEP_OUTPUT_BYTES: usize = 32 * 1024;

/// Error of a body that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The bytes are not valid in this coding.
    #[error("it is not valid {coding}")]
    Malformed { coding: &'static str },
    /// The body ended prematurely.
    #[error("its {coding} data ends too early")]
    Truncated { coding: &'static str },
}

/// Decodes a body with one or more codings, a piece at a time.
pub(crate) struct Decoder {
    /// The decoders, starting with the coding that was applied last.
    stages: Vec<DecoderStage>,
    has_ended: bool,
}

struct DecoderStage {
    decoder: Box<dyn CodingDecoder>,
    /// Bytes that are not decoded yet.
    waiting: BytesMut,
    /// Whether any byte has arrived. An empty body is valid for every coding.
    has_begun: bool,
}

impl Decoder {
    /// Creates a decoder for these codings.
    pub(crate) fn new(codings: &Codings) -> Self {
        let stage = |coding| DecoderStage {
            decoder: decoder_for(coding),
            waiting: BytesMut::new(),
            has_begun: false,
        };
        Self { stages: codings.0.iter().rev().copied().map(stage).collect(), has_ended: false }
    }

    /// Adds the next bytes of the body.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(stage) = self.stages.first_mut() {
            stage.waiting.extend_from_slice(bytes);
        }
    }

    /// Marks the end of the body.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns the next decoded piece. It is empty at the end, and if more input is needed.
    pub(crate) fn pull(&mut self) -> Result<Bytes, DecodeError> {
        loop {
            let mut has_progressed = false;
            let last = self.stages.len().saturating_sub(1);
            for index in 0..self.stages.len() {
                // Skip a stage while the next one still has enough input.
                if self.stages.get(index + 1).is_some_and(|next| next.waiting.len() >= STEP_OUTPUT_BYTES) {
                    continue;
                }
                let stage = &mut self.stages[index];
                let mut output = Vec::new();
                stage.has_begun |= !stage.waiting.is_empty();
                let consumed =
                    if stage.has_begun { stage.decoder.step(&stage.waiting, &mut output)? } else { 0 };
                stage.waiting.advance(consumed);
                has_progressed |= consumed > 0 || !output.is_empty();
                if output.is_empty() {
                    continue;
                }
                if index == last {
                    return Ok(output.into());
                }
                self.stages[index + 1].waiting.extend_from_slice(&output);
            }
            if !has_progressed {
                break;
            }
        }
        if self.has_ended {
            for stage in &mut self.stages {
                if stage.has_begun && !stage.decoder.is_complete() {
                    return Err(DecodeError::Truncated { coding: stage.decoder.name() });
                }
            }
        }
        Ok(Bytes::new())
    }
}
