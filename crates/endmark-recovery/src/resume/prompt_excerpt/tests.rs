use proptest::prelude::*;

use super::*;

fn split_shown<'t>(text: &'t str, format: &Format, how: HoldBack) -> (&'t str, &'t str) {
    let shown = choose_excerpt(text, format, how, 0);
    (&text[..shown.length], shown.quoted_part(text, format))
}

/// PC-3: JSON is shown up to its last settled token. In a string, it is shown up to the last whitespace or
/// the opening quote.
#[test]
fn a_json_prompt_shows_all_tokens_up_to_the_cut() {
    for (text, wanted, quoted) in [
        (r#"{"price":19."#, r#"{"price":"#, r#""price":"#),
        (r#"{"balance":-"#, r#"{"balance":"#, r#""balance":"#),
        (r#"{"mass": 1e"#, r#"{"mass": "#, r#""mass": "#),
        (r#"{"ok": tr"#, r#"{"ok": "#, r#""ok": "#),
        (r#"{"ok": true"#, r#"{"ok": true"#, r#""ok": true"#),
        (r#"{"p": "C:\\dir\"#, r#"{"p": ""#, r#""p": ""#),
        (r#"{"t": "the boats we"#, r#"{"t": "the "#, r#""t": "the "#),
        (r#"{"a": 1, "b": [3, 4, "#, r#"{"a": 1, "b": [3, 4, "#, "3, 4, "),
        ("-", "-", "-"),
    ] {
        assert_eq!(split_shown(text, &Format::Json, HoldBack::Little), (wanted, quoted), "{text}");
    }
}

/// A second prompt holds back enough text to make the answer unambiguous.
#[test]
fn a_second_prompt_holds_back_more_text() {
    let text = r#"{"name": "harbour", "price": 19"#;
    assert_eq!(split_shown(text, &Format::Json, HoldBack::Further).0, "{");
    let text = r#"{"name": "harbour", "description of it all": 19"#;
    assert_eq!(split_shown(text, &Format::Json, HoldBack::Further).0, r#"{"name": "harbour","#);
    let text = "The harbour was quiet, and the boa";
    assert_eq!(split_shown(text, &Format::Text, HoldBack::Further).0, "The ");
}

/// PC-3: text is shown up to its last whitespace, rows and tags up to the last settled one.
#[test]
fn text_is_shown_up_to_a_word_a_row_or_a_tag() {
    for (text, format, wanted) in [
        ("The boats were lyi", Format::Text, "The boats were "),
        // Two held letters would prove nothing.
        ("The boats were ly", Format::Text, "The boats "),
        ("The boats had been ", Format::Text, "The "),
        // After punctuation, the next word may be the same.
        ("The boats had, all of them,", Format::Text, "The boats had, "),
        ("One.\n\nTwo", Format::Text, "One.\n\n"),
        ("- **Total", Format::Markdown, "- "),
        ("| a | b |\n|---|---|\n| one | tw", Format::Markdown, "| a | b |\n|---|---|\n"),
        ("<a><b>x</b><c na", Format::Tags, "<a><b>x</b>"),
        ("{\"a\": 1}\n{\"a\": 2", Format::Jsonl, "{\"a\": 1}\n"),
        ("{\"a\": 1}\n{\"a\": 2}\n", Format::Jsonl, "{\"a\": 1}\n{\"a\": 2}\n"),
        ("<a><b>harbour</b>\n", Format::Tags, "<a>"),
        ("Hello", Format::Text, "Hello"),
    ] {
        assert_eq!(split_shown(text, &format, HoldBack::Little).0, wanted, "{text}");
    }
    let solid = "QUJD".repeat(200);
    assert_eq!(split_shown(&solid, &Format::Text, HoldBack::Further).0, solid);
}

/// PC-3: the quoted part of a text is its last line, unless that has too little content or is too long.
#[test]
fn the_last_line_is_quoted() {
    let poem = "It was the first of May.\nThe harbour was quiet in the grey morning,\nand the gulls had not yet found the boats that lay the";
    assert_eq!(
        split_shown(poem, &Format::Text, HoldBack::Little).1,
        "and the gulls had not yet found the boats that lay"
    );
    let list = "# Boats in the harbour\n\nThese are all the boats that lay in the harbour:\n\n- the first one of them all\n- the";
    assert_eq!(split_shown(list, &Format::Markdown, HoldBack::Little).1, "- the first one of them all\n-");
    let long = "word ".repeat(200);
    let quoted = split_shown(&long, &Format::Text, HoldBack::Little).1;
    assert!(quoted.starts_with("word ") && quoted.len() <= 200, "{quoted}");
}

#[test]
fn text_that_the_client_began_is_always_shown() {
    let text = "Once upon a ti";
    assert_eq!(choose_excerpt(text, &Format::Text, HoldBack::Further, 12).length, 12);
    assert_eq!(choose_excerpt(text, &Format::Text, HoldBack::Further, 13).length, text.len());
}

proptest! {
    /// A prompt shows a beginning of the text, holds back a limited end, and quotes the end of the shown
    /// part.
    #[test]
    fn a_prompt_shows_the_beginning_of_the_text(text in "[\\PC\n]{1,900}", far in any::<bool>(), which in 0..4_usize) {
        let format = [Format::Json, Format::Jsonl, Format::Text, Format::Tags][which].clone();
        let how = if far { HoldBack::Further } else { HoldBack::Little };
        let shown = choose_excerpt(&text, &format, how, 0);
        prop_assert!(text.is_char_boundary(shown.length) && text.is_char_boundary(shown.quoted_from));
        prop_assert!(shown.quoted_from <= shown.length && shown.length <= text.len());
        prop_assert!(text[shown.length..].chars().count() <= HELD_LIMIT_CHARS + 6);
        prop_assert!(shown.quoted_part(&text, &format).chars().count() <= QUOTED_LIMIT_CHARS + 1);
    }
}

/// A simple implementation of the quotation start: the nearest beginning with enough content.
fn naive_quotation_start(shown: &str) -> usize {
    let (mut beginnings, mut string, mut escaped) = (vec![0], false, false);
    for (at, sign) in shown.char_indices() {
        match sign {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            '{' | '[' | ',' if !string => beginnings.push(at + 1),
            _ => {}
        }
    }
    let end = if string { shown.len() } else { shown.trim_end().len() };
    let says_something = |at: &&usize| {
        let member = shown.get(**at..end).unwrap_or_default();
        member.contains(char::is_alphanumeric) && weight(member) >= 4
    };
    let member_start = beginnings.iter().rev().find(says_something).copied().unwrap_or(0);
    let member = shown.get(member_start..end).unwrap_or_default();
    let limit = shown.char_indices().nth_back(QUOTED_LIMIT_CHARS - 1).map_or(0, |(at, _)| at);
    limit.max(member_start + member.len() - member.trim_start().len())
}

proptest! {
    #[test]
    fn the_json_quotation_follows_its_definition(
        parts in proptest::collection::vec((r#"[\[{,:"a1é \\n]{0,3}"#, 1_usize..120), 0..12),
    ) {
        let shown: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
        prop_assert_eq!(super::json::quotation_start(&shown), naive_quotation_start(&shown));
    }
}

/// If a search to the end followed each bracket, either of these texts would exceed the time limit of a test.
#[test]
fn bracket_and_line_break_texts_take_linear_time() {
    let deep = format!("{{\"a\":{}", "[".repeat(400_000));
    let wide = format!("{{\"rows\":[{}", "[],".repeat(400_000));
    for text in [deep, wide] {
        let shown = choose_excerpt(&text, &Format::Json, HoldBack::Little, 0);
        assert!(text.len() - shown.quoted_from <= QUOTED_LIMIT_CHARS, "{shown:?}");
    }
    let blank = format!("a\n{}", "\n".repeat(400_000));
    assert_eq!(choose_excerpt(&blank, &Format::Text, HoldBack::Little, 0).length, blank.len());
}
