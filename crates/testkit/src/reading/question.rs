//! Finds out what a request asks for, without depending on the wording of the prompt.

use serde_json::Value;

/// Minimum length of a quotation. Shorter texts occur in any prompt by chance.
const MIN_QUOTATION_CHARS: usize = 8;

/// A request, as the model understands it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ModelRequest<'a> {
    /// The request shows no part of the document.
    NothingShown { limit: Option<u64> },
    /// The last message is an unfinished assistant message.
    Prefill { shown: usize, so_far: &'a str },
    /// The request shows a part of the document and asks for the rest.
    Prompt {
        /// The end of the shown part in the document, in bytes.
        shown: usize,
        /// The start of the anchor, in bytes.
        anchor: usize,
        /// Whether a required grammar forces the model to write a new document.
        forced: bool,
    },
}

impl<'a> ModelRequest<'a> {
    /// Parses a request in Chat Completions. The error is the reason why the model rejects it.
    pub(super) fn parse(request: &'a Value, document: &str) -> Result<Self, &'static str> {
        let messages = request["messages"].as_array().ok_or("messages: this field is required")?;
        let last = messages.last().ok_or("messages: at least one message is required")?;
        let content = |message: &'a Value| message["content"].as_str().unwrap_or_default();
        let assistant = messages.iter().rev().find(|message| message["role"] == "assistant").map(content);
        if last["role"] == "assistant" {
            let so_far = content(last);
            return Ok(Self::Prefill { shown: shown_end(document, so_far), so_far });
        }
        let last_content = content(last);
        let shown = match assistant.map(|text| shown_end(document, text)) {
            Some(shown) if shown > 0 => Some(shown),
            _ => quoted_end(document, last_content),
        };
        let Some(shown) = shown else {
            let limits = ["max_completion_tokens", "max_tokens"].map(|name| request[name].as_u64());
            return Ok(Self::NothingShown { limit: limits.into_iter().flatten().min() });
        };
        let format = &request["response_format"]["type"];
        let forced = format == "json_object" || format == "json_schema";
        Ok(Self::Prompt { shown, anchor: anchor_start(&document[..shown], last_content), forced })
    }
}

/// Returns the end of the longest prefix of the document that occurs in this text.
fn shown_end(document: &str, text: &str) -> usize {
    let common = |start: usize| -> usize {
        let pairs = document.chars().zip(text[start..].chars());
        pairs.take_while(|(own, theirs)| own == theirs).map(|(own, _)| own.len_utf8()).sum()
    };
    text.char_indices().map(|(start, _)| common(start)).max().unwrap_or(0)
}

/// Returns the end of the longest part of the document that the question quotes, or `None` if it quotes
/// nothing.
fn quoted_end(document: &str, question: &str) -> Option<usize> {
    let starts = document.char_indices().map(|(start, _)| start);
    let quoted = starts.map(|start| {
        let rest = &document[start..];
        let ends = rest.char_indices().map(|(at, character)| at + character.len_utf8());
        let length = ends.take_while(|end| question.contains(&rest[..*end])).last().unwrap_or(0);
        (rest[..length].chars().count(), start + length)
    });
    let (length, end) = quoted.max_by_key(|(length, _)| *length)?;
    (length >= 2 * MIN_QUOTATION_CHARS).then_some(end)
}

/// Returns the start of the anchor in the shown part: the longest end of the shown part that the question
/// quotes, or otherwise its last line.
fn anchor_start(shown: &str, question: &str) -> usize {
    let settled = shown.trim_end();
    let starts = settled.char_indices().rev().map(|(start, _)| start);
    let quoted = starts.take_while(|start| question.contains(&settled[*start..])).last();
    let long_enough = |start: &usize| settled[*start..].chars().count() >= MIN_QUOTATION_CHARS;
    let last_line = || settled.rfind('\n').map_or(0, |at| at + 1);
    quoted.filter(long_enough).unwrap_or_else(last_line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = "# Title\n\nThe first of the lines.\nThe second one of them.\n";

    fn read(messages: &Value) -> (usize, usize) {
        match ModelRequest::parse(&json!({"messages": messages}), DOCUMENT).unwrap() {
            ModelRequest::Prompt { shown, anchor, .. } => (shown, anchor),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_shown_text_and_the_anchor_are_found_in_their_messages() {
        let shown = "# Title\n\nThe first of the lines.\nThe sec";
        let messages = json!([
            {"role": "user", "content": "Write."},
            {"role": "assistant", "content": format!("```\n{shown}")},
            {"role": "user", "content": "It ends with: of the lines.\nThe sec"},
        ]);
        assert_eq!(&shown[read(&messages).1..], " of the lines.\nThe sec");
        assert_eq!(read(&messages).0, shown.len());
        let messages = json!([
            {"role": "assistant", "content": shown},
            {"role": "user", "content": "Go on."},
        ]);
        assert_eq!(read(&messages), (shown.len(), 33), "the last line where nothing is quoted");
    }

    #[test]
    fn text_quoted_only_by_the_prompt_counts_as_shown() {
        let messages =
            json!([{"role": "user", "content": "Go on behind `The first of the lines.`, please."}]);
        assert_eq!(read(&messages), (32, 9));
    }

    #[test]
    fn a_prompt_without_shown_text_requests_the_document() {
        let request = json!({"max_tokens": 7, "messages": [{"role": "user", "content": "Write the lines."}]});
        assert_eq!(
            ModelRequest::parse(&request, DOCUMENT),
            Ok(ModelRequest::NothingShown { limit: Some(7) })
        );
    }
}
