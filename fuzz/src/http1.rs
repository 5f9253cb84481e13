//! HTTP/1.1 connections of clients. The input contains all bytes that the client sends.

use endmark_wire::http1::{
    AccessRules, BodyLength, ChunkReader, Fault, Framing, Head, HeadLimits, SenderHeaders,
};

use crate::input::Numbers;

const BOUNDS: HeadLimits = HeadLimits { bytes: 512, fields: 8 };

/// Checks that chunking does not affect framing, and that `httparse` reads each accepted head in the same
/// way. Each admitted request must name this machine as its host, and its origin must match that host.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    let whole = read(&[bytes]);
    let singles: Vec<&[u8]> = bytes.chunks(1).collect();
    for pieces in [numbers.split_pieces(bytes), numbers.split_pieces(bytes), singles] {
        let in_pieces = read(&pieces);
        assert_eq!(in_pieces.heads, whole.heads, "in {} pieces", pieces.len());
        assert_eq!(
            in_pieces.fault.is_some(),
            whole.fault.is_some(),
            "{:?} {:?}",
            in_pieces.fault,
            whole.fault
        );
        assert!(in_pieces.passed >= whole.passed || whole.fault.is_some());
    }
    for (start, end) in &whole.heads {
        check_head(&bytes[*start..*end]);
    }
    check_chunks(bytes);
    check_visitors(bytes);
}

/// What framing accepts of a connection.
#[derive(Default)]
struct FramingResult {
    /// Start and end offsets of the heads.
    heads: Vec<(usize, usize)>,
    passed: usize,
    fault: Option<Fault>,
}

fn read(pieces: &[&[u8]]) -> FramingResult {
    let mut framing = Framing::new(BOUNDS);
    let mut read = FramingResult::default();
    let mut shown = Vec::new();
    for piece in pieces {
        shown.extend_from_slice(piece);
        loop {
            match framing.pass(&shown[read.passed..]) {
                Ok(step) => {
                    assert!(step.skipped + step.bytes <= shown.len() - read.passed);
                    assert!(step.skipped == 0 || (step.bytes == 0 && !step.begins_request));
                    read.passed += step.skipped;
                    if step.begins_request {
                        assert!(step.bytes > 0 && step.bytes <= BOUNDS.bytes);
                        read.heads.push((read.passed, read.passed + step.bytes));
                    }
                    read.passed += step.bytes;
                    if step.skipped + step.bytes == 0 {
                        break;
                    }
                }
                Err(fault) => {
                    read.fault = Some(fault);
                    return read;
                }
            }
        }
    }
    read
}

/// Compares an accepted head with the result of `httparse`.
fn check_head(bytes: &[u8]) {
    let head = Head::read(bytes, BOUNDS).expect("it passed");
    let mut fields = [httparse::EMPTY_HEADER; 8];
    let mut other = httparse::Request::new(&mut fields);
    let parsed = other.parse(bytes).expect("another parser reads it, too");
    assert_eq!(parsed, httparse::Status::Complete(bytes.len()));
    assert_eq!((other.method, other.path), (Some(head.method), Some(head.target)));
    let values = |name: &str| -> Vec<&[u8]> {
        let named = other.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.trim_ascii()).collect()
    };
    assert_eq!(values("host"), head.host.into_iter().collect::<Vec<_>>());
    match head.body {
        BodyLength::Chunked => {
            assert!(values("content-length").is_empty());
            assert_eq!(values("transfer-encoding").len(), 1);
        }
        BodyLength::Bytes(length) => {
            assert!(values("transfer-encoding").is_empty());
            let given = values("content-length");
            assert!(given.len() <= 1);
            let given =
                given.first().map_or(Ok(0), |given| std::str::from_utf8(given).unwrap_or("x").parse());
            assert_eq!(given, Ok(length));
        }
    }
}

/// Checks that splits do not affect where a chunked body ends, and that `httparse` finds the same chunk
/// sizes.
fn check_chunks(bytes: &[u8]) {
    let mut whole = ChunkReader::default();
    let passed = whole.read(bytes);
    let mut singly = ChunkReader::default();
    let mut count = 0;
    for byte in bytes.chunks(1) {
        match singly.read(byte) {
            Ok(taken) => count += taken,
            Err(_) => {
                assert!(passed.is_err());
                return;
            }
        }
    }
    assert_eq!((passed, singly.is_complete()), (Ok(count), whole.is_complete()));
    if let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(bytes) {
        let has_begun = usize::try_from(size).is_ok_and(|size| size > bytes.len());
        assert!(!(whole.is_complete() && has_begun), "a chunk of {size} bytes is over");
    }
}

/// Checks admission. The first line of the input is the host, and the second line is the origin.
fn check_visitors(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (host, origin) = (lines.next(), lines.next());
    let Ok(ours) = AccessRules::new(true, &[], &[]) else { panic!("an empty list of names is valid") };
    if ours.admit(SenderHeaders { host, origins: origin.as_slice(), sites: &[] }).is_err() {
        return;
    }
    let host =
        String::from_utf8(host.unwrap_or_default().to_vec()).expect("a name is text").to_ascii_lowercase();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_address =
        name.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    assert!(is_address || name == "localhost" || name.ends_with(".localhost"), "{host}");
    if let Some(origin) = origin {
        let origin = String::from_utf8(origin.to_vec()).expect("an origin is text").to_ascii_lowercase();
        assert_eq!(origin.split_once("://").map(|(_, authority)| authority), Some(host.as_str()));
    }
}
