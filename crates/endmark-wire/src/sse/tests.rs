use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1 << 16;

/// Returns the frames and the tail of an input that arrives in these pieces, and whether a frame was too
/// long.
fn decode(pieces: &[&[u8]], limit: usize) -> (Vec<Frame>, Tail, bool) {
    let mut decoder = Decoder::new(limit);
    let mut frames = Vec::new();
    let mut too_long = false;
    for piece in pieces {
        too_long |= decoder.push(piece).is_err();
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    (frames, decoder.finish(), too_long)
}

/// Returns the events that a client would receive: the frames with data, with their event names.
fn events(input: &str) -> Vec<(Option<String>, String)> {
    let (mut frames, tail, _) = decode(&[input.as_bytes()], LIMIT);
    if let Tail::Frame(frame) = tail {
        frames.push(frame);
    }
    frames.into_iter().filter_map(|frame| Some((frame.event, frame.data?))).collect()
}

fn raw_bytes(frames: &[Frame], tail: &Tail) -> Vec<u8> {
    let mut bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.raw.clone()).collect();
    match tail {
        Tail::Clean => {}
        Tail::Frame(frame) => bytes.extend(&frame.raw),
        Tail::Residue(residue) => bytes.extend(residue),
    }
    bytes
}

/// Cases of the standard (WHATWG HTML, 9.2.6), modelled on the web platform tests.
const VECTORS: [(&str, &[&str]); 20] = [
    (
        "data:msg\ndata:msg\n\n:\nfield:msg\n\nfield:msg\nData:data\n\ndata\n\ndata:end\n\n",
        &["msg\nmsg", "", "end"],
    ),
    ("\u{FEFF}data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n", &["1", "3"]),
    ("\u{FEFF}\u{FEFF}data:1\n\ndata:2\n\n", &["2"]),
    ("\u{FEFF}\ndata:1\n\n", &["1"]),
    ("data:1\r:\0\n:\r\ndata:2\n:long\rdata:3\n:data:fail\r:long\rdata:4\n\n", &["1\n2\n3\n4"]),
    ("retry:1000\ndata:test1\n\nid:test\ndata:test2", &["test1"]),
    ("data:\n\ndata\ndata\n\ndata:test\n\n", &["", "\n", "test"]),
    ("data:\n\ndata\ndata\n\ndata:test", &["", "\n"]),
    (
        "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
        &["\0\n 2\n1\n3\n\n4"],
    ),
    ("data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\n\n", &["test\n"]),
    ("data:\ttest\rdata: \ndata:test\n\n", &["\ttest\n\ntest"]),
    ("data:test\r\ndata\ndata:test\r\n\r\n", &["test\n\ntest"]),
    ("data:\0\n\n\n\n", &["\0"]),
    ("data:one\r\rdata:two\r\r", &["one", "two"]),
    ("data:one\r\n\rdata:two\n\r\n", &["one", "two"]),
    ("\n\r\r\n\ndata: x\n\n", &["x"]),
    ("data: {\"a\": \"ü😀\"}\n\n", &["{\"a\": \"ü😀\"}"]),
    ("data:a:b: c\n\n", &["a:b: c"]),
    (": ping\n\n: ping\n\n", &[]),
    ("", &[]),
];

#[test]
fn the_vectors_of_the_standard_pass() {
    for (input, expected) in VECTORS {
        let data: Vec<String> = events(input).into_iter().map(|(_, data)| data).collect();
        assert_eq!(data, expected, "{input:?}");
    }
}

#[test]
fn the_event_id_and_retry_fields_are_decoded() {
    let read = |text: &str| Frame::read(text.as_bytes().to_vec());
    assert_eq!(read("event: add\ndata:x\n\n").event.as_deref(), Some("add"));
    assert_eq!(read("event: a\nevent: b\ndata:x\n\n").event.as_deref(), Some("b"));
    assert_eq!(read("event: \ndata:x\n\n").event.as_deref(), Some(""));
    assert_eq!(read("id: 1\nid: 2\0\ndata:x\n\n").id.as_deref(), Some("1"));
    assert_eq!(read("retry:03000\nretry:1000x\nretry:\nretry:-1\n\n").retry, Some(3000));
    assert_eq!(read("retry:99999999999999999999\n\n").retry, None);
}

#[test]
fn splitting_into_two_or_three_pieces_does_not_change_the_frames() {
    for (input, _) in VECTORS {
        let bytes = input.as_bytes();
        let whole = decode(&[bytes], LIMIT);
        assert_eq!(raw_bytes(&whole.0, &whole.1), bytes, "{input:?}");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(decode(&pieces, LIMIT), whole, "{input:?} at {first} and {second}");
            }
        }
    }
}

#[test]
fn a_final_carriage_return_waits_for_its_line_feed() {
    let mut decoder = Decoder::new(LIMIT);
    decoder.push(b"data: 1\r\n\r").unwrap();
    assert_eq!(decoder.next_frame(), None);
    decoder.push(b"\n").unwrap();
    assert_eq!(decoder.next_frame().unwrap().raw, b"data: 1\r\n\r\n");
    decoder.push(b"data: 2\r\r").unwrap();
    let Tail::Frame(frame) = decoder.finish() else { panic!("the frame is finished") };
    assert_eq!(frame.data.as_deref(), Some("2"));
}

#[test]
fn invalid_utf8_stays_in_the_raw_frame() {
    let input = b"data: \xF0\x9F\x98\n\n";
    let (frames, _, _) = decode(&[input], LIMIT);
    assert_eq!(frames[0].raw, input);
    assert_eq!(frames[0].data.as_deref(), Some("\u{FFFD}"));
    assert!(frames[0].damaged);
}

#[test]
fn the_limit_counts_bytes_of_one_frame() {
    let exact = b"data: 12\n\n";
    for cut in 0..=exact.len() {
        let pieces = [&exact[..cut], &exact[cut..]];
        assert!(!decode(&pieces, exact.len()).2);
        assert!(decode(&pieces, exact.len() - 1).2);
    }
    // Many small frames in one piece are not a long frame.
    let many = exact.repeat(1000);
    let (frames, tail, too_long) = decode(&[&many], exact.len());
    assert_eq!((frames.len(), tail, too_long), (1000, Tail::Clean, false));
}

#[test]
fn every_byte_past_the_limit_can_still_be_forwarded() {
    let input = [&b"data: 1\n\n"[..], b"data: ", &[b'x'; 100]].concat();
    let mut decoder = Decoder::new(32);
    assert_eq!(decoder.push(&input), Err(FrameTooLong { limit: 32 }));
    assert_eq!(decoder.push(b"not kept"), Err(FrameTooLong { limit: 32 }));
    let first = decoder.next_frame().unwrap();
    assert_eq!(decoder.next_frame(), None);
    let Tail::Residue(residue) = decoder.finish() else { panic!("the long frame is left") };
    assert_eq!([first.raw, residue].concat(), input);
}

#[test]
fn an_endless_line_is_not_buffered() {
    let mut decoder = Decoder::new(1000);
    for _ in 0..1000 {
        let _ = decoder.push(&[b'x'; 100]);
    }
    assert!(decoder.buffered_bytes() <= 1100, "{}", decoder.buffered_bytes());
}

#[test]
fn an_encoded_event_round_trips() {
    for data in ["{}", "", "a\nb", "a\r\nb\n", " leading", "ü"] {
        let (frames, tail, _) = decode(&[&data_frame(data.as_bytes())], LIMIT);
        assert_eq!(frames[0].data.as_deref(), Some(data.replace("\r\n", "\n").as_str()));
        assert_eq!((frames.len(), tail), (1, Tail::Clean));
    }
    assert_eq!(comment("two\nlines"), b": two\n: lines\n\n");
    assert_eq!(decode(&[&comment("two\nlines")], LIMIT).0[0].data, None);
}

#[test]
fn replaced_data_keeps_the_other_lines() {
    let frame = Frame::read(b"event: x\r\nid: 7\r\ndata: a\r\n: note\r\ndata: b\r\n\r\n".to_vec());
    assert_eq!(frame.with_data(b"{}"), b"event: x\r\nid: 7\r\ndata: {}\r\n: note\r\n\r\n");
    assert_eq!(Frame::read(b"data: cut".to_vec()).with_data(b"{}"), b"data: {}\n");
}

#[test]
fn replaced_data_follows_a_byte_order_mark() {
    for (input, expected) in [
        ("\u{FEFF}data: a\n\n", "\u{FEFF}data: NEW\n\n"),
        ("\u{FEFF}data: a\ndata: b\n\n", "\u{FEFF}data: NEW\n\n"),
        ("\u{FEFF}\ndata: a\n\n", "\u{FEFF}\ndata: NEW\n\n"),
        ("\u{FEFF}data: a\r\r", "\u{FEFF}data: NEW\r\r"),
    ] {
        let (mut frames, tail, _) = decode(&[input.as_bytes()], LIMIT);
        if let Tail::Frame(frame) = tail {
            frames.push(frame);
        }
        assert_eq!(frames[0].with_data(b"NEW"), expected.as_bytes(), "{input:?}");
    }
    // Later in a stream these bytes are part of the field name, so the line is not a data line and is kept.
    let (frames, _, _) = decode(&["data: a\n\n\u{FEFF}data: b\ndata: c\n\n".as_bytes()], LIMIT);
    assert_eq!(frames[1].with_data(b"NEW"), "\u{FEFF}data: b\ndata: NEW\n\n".as_bytes());
}

#[test]
fn replaced_data_keeps_the_blank_line_with_mixed_line_ends() {
    for (input, expected) in [
        ("data: a\r\nA\rdata: b\n\n", "data: NEW\r\nA\r\n\n"),
        ("data: a\rdata: b\n\n", "data: NEW\r\n\n"),
        ("data: a\rdata: b\r\n\n", "data: NEW\r\n\n"),
        ("data: a\rdata: b\n\r\n", "data: NEW\r\r\n"),
        ("data: a\ndata: b\r\r", "data: NEW\n\r"),
    ] {
        let (mut frames, tail, _) = decode(&[input.as_bytes()], LIMIT);
        if let Tail::Frame(frame) = tail {
            frames.push(frame);
        }
        let changed = frames[0].with_data(b"NEW");
        assert_eq!(changed, expected.as_bytes(), "{input:?}");
        assert_eq!(events(expected), [(None, "NEW".to_owned())], "{input:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any bytes and any chunking, no bytes are lost and the frames are equal.
    #[test]
    fn frames_do_not_depend_on_chunking(
        parts in prop::collection::vec(prop::sample::select(vec![
            "data", ":", " ", "\n", "\r", "\r\n", "\n\n", "event", "x", "\u{FEFF}", "ü", "😀", "{\"a\":1}", "\0",
        ]), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        limit in 4_usize..200,
    ) {
        let input = parts.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]).collect();
        let whole = decode(&[&input], limit);
        let pieced = decode(&pieces, limit);
        prop_assert_eq!(&pieced.0, &whole.0);
        prop_assert_eq!(pieced.2, whole.2);
        prop_assert_eq!(raw_bytes(&whole.0, &whole.1), &input[..]);
        if !whole.2 {
            prop_assert_eq!(pieced.1, whole.1);
        }
    }
}
