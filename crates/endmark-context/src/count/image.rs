//! Reads the size of an image from its first bytes. The length of its base64 text does not matter.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Size that is assumed for an image whose size cannot be read.
pub(super) const ASSUMED_DIMENSIONS: Dimensions = Dimensions { width: 1_024, height: 1_024 };

/// Only this many bytes of base64 are decoded. A JPEG may have a preview and a colour profile before its
/// size.
const MAX_DECODED_BASE64_BYTES: usize = 256 << 10;

/// Width and height of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Width in pixels.
    pub width: u64,
    /// Height in pixels.
    pub height: u64,
}

impl Dimensions {
    pub(super) fn long_edge(self) -> u64 {
        self.width.max(self.height)
    }

    /// Scales the size down so that no edge is longer than `longest`.
    pub(super) fn within_edge(self, longest: u64) -> Self {
        self.scale(longest, self.long_edge())
    }

    /// Scales the size down so that the shorter edge is at most `longest`.
    pub(super) fn with_short_edge(self, longest: u64) -> Self {
        self.scale(longest, self.width.min(self.height))
    }

    fn scale(self, to: u64, from: u64) -> Self {
        if from <= to {
            return self;
        }
        let scale = |edge: u64| (edge.saturating_mul(to) / from.max(1)).max(1);
        Self { width: scale(self.width), height: scale(self.height) }
    }

    /// Returns how many squares with this edge length cover the image.
    pub(super) fn patches(self, edge: u64) -> u64 {
        self.width.div_ceil(edge).saturating_mul(self.height.div_ceil(edge))
    }
}

/// Returns the size of a base64-encoded PNG, JPEG, GIF or WebP image. Returns `None` for any other input.
///
/// ```
/// use endmark_context::count::dimensions;
/// let png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAUCAYAAAC07w7bAAAA";
/// let size = dimensions(png).unwrap();
/// assert_eq!((size.width, size.height), (10, 20));
/// ```
pub fn dimensions(base64: &str) -> Option<Dimensions> {
    let end = base64.len().min(MAX_DECODED_BASE64_BYTES) / 4 * 4;
    let head = base64.as_bytes().get(..end)?;
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let bytes = GeneralPurpose::new(&base64::alphabet::STANDARD, config).decode(head).ok()?;
    let found = png_dimensions(&bytes)
        .or_else(|| gif_dimensions(&bytes))
        .or_else(|| webp_dimensions(&bytes))
        .or_else(|| jpeg_dimensions(&bytes));
    found.filter(|size| size.width > 0 && size.height > 0)
}

fn read_number(bytes: &[u8], at: usize, length: usize, big_endian: bool) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(if big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) })
}

fn png_dimensions(bytes: &[u8]) -> Option<Dimensions> {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n").then_some(())?;
    Some(Dimensions { width: read_number(bytes, 16, 4, true)?, height: read_number(bytes, 20, 4, true)? })
}

fn gif_dimensions(bytes: &[u8]) -> Option<Dimensions> {
    (bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")).then_some(())?;
    Some(Dimensions { width: read_number(bytes, 6, 2, false)?, height: read_number(bytes, 8, 2, false)? })
}

/// Reads the size of a WebP image, which lossy, lossless and extended files store in different ways.
fn webp_dimensions(bytes: &[u8]) -> Option<Dimensions> {
    (bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP").then_some(())?;
    let (width, height) = match bytes.get(12..16)? {
        b"VP8 " => (read_number(bytes, 26, 2, false)? & 0x3fff, read_number(bytes, 28, 2, false)? & 0x3fff),
        b"VP8L" => {
            let bits = read_number(bytes, 21, 4, false)?;
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        b"VP8X" => (read_number(bytes, 24, 3, false)? + 1, read_number(bytes, 27, 3, false)? + 1),
        _ => return None,
    };
    Some(Dimensions { width, height })
}

/// Reads the segments of a JPEG image up to the one that begins a frame, which contains the size.
fn jpeg_dimensions(bytes: &[u8]) -> Option<Dimensions> {
    bytes.starts_with(b"\xff\xd8").then_some(())?;
    let mut at = 2;
    loop {
        let marker = match (bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xff, 0xff) => {
                at += 1;
                continue;
            }
            (0xff, marker) => marker,
            _ => return None,
        };
        let begins_frame = (0xc0..=0xcf).contains(&marker) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if begins_frame {
            return Some(Dimensions {
                height: read_number(bytes, at + 5, 2, true)?,
                width: read_number(bytes, at + 7, 2, true)?,
            });
        }
        at += 2 + usize::try_from(read_number(bytes, at + 2, 2, true)?).ok()?;
    }
}
