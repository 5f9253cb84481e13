use super::*;
use proptest::prelude::*;

fn capture(limit: usize, chunks: &[Vec<u8>]) -> CapturedStream {
    let mut capture = StreamCapture::new(limit);
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish()
}

#[test]
fn a_short_output_is_kept_whole_and_a_long_one_keeps_head_and_tail() {
    assert_eq!(capture(8, &[b"abcd".to_vec(), b"efgh".to_vec()]).head, b"abcdefgh");
    let more = capture(8, &[b"abcd".to_vec(), b"efgh\ni\n".to_vec()]);
    assert_eq!((more.head.as_slice(), more.tail.as_deref()), (&b"abcdef"[..], Some(&b"i\n"[..])));
    assert_eq!((more.bytes, more.newlines, more.characters), (11, 2, 11));
    assert!(!more.is_whole());
    let none = capture(0, &[b"ab".to_vec()]);
    assert_eq!((none.head.as_slice(), none.tail.as_deref(), none.bytes), (&b""[..], Some(&b""[..]), 2));
}

/// Generates bytes that often contain beginnings, middles and ends of characters.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"a".to_vec()),
        Just(b"\n".to_vec()),
        Just("é".as_bytes().to_vec()),
        Just("😀".as_bytes().to_vec()),
        Just(b"\xf0\x9f".to_vec()),
        Just(b"\xed\xa0".to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn counts_are_exact_and_head_and_tail_match_the_stream(
        stream in bytes(), limit in 0_usize..60, size in 1_usize..9,
    ) {
        let chunks: Vec<Vec<u8>> = stream.chunks(size).map(<[u8]>::to_vec).collect();
        let kept = capture(limit, &chunks);
        let lossy = String::from_utf8_lossy(&stream);
        prop_assert_eq!(kept.bytes, stream.len() as u64);
        prop_assert_eq!(kept.characters, lossy.chars().count() as u64);
        prop_assert_eq!(kept.newlines, lossy.matches('\n').count() as u64);
        let invalid = stream.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
        prop_assert_eq!(kept.invalid_sequences, invalid as u64);
        prop_assert!(stream.starts_with(&kept.head));
        prop_assert!(kept.head.len() <= limit);
        match &kept.tail {
            None => prop_assert_eq!(&kept.head, &stream),
            Some(tail) => {
                prop_assert!(stream.ends_with(tail));
                prop_assert_eq!(kept.head.len() + tail.len(), limit);
                prop_assert!(stream.len() > limit);
            }
        }
    }
}
