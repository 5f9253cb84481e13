//! Decodes data that each coding's reference library compressed, split at each position.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::{HeaderMap, HeaderValue};
use zstd_safe::{CCtx, OutBuffer};

use super::decoder::DecodeError;
use super::*;

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

fn codings(names: &str) -> Codings {
    Codings::from_headers(&headers(names)).unwrap()
}

fn headers(names: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(names).unwrap());
    headers
}

/// Compresses the parts, flushing after each. Returns the output of each part.
fn compress_parts(name: &str, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    fn flush_parts<W: Write>(
        mut encoder: W,
        parts: &[&[u8]],
        length: impl Fn(&W) -> usize,
        end: impl FnOnce(W) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let mut ends = vec![0];
        for part in parts {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
            ends.push(length(&encoder));
        }
        let whole = end(encoder);
        let mut pieces: Vec<Vec<u8>> = ends.windows(2).map(|pair| whole[pair[0]..pair[1]].to_vec()).collect();
        pieces.push(whole[ends[parts.len()]..].to_vec());
        pieces
    }
    let level = Compression::default();
    match name {
        "gzip" => flush_parts(
            GzEncoder::new(Vec::new(), level),
            parts,
            |e| e.get_ref().len(),
            |e| e.finish().unwrap(),
        ),
        "deflate" => flush_parts(
            ZlibEncoder::new(Vec::new(), level),
            parts,
            |e| e.get_ref().len(),
            |e| e.finish().unwrap(),
        ),
        "raw deflate" => flush_parts(
            DeflateEncoder::new(Vec::new(), level),
            parts,
            |e| e.get_ref().len(),
            |e| e.finish().unwrap(),
        ),
        "br" => flush_parts(
            brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20),
            parts,
            |e| e.get_ref().len(),
            brotli::CompressorWriter::into_inner,
        ),
        _ => {
            let mut context = CCtx::try_create().unwrap();
            let mut pieces = Vec::new();
            for part in parts {
                let mut buffer = vec![0; part.len() + 1024];
                let mut output = OutBuffer::around(buffer.as_mut_slice());
                let mut input = zstd_safe::InBuffer::around(part);
                context.compress_stream(&mut output, &mut input).unwrap();
                assert_eq!(input.pos(), part.len());
                assert_eq!(context.flush_stream(&mut output).unwrap(), 0);
                let length = output.pos();
                buffer.truncate(length);
                pieces.push(buffer);
            }
            let mut buffer = vec![0; 1024];
            let mut output = OutBuffer::around(buffer.as_mut_slice());
            assert_eq!(context.end_stream(&mut output).unwrap(), 0);
            let length = output.pos();
            buffer.truncate(length);
            pieces.push(buffer);
            pieces
        }
    }
}

fn compress(name: &str, plain: &[u8]) -> Vec<u8> {
    compress_parts(name, &[plain]).concat()
}

fn pull_all(decoder: &mut Decoder) -> Result<Vec<u8>, DecodeError> {
    let mut plain = Vec::new();
    loop {
        let piece: Bytes = decoder.pull()?;
        if piece.is_empty() {
            return Ok(plain);
        }
        plain.extend_from_slice(&piece);
    }
}

fn decode(names: &str, pieces: &[&[u8]]) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(&codings(names));
    let mut plain = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        plain.extend(pull_all(&mut decoder)?);
    }
    decoder.end();
    plain.extend(pull_all(&mut decoder)?);
    Ok(plain)
}

#[test]
fn every_coding_is_decoded_in_every_split() {
    let plain: Vec<u8> = (0..90_u32).flat_map(|n| format!("{}:{},", n, n * n % 97).into_bytes()).collect();
    for name in ["gzip", "deflate", "raw deflate", "br", "zstd"] {
        let bytes = compress(name, &plain);
        let coding = name.rsplit(' ').next().unwrap();
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(decode(coding, &[first, second]).as_deref(), Ok(plain.as_slice()), "{name} at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(coding, &single).as_deref(), Ok(plain.as_slice()), "{name}");
    }
}

#[test]
fn flushed_data_is_decoded_immediately() {
    let events: Vec<Vec<u8>> = (0..20).map(|n| format!("data: {{\"n\":{n}}}\n\n").into_bytes()).collect();
    let parts: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
    for name in ["gzip", "deflate", "raw deflate", "br", "zstd"] {
        let mut decoder = Decoder::new(&codings(name.rsplit(' ').next().unwrap()));
        for (piece, event) in compress_parts(name, &parts).iter().zip(&events) {
            decoder.push(piece);
            assert_eq!(pull_all(&mut decoder).as_deref(), Ok(event.as_slice()), "{name}");
        }
    }
}

#[test]
fn a_truncated_compressed_body_is_an_error() {
    let plain = b"what is cut must not look like what is short ".repeat(40);
    for name in CODINGS {
        let bytes = compress(name, &plain);
        for end in 1..bytes.len() {
            assert!(decode(name, &[&bytes[..end]]).is_err(), "{name} cut at {end}");
        }
        assert_eq!(decode(name, &[]), Ok(Vec::new()), "{name}: no bytes are no broken ones");
    }
}

#[test]
fn invalid_compressed_bytes_are_refused_without_a_panic() {
    for name in CODINGS {
        assert!(decode(name, &[b"{\"model\": \"plain\", \"messages\": []}"]).is_err(), "{name}");
        let bytes = compress(name, &b"some text that repeats, some text that repeats".repeat(9));
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut spoilt = bytes.clone();
                spoilt[at] ^= flip;
                let _ = decode(name, &[&spoilt]);
            }
        }
    }
}

#[test]
fn stacked_codings_are_decoded_in_order() {
    let plain = b"one in the other ".repeat(5_000);
    let bytes = compress("zstd", &compress("br", &compress("gzip", &plain)));
    assert_eq!(decode("gzip, br, zstd", &[&bytes]).as_deref(), Ok(plain.as_slice()));
    let two = [compress("gzip", b"two "), compress("gzip", b"members")].concat();
    assert_eq!(decode("x-gzip", &[&two]).as_deref(), Ok(b"two members".as_slice()));
    let two = [compress("zstd", b"two "), compress("zstd", b"frames")].concat();
    assert_eq!(decode("ZSTD", &[&two]).as_deref(), Ok(b"two frames".as_slice()));
}

#[test]
fn a_decompression_bomb_is_decoded_step_by_step() {
    let plain = vec![b' '; 8 * 1024 * 1024];
    for name in CODINGS {
        let bytes = compress(name, &plain);
        assert!(bytes.len() < 64 * 1024, "{name} makes {} of it", bytes.len());
        let mut decoder = Decoder::new(&codings(name));
        decoder.push(&bytes);
        let mut longest = 0;
        for _ in 0..8 {
            longest = longest.max(decoder.pull().unwrap().len());
        }
        assert!((1..2 * 1024 * 1024).contains(&longest), "{name}: {longest}");
    }
}

#[test]
fn a_window_over_eight_mebibytes_is_refused() {
    // A frame whose header requests a window of 2^27 bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (27 - 10) << 3, 0x01, 0x00, 0x00];
    assert!(decode("zstd", &[&frame]).is_err());
}

#[test]
fn the_error_names_an_unknown_coding() {
    assert_eq!(
        Codings::from_headers(&headers("gzip, compress")),
        Err(UnknownCoding::Name("compress".to_owned()))
    );
    assert_eq!(Codings::from_headers(&headers("br, br, br, br")), Err(UnknownCoding::TooMany(4)));
    assert!(codings("identity, ,").is_empty());
    assert!(Codings::from_headers(&HeaderMap::new()).unwrap().is_empty());
}
