//! Event streams (PC-9). The input contains the bytes of a stream.

use endmark_wire::sse::{Decoder, Frame, Tail, comment, data_frame};

use crate::input::Numbers;

/// A limit that no input reaches.
const NO_LIMIT: usize = 1 << 30;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Checks that decoding loses nothing, does not depend on splits and enforces the frame limit, and that
/// written frames are read back.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    let whole = read(&[bytes], NO_LIMIT);
    assert!(!whole.too_long);
    assert_eq!(whole.raw(), bytes);
    let singles: Vec<&[u8]> = bytes.chunks(1).collect();
    let limit = numbers.below(bytes.len() + 2);
    let limited = read(&[bytes], limit);
    for pieces in [numbers.split_pieces(bytes), numbers.split_pieces(bytes), singles] {
        assert_eq!(read(&pieces, NO_LIMIT), whole, "in {} pieces", pieces.len());
        let in_pieces = read(&pieces, limit);
        assert_eq!(in_pieces.too_long, limited.too_long, "limit {limit} in {} pieces", pieces.len());
        assert_eq!(in_pieces.frames, limited.frames, "limit {limit} in {} pieces", pieces.len());
        assert!(bytes.starts_with(&in_pieces.raw()), "limit {limit}");
        assert!(in_pieces.too_long || in_pieces.raw() == bytes, "limit {limit}");
    }
    assert!(limited.frames.iter().all(|frame| frame.raw.len() <= limit));
    assert_eq!(limited.frames, whole.frames[..limited.frames.len()]);
    for (position, frame) in whole.frames.iter().enumerate() {
        check_single_frame(frame, position == 0);
    }
    check_encoded(bytes);
}

/// Everything that a decoder returns for a stream.
#[derive(Debug, PartialEq)]
struct DecodedStream {
    frames: Vec<Frame>,
    tail: Tail,
    too_long: bool,
}

impl DecodedStream {
    fn raw(&self) -> Vec<u8> {
        let mut raw: Vec<u8> = self.frames.iter().flat_map(|frame| frame.raw.iter().copied()).collect();
        match &self.tail {
            Tail::Clean => {}
            Tail::Frame(frame) => raw.extend_from_slice(&frame.raw),
            Tail::Residue(rest) => raw.extend_from_slice(rest),
        }
        raw
    }
}

fn read(pieces: &[&[u8]], limit: usize) -> DecodedStream {
    let mut decoder = Decoder::new(limit);
    let mut frames = Vec::new();
    let mut too_long = false;
    for piece in pieces {
        let failed = decoder.push(piece).is_err();
        assert!(failed || !too_long, "an error passes");
        too_long |= failed;
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
        assert!(too_long || decoder.buffered_bytes() <= limit, "{} bytes are held", decoder.buffered_bytes());
    }
    DecodedStream { frames, tail: decoder.finish(), too_long }
}

/// Checks that a frame is read in the same way without the rest of the stream, and that replacing its data
/// changes nothing else.
fn check_single_frame(frame: &Frame, is_first: bool) {
    if !is_first || !frame.raw.starts_with(BYTE_ORDER_MARK) {
        assert_eq!(Frame::read(frame.raw.clone()), *frame);
    }
    if frame.data.is_none() {
        return;
    }
    // A byte order mark has a meaning only at the start of a stream, so an empty frame precedes any later
    // frame.
    let before: &[u8] = if is_first { b"" } else { b"\n" };
    let mut changed = read(&[before, &frame.with_data(b"{\"a\":\n1}")], NO_LIMIT);
    if !is_first {
        assert_eq!(changed.frames.remove(0).raw, before);
    }
    // A frame that ends with a carriage return is reported only at the end, because a line feed could follow.
    let (([again], Tail::Clean) | ([], Tail::Frame(again))) = (changed.frames.as_slice(), &changed.tail)
    else {
        panic!("{frame:?} becomes {changed:?}");
    };
    assert_eq!(again.raw.starts_with(BYTE_ORDER_MARK), frame.raw.starts_with(BYTE_ORDER_MARK), "{frame:?}");
    assert_eq!(again.data.as_deref(), Some("{\"a\":\n1}"), "{frame:?}");
    assert_eq!((&again.event, &again.id, again.retry), (&frame.event, &frame.id, frame.retry), "{frame:?}");
}

/// Checks that encoded data and comments are read back as one frame.
fn check_encoded(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    for (written, data) in [(data_frame(bytes), Some(lines.as_str())), (comment(text), None)] {
        let found = read(&[&written], NO_LIMIT);
        assert_eq!(found.tail, Tail::Clean);
        let [frame] = found.frames.as_slice() else { panic!("{written:?} is {found:?}") };
        assert_eq!(frame.data.as_deref(), data);
        assert!(frame.event.is_none() && frame.id.is_none() && frame.retry.is_none());
    }
}
