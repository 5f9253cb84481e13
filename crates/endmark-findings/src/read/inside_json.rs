//! Results and checkpoints that stand escaped in a string: the lines of a transcript that is JSON Lines. (AR-1, AR-3)

use super::json::{StringAt, string_at};

/// What the text of such a string has to have.
pub(super) const BEGINNINGS: [&str; 6] = [
    "===AGENT_RESULT===",
    "[CHECKPOINT",
    // The list of findings of a result in JSON.
    r#"\"findings\"#,
    r#"\"Findings\"#,
    r#"\"vulnerabilities\"#,
    r#"\"issues\"#,
];

/// The text of a string, without its escapes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inner {
    pub(super) text: String,
    /// Its quotes, in bytes from the beginning of the line; where it is cut, the end of the line.
    pub(super) begins: usize,
    pub(super) ends: usize,
    pub(super) is_closed: bool,
    /// Where escapes in it stand for half of a character, in bytes from the beginning of the line.
    pub(super) halves: Vec<usize>,
}

/// The strings of a line in which a result or a checkpoint begins, in order.
pub(super) fn inner(line: &str) -> Vec<Inner> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = BEGINNINGS.iter().filter_map(|word| line[from..].find(word)).min() {
        let at = from + at;
        let Some(begins) = opening_quote(&line[from..at]).map(|quote| from + quote) else {
            from = at + 1;
            continue;
        };
        let Some(string) = string_at(line.as_bytes(), begins) else { return found };
        let StringAt { text, ends, is_closed, halves } = string;
        // Words in quotes are no string of JSON.
        let before = line[..begins].trim_end();
        let behind = line[ends..].trim_start();
        let is_string = (before.is_empty() || before.ends_with([':', ',', '[']))
            && (!is_closed || behind.is_empty() || behind.starts_with([',', '}', ']', ':']));
        if is_string {
            found.push(Inner { text, begins, ends, is_closed, halves });
        }
        from = ends.max(at + 1);
        while !line.is_char_boundary(from) {
            from += 1;
        }
    }
    found
}

/// The last quote that no `\` escapes.
fn opening_quote(text: &str) -> Option<usize> {
    let mut quotes = text.rmatch_indices('"').map(|(at, _)| at);
    quotes.find(|at| {
        let before = &text[..*at];
        (before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
    })
}

#[cfg(test)]
mod tests {
    use super::inner;

    fn texts(line: &str) -> Vec<String> {
        inner(line).into_iter().map(|inner| inner.text).collect()
    }

    #[test]
    fn strings_of_json_are_taken_out_and_words_in_quotes_are_not() {
        let line = r#"{"type":"text","text":"Say \"x\".\n===AGENT_RESULT===\nagent_id: a\u002d1"}"#;
        assert_eq!(texts(line), ["Say \"x\".\n===AGENT_RESULT===\nagent_id: a-1"]);
        assert_eq!(texts(r#"data: {"text": "[CHECKPOINT] turn:10"}"#), ["[CHECKPOINT] turn:10"]);
        let json = r#"{"arguments":"{\"agent_id\": \"a\", \"findings\": []}"}"#;
        assert_eq!(texts(json), [r#"{"agent_id": "a", "findings": []}"#]);
        assert_eq!(texts(r#"{"a":"[CHECKPOINT] turn:1","b":"[CHECKPOINT] turn:2"}"#).len(), 2);
        // Cut in the middle of an escape.
        assert_eq!(
            texts(r#"{"text":"===AGENT_RESULT===\nagent_id: b\"#),
            ["===AGENT_RESULT===\nagent_id: b"]
        );
        for line in [
            r#"I print "[CHECKPOINT] turn:10" now and then"#,
            "[CHECKPOINT] turn:10",
            r"'===AGENT_RESULT===\nagent_id: c'",
            "===AGENT_RESULT===",
        ] {
            assert_eq!(texts(line), Vec::<String>::new(), "{line}");
        }
    }
}
