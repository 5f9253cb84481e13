use super::{AskedFrom, Format, StitchStream};

const STORY: &str = "It was a quiet morning, and the gulls had not yet found the boats. Mira counted the nets \
    twice, because her father had taught her to count everything twice, and then once more for the sea. Nobody \
    else was on the pier, and the ropes were still wet from the night. She wrote the number into the green book, \
    closed it, and waited for the harbour bell, which had been late every day since the storm in March took its \
    old clapper away. When it rang at last the first boat was already behind the mole, and she could read its name.";

/// Returns the certain part of a continuation that arrived as one chunk.
fn certain(initial: &str, continuation: &str, format: &Format, from: AskedFrom) -> Option<(usize, String)> {
    let mut stream = StitchStream::new(initial, format, from);
    stream.push(continuation);
    stream.certain().map(|certain| (certain.keep, format!("{}{}", certain.glue, certain.rest)))
}

/// Returns the number of bytes of a continuation that must arrive before any of it is certain.
fn bytes_until_certain(initial: &str, continuation: &str, format: &Format, from: AskedFrom) -> Option<usize> {
    let mut stream = StitchStream::new(initial, format, from);
    (0..continuation.len()).find_map(|at| {
        stream.push(&continuation[at..=at]);
        stream.certain().map(|_| at + 1)
    })
}

/// A cut string. The following continuation repeats words after an announcement.
const CUT: &str = "{\"a\": \"It was a quiet mor";
const REPEATED_REST: &str = "Sure, here is the rest:\n\na quiet morning, and the gulls had not yet found the boats. Mira \
    counted the nets twice, because her father had taught her to count everything twice, and then once more.";

#[test]
fn text_is_released_after_two_equal_passes() {
    assert_eq!(bytes_until_certain(CUT, REPEATED_REST, &Format::Json, AskedFrom::Unknown), Some(192));
    let (_, rest) = REPEATED_REST.split_at(REPEATED_REST.find("ning, and").unwrap());
    let found = certain(CUT, REPEATED_REST, &Format::Json, AskedFrom::Unknown);
    assert_eq!(found, Some((CUT.len(), rest.to_owned())));
}

#[test]
fn whitespace_and_text_after_a_fault_are_never_certain() {
    let blanks = " ".repeat(1_000);
    assert_eq!(certain("{\"a\": 1", &blanks, &Format::Json, AskedFrom::Cut), None);
    assert_eq!(certain("{\"a\": x", STORY, &Format::Json, AskedFrom::Cut), None);
}

#[test]
fn the_end_of_the_document_ends_the_certain_part() {
    let (_, rest) = REPEATED_REST.split_at(REPEATED_REST.find("ning, and").unwrap());
    let ended = format!("{REPEATED_REST}\"}}\n\nI hope this helps!");
    let found = certain(CUT, &ended, &Format::Json, AskedFrom::Unknown);
    assert_eq!(found, Some((CUT.len(), format!("{rest}\"}}"))));
}

#[test]
fn another_version_of_a_document_is_not_released() {
    let initial = "{\"id\": 1, \"name\": \"Anna\", \"list\": [";
    let other = format!("{{\"id\": 1, \"name\": \"Berta\", \"note\": \"{STORY}\"}}");
    assert_eq!(certain(initial, &other, &Format::Json, AskedFrom::Token), None);
}

#[test]
fn the_result_does_not_depend_on_piece_sizes() {
    let (before, after) = STORY.split_at(150);
    let continuation = format!("Sure, here is the rest:\n\n{after}");
    let at_once = certain(before, &continuation, &Format::Text, AskedFrom::Token);
    for size in [1, 7, 64, 100, 400] {
        let mut stream = StitchStream::new(before, &Format::Text, AskedFrom::Token);
        let bytes: Vec<char> = continuation.chars().collect();
        for piece in bytes.chunks(size) {
            stream.push(&piece.iter().collect::<String>());
        }
        let found =
            stream.certain().map(|certain| (certain.keep, format!("{}{}", certain.glue, certain.rest)));
        assert_eq!(found, at_once, "{size}");
    }
    assert!(at_once.is_some_and(|(keep, rest)| keep == before.len() && after.starts_with(&rest)));
}
