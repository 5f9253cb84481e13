//! All readers get the same parts of a kept output (CX-5).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use endmark_context::cap::Limits;
use endmark_context::read::{NumberRange, Part, PartContent, PartLocation};
use endmark_store::{Handle, NewOutput, Reader, Store, StoreLocation};

/// Reads these parts of an output with this content.
async fn parts(output: &[u8], parts: &[Part]) -> Vec<Result<(PartLocation, String), String>> {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let store = Store::open(&location).unwrap();
    let handle = Handle::random().unwrap();
    let new = NewOutput { handle: handle.clone(), owner: "local".to_owned(), keep_days: 0, max_bytes: 0 };
    let mut draft = store.begin_output(new).await.unwrap();
    draft.push(output).await.unwrap();
    draft.keep("text").await.unwrap();
    let reader = Reader::open(&location).unwrap();
    let kept = reader.output(&handle, "local").unwrap();
    let limits = Limits { most: 1_000, ..Limits::default() };
    let read = |part: &Part| {
        let excerpt = kept.part(part, &limits).map_err(|error| error.to_string())?;
        let text = match excerpt.content {
            PartContent::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            PartContent::Capped(capped) => capped.text,
        };
        Ok((excerpt.location, text))
    };
    let read = parts.iter().map(read).collect();
    store.close().await;
    read
}

fn lines(from: u64, to: u64) -> Part {
    Part::Lines(NumberRange { from: Some(from), to: Some(to) })
}

#[tokio::test]
async fn every_part_is_within_the_limit_and_reports_its_position() {
    let log = (1..=600).fold(String::new(), |log, line| log + &format!("line {line}\n"));
    let none = Part::Bytes(NumberRange { from: Some(5), to: Some(5) });
    let bytes = Part::Bytes(NumberRange { from: Some(7), to: Some(14) });
    let wanted =
        [lines(599, 999), Part::Grep("5[0-9]0$".to_owned()), Part::Page(2), bytes, none, lines(1, 600)];
    let read = parts(log.as_bytes(), &wanted).await;
    let read: Vec<(PartLocation, String)> = read.into_iter().map(Result::unwrap).collect();
    assert_eq!(read[0], (PartLocation::Lines([599, 600]), "line 599\nline 600\n".to_owned()));
    assert_eq!(read[1].0, PartLocation::Matches(10));
    assert!(read[1].1.starts_with("500:line 500\n510:line 510\n"), "{}", read[1].1);
    let PartLocation::Page { page: 2, ref bytes, .. } = read[2].0 else { panic!("{:?}", read[2].0) };
    let range = usize::try_from(bytes.start).unwrap()..usize::try_from(bytes.end).unwrap();
    assert_eq!(log[range], read[2].1);
    assert_eq!(read[3], (PartLocation::Bytes(7..14), log[7..14].to_owned()));
    assert_eq!(read[4], (PartLocation::Bytes(5..5), String::new()));
    assert!(read.iter().all(|(_, text)| text.chars().count() <= 1_000));
    assert!(read[5].1.contains("left out"), "{}", read[5].1);
}

#[tokio::test]
async fn a_line_that_spans_chunks_is_matched_as_a_whole() {
    // A line that is longer than the largest part that is passed on at once.
    let mut output = b"first\n".to_vec();
    output.extend(b"x".repeat(9 << 20));
    output.extend(b"END\ncaf\xE9 ERROR and as much as makes it a text\n");
    let read = parts(&output, &[lines(2, 2), Part::Grep("ERROR".to_owned())]).await;
    let long = &read[0].as_ref().unwrap().1;
    assert!(long.ends_with("xEND\n"), "{}", &long[long.len() - 80..]);
    let (place, text) = read[1].as_ref().unwrap();
    assert_eq!(
        (place, text.as_str()),
        (&PartLocation::Matches(1), "3:caf\u{FFFD} ERROR and as much as makes it a text\n")
    );
}

#[tokio::test]
async fn a_missing_part_is_an_error_but_no_match_is_not() {
    let open = |from| Part::Bytes(NumberRange { from: Some(from), to: None });
    let wanted = [
        Part::Page(9),
        lines(0, 2),
        lines(8, 9),
        open(90),
        Part::Grep("(".to_owned()),
        Part::Pointer("/a".to_owned()),
        Part::Grep("nobody".to_owned()),
    ];
    let read = parts(b"one\ntwo\n", &wanted).await;
    assert!(read[..6].iter().all(Result::is_err), "{read:?}");
    assert_eq!(read[6], Ok((PartLocation::Matches(0), String::new())));
    let json = parts(b"{\"a\": [1, 2.50]}", &[Part::Pointer("/a/1".to_owned())]).await;
    assert_eq!(json, [Ok((PartLocation::Value, "2.50".to_owned()))]);
}
