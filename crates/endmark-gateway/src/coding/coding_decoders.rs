//! One decoder per coding, each based on an established library.

use std::io::Write;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::Coding;
use super::decoder::{DecodeError, STEP_OUTPUT_BYTES};

/// Maximum window of a Zstandard stream: 8 MiB, as RFC 9659 requires for HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Deflate expands by a factor of at most 1,032, so limiting a step's input limits its output.
const GZIP_INPUT_BYTES: usize = 1024;

/// Decodes one coding.
pub(super) trait CodingDecoder: Send {
    /// Returns the name of the coding for error messages.
    fn name(&self) -> &'static str;

    /// Decodes as much of `input` as possible and appends it to `output`. Returns how many bytes of `input`
    /// it consumed.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, DecodeError>;

    /// Whether the input is a complete body at this point.
    fn is_complete(&mut self) -> bool;
}

/// Returns the decoder of this coding.
pub(super) fn decoder_for(coding: Coding) -> Box<dyn CodingDecoder> {
    match coding {
        Coding::Gzip => Box::new(Gzip { inner: MultiGzDecoder::new(Vec::new()) }),
        Coding::Deflate => Box::new(Deflate { inner: None, is_complete: false }),
        Coding::Brotli => Box::new(Brotli {
            state: Box::new(BrotliState::new(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            )),
            is_complete: false,
        }),
        Coding::Zstd => Box::new(Zstd { context: None, is_complete: true }),
    }
}

struct Gzip {
    inner: MultiGzDecoder<Vec<u8>>,
}

impl CodingDecoder for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, DecodeError> {
        let malformed = |_| DecodeError::Malformed { coding: "gzip" };
        let input = input.get(..GZIP_INPUT_BYTES).unwrap_or(input);
        let consumed = self.inner.write(input).map_err(malformed)?;
        self.inner.flush().map_err(malformed)?;
        output.append(self.inner.get_mut());
        Ok(consumed)
    }

    fn is_complete(&mut self) -> bool {
        self.inner.try_finish().is_ok()
    }
}

/// `deflate` means the zlib format (RFC 9110, section 8.4.1.2). Some servers omit zlib's header.
struct Deflate {
    inner: Option<Decompress>,
    is_complete: bool,
}

impl CodingDecoder for Deflate {
    fn name(&self) -> &'static str {
        "deflate"
    }

    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, DecodeError> {
        let malformed = DecodeError::Malformed { coding: "deflate" };
        if self.is_complete {
            return if input.is_empty() { Ok(0) } else { Err(malformed) };
        }
        let inner = match &mut self.inner {
            Some(inner) => inner,
            None => match input {
                // A single byte does not show whether there is a zlib header.
                [] | [_] => return Ok(0),
                [first, second, ..] => {
                    let has_frame = first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0;
                    self.inner.insert(Decompress::new(has_frame))
                }
            },
        };
        output.resize(STEP_OUTPUT_BYTES, 0);
        let (read, written) = (inner.total_in(), inner.total_out());
        let status = inner.decompress(input, output, FlushDecompress::None).map_err(|_| malformed)?;
        let count = |total: u64, before: u64| usize::try_from(total - before).unwrap_or(usize::MAX);
        output.truncate(count(inner.total_out(), written));
        self.is_complete = status == Status::StreamEnd;
        Ok(count(inner.total_in(), read))
    }

    fn is_complete(&mut self) -> bool {
        self.is_complete
    }
}

struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    is_complete: bool,
}

impl CodingDecoder for Brotli {
    fn name(&self) -> &'static str {
        "brotli"
    }

    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, DecodeError> {
        let malformed = DecodeError::Malformed { coding: "brotli" };
        if self.is_complete {
            return if input.is_empty() { Ok(0) } else { Err(malformed) };
        }
        output.resize(STEP_OUTPUT_BYTES, 0);
        let (mut available_in, mut consumed) = (input.len(), 0);
        let (mut available_out, mut produced, mut total) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut consumed,
            input,
            &mut available_out,
            &mut produced,
            output,
            &mut total,
            &mut self.state,
        );
        output.truncate(produced);
        match result {
            BrotliResult::ResultFailure => Err(malformed),
            BrotliResult::ResultSuccess => {
                self.is_complete = true;
                Ok(consumed)
            }
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(consumed),
        }
    }

    fn is_complete(&mut self) -> bool {
        self.is_complete
    }
}

struct Zstd {
    /// The decoder's state, allocated with the first byte because it is large.
    context: Option<DCtx<'static>>,
    /// Whether the last frame is complete and no further frame has begun.
    is_complete: bool,
}

impl CodingDecoder for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, DecodeError> {
        let malformed = |_| DecodeError::Malformed { coding: "zstd" };
        if input.is_empty() && self.is_complete {
            return Ok(0);
        }
        let context = if let Some(context) = &mut self.context {
            context
        } else {
            let mut context = DCtx::try_create().ok_or_else(|| malformed(0))?;
            context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).map_err(malformed)?;
            self.context.insert(context)
        };
        output.resize(STEP_OUTPUT_BYTES, 0);
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(output.as_mut_slice());
        let hint = context.decompress_stream(&mut target, &mut source).map_err(malformed)?;
        let produced = target.pos();
        output.truncate(produced);
        if source.pos() > 0 || produced > 0 {
            self.is_complete = hint == 0;
        }
        Ok(source.pos())
    }

    fn is_complete(&mut self) -> bool {
        self.is_complete
    }
}
