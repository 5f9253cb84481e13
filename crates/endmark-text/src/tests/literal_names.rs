//! Tests of the names in output, the log and the configuration. Other programs read them, so they must
//! not change.

use crate::{Format, Hint, InToken, Markup, Open, Truncation, Verdict};

#[test]
fn verdicts_have_stable_names() {
    let malformed = Verdict::Malformed { index: 0, reason: String::new() };
    for (verdict, name) in [
        (Verdict::Whole, "whole"),
        (Verdict::Truncated(Truncation::default()), "truncated"),
        (malformed, "malformed"),
    ] {
        assert_eq!(verdict.name(), name);
    }
    for (in_token, name) in [
        (InToken::String, "string"),
        (InToken::Escape, "escape"),
        (InToken::Number, "number"),
        (InToken::Literal, "literal"),
        (InToken::Utf8, "utf8"),
        (InToken::Code, "code"),
        (InToken::Html, "html"),
        (InToken::Link, "link"),
        (InToken::Row, "row"),
        (InToken::Tag, "tag"),
        (InToken::Attribute, "attribute"),
        (InToken::Comment, "comment"),
        (InToken::CharacterData, "cdata"),
        (InToken::Instruction, "instruction"),
        (InToken::Declaration, "declaration"),
    ] {
        assert_eq!(in_token.name(), name);
    }
    assert_eq!(Hint::MidSentence.name(), "mid_sentence");
    assert_eq!(Hint::ControlCharacters.name(), "control_characters");
}

#[test]
fn open_constructs_have_stable_names() {
    for (open, sign) in [
        (Open::Object, "{"),
        (Open::Array, "["),
        (Open::String, "\""),
        (Open::Fence { character: '~', length: 4 }, "~~~~"),
        (Open::Link, "["),
        (Open::Row, "|"),
        (Open::Tag("b".to_owned()), "<b>"),
    ] {
        assert_eq!(open.opener(), sign);
    }
    for (markup, sign, in_token) in [
        (Markup::Comment, "<!--", InToken::Comment),
        (Markup::CharacterData, "<![CDATA[", InToken::CharacterData),
        (Markup::Instruction, "<?", InToken::Instruction),
        (Markup::Declaration, "<!", InToken::Declaration),
        (Markup::Preformatted, "<pre>", InToken::Html),
        (Markup::Script, "<script>", InToken::Html),
        (Markup::Style, "<style>", InToken::Html),
        (Markup::TextArea, "<textarea>", InToken::Html),
    ] {
        assert_eq!((Open::Markup(markup).opener().as_ref(), markup.in_token()), (sign, in_token));
    }
}

#[test]
fn formats_have_stable_names() {
    let names = ["json", "jsonl", "markdown", "tags", "text", "marker", "auto"];
    for name in names {
        let format = Format::parse(name, Some("END")).unwrap();
        assert_eq!((format.name(), format.to_string().as_str()), (name, name));
    }
}
