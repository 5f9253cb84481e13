use super::*;

fn machine(text: &[u8]) -> TextMachine {
    let mut machine = TextMachine::default();
    machine.push(text);
    machine
}

#[test]
fn only_an_incomplete_character_is_a_cut() {
    assert!(machine("Grüße,".as_bytes()).is_whole());
    let verdict = machine(b"caf\xC3").verdict();
    let truncation = verdict.truncation().unwrap();
    assert_eq!(truncation.truncation_index, 3);
    assert_eq!(truncation.last_valid_token, "caf");
    assert_eq!(truncation.in_token, Some(InToken::Utf8));
}

#[test]
fn an_empty_text_is_a_cut_with_all_indexes_zero() {
    for (text, token) in [(&b""[..], ""), (b" \n", " \n")] {
        let verdict = machine(text).verdict();
        let truncation = verdict.truncation().unwrap();
        assert_eq!((truncation.truncation_index, truncation.balanced_index), (0, 0));
        assert_eq!(truncation.last_valid_token, token);
    }
}

#[test]
fn a_character_split_into_bytes_is_settled_with_its_last_byte() {
    let mut machine = TextMachine::default();
    for (byte, settled) in "a€b".bytes().zip([1, 1, 1, 4, 5]) {
        machine.push(&[byte]);
        assert_eq!((machine.settled, machine.truncation().truncation_index), (settled, settled));
    }
}

#[test]
fn invalid_utf8_is_reported() {
    let reason = "invalid UTF-8".to_owned();
    assert_eq!(machine(b"a\xFFb").verdict(), Verdict::Malformed { index: 1, reason });
}

#[test]
fn a_lone_partial_character_still_has_a_token() {
    let verdict = machine(b"\xF0\x9F").verdict();
    let truncation = verdict.truncation().unwrap();
    assert_eq!((truncation.truncation_index, truncation.last_valid_token.as_str()), (0, "\u{FFFD}"));
}

#[test]
fn the_first_invalid_byte_is_reported_however_the_text_is_split() {
    for (text, index) in [
        (&b"a\xFFb"[..], 1),
        (b"a\x80", 1),
        (b"a\xC0\xAF", 1),
        (b"a\xE0\x80\x80", 2),
        (b"a\xED\xA0\x80", 2),
        (b"a\xE2\x82 ", 3),
        (b"a\xF0\x9F\x98A", 4),
        (b"a\xF4\x90\x80\x80", 2),
    ] {
        for split in 0..=text.len() {
            let mut machine = machine(&text[..split]);
            assert_eq!(machine.is_malformed(), split > index, "{text:x?} split at {split}");
            machine.push(&text[split..]);
            assert_eq!(machine.malformed, Some(index), "{text:x?} split at {split}");
        }
    }
}

#[test]
fn an_unfinished_sentence_gives_a_hint_and_not_a_verdict() {
    let prose = "The answer to your question is that the";
    for text in [
        prose.to_owned(),
        format!("{prose}\n"),
        format!("# A title\n{prose}"),
        format!("- An item.\n\n{prose}"),
        "我们首先需要考虑的是".to_owned(),
        "\"We went on to the harbour, and from there to the".to_owned(),
        "Look at these three files before you begin with the work:".to_owned(),
        "We sailed to the harbour of the old town,\nand from there to the".to_owned(),
        "In 1995 the three of them sailed from Bergen to".to_owned(),
    ] {
        let machine = machine(text.as_bytes());
        assert_eq!((machine.hint(), machine.is_whole()), (Some(Hint::MidSentence), true), "{text:?}");
    }
    for text in [
        "The answer to your question is the number forty-two.",
        "The answer to your question is the word \"end\"",
        "The answer to your question is in the appendix (see there)",
        "Feel free to send a patch or to ask a question :smile:",
        "All of it is explained on the page at https://example.org/docs/where",
        "It is in Paris, on the left",
        "42",
        "- one more item of the list, and then some more words",
        "1. One more item of the list, and then some more words\nthat go on",
        "# A heading without any full stop that is rather long",
        "> a quotation without any full stop that is rather long",
        "| a | row of a table | that has a lot of words in it",
        "name: endmark\nversion: 1\ndescription: a gateway that keeps replies whole",
        "let total = items.iter().map(|item| item.price * item.count).sum() +",
        "0 1 0 1 1 0 0 1 0 1 1 0",
        "",
    ] {
        assert_eq!(machine(text.as_bytes()).hint(), None, "{text:?}");
    }
}
