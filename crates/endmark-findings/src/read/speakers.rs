//! Who speaks from a line of a conversation on: `Human: continue`, `### Assistant`, `<|im_start|>user`. (AR-1)

use super::words::{EMPHASIS, without_lead};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// Whoever is not the model: a person, the system, a tool.
    Other,
    Model,
}

/// A line in which a turn begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Speaker<'a> {
    pub(super) voice: Voice,
    /// What is said in the line itself.
    pub(super) says: &'a str,
    /// Nothing else is called so: without the other one's turn, `User` and `AI` may as well be fields.
    pub(super) is_sure: bool,
}

/// Names of those who speak, and whether a field is hardly called so.
const NAMES: [(&str, Voice, bool); 16] = [
    ("human", Voice::Other, false),
    ("user", Voice::Other, false),
    ("you", Voice::Other, false),
    ("you said", Voice::Other, false),
    ("system", Voice::Other, false),
    ("tool", Voice::Other, false),
    ("tool result", Voice::Other, false),
    ("assistant", Voice::Model, true),
    ("ai assistant", Voice::Model, true),
    ("claude", Voice::Model, true),
    ("chatgpt", Voice::Model, true),
    ("chatgpt said", Voice::Model, true),
    ("ai", Voice::Model, false),
    ("gpt", Voice::Model, false),
    ("gemini", Voice::Model, false),
    ("model", Voice::Model, false),
];

/// Who begins to speak in this line; none if nobody does.
pub(super) fn speaker(text: &str) -> Option<Speaker<'_>> {
    if text.trim_start().starts_with("<|") {
        return of_template(text);
    }
    let (inner, lead) = without_lead(text);
    if lead.is_bullet || lead.number.is_some() {
        return None;
    }
    let bare = inner.trim_start_matches(EMPHASIS).trim_start_matches(['[', '<']);
    let ends = bare.find(|sign: char| !sign.is_ascii_alphabetic() && sign != ' ').unwrap_or(bare.len());
    let (name, behind) = bare.split_at(ends);
    let (voice, is_sure) = voice(name.trim_end())?;
    let is_ornament = |sign: char| sign == ' ' || sign == ']' || sign == '>' || EMPHASIS.contains(&sign);
    let behind = behind.trim_start_matches(is_ornament);
    // `User (10:31):`
    let note = behind.strip_prefix('(').and_then(|note| note.split_once(')'));
    let behind = note.map_or(behind, |(_, behind)| behind).trim_start_matches(is_ornament);
    if let Some(says) = behind.strip_prefix([':', '：']) {
        return Some(Speaker { voice, says: says.trim_start_matches(EMPHASIS).trim(), is_sure });
    }
    let is_set_apart = lead.hashes > 0 || bare.len() < inner.len();
    (behind.is_empty() && is_set_apart).then_some(Speaker { voice, says: "", is_sure })
}

/// `<|im_start|>user`, `<|start_header_id|>assistant<|end_header_id|>`, and the end of a turn alone: `<|im_end|>`.
fn of_template(text: &str) -> Option<Speaker<'_>> {
    let mut rest = text.trim();
    let mut voice = Voice::Model;
    while let Some((token, behind)) = rest.strip_prefix("<|").and_then(|inner| inner.split_once("|>")) {
        if token.len() > 32 {
            return None;
        }
        let named = self::voice(token);
        let ends = behind.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(behind.len());
        let is_begun = ["im_start", "start_header_id"].contains(&token);
        let (found, more) = match named {
            Some((found, _)) => (found, behind),
            None if is_begun => (self::voice(&behind[..ends])?.0, &behind[ends..]),
            None => (voice, behind),
        };
        (voice, rest) = (found, more.trim_start());
    }
    (rest.len() < text.trim().len()).then_some(Speaker { voice, says: rest, is_sure: true })
}

/// A line without the sign that ends a turn behind it: `sink: query<|im_end|>`.
pub(super) fn without_end(text: &str) -> &str {
    const ENDS: [&str; 6] = ["im_end", "eot_id", "end", "endoftext", "eom_id", "end_of_turn"];
    let inner = text.trim_end().strip_suffix("|>").and_then(|text| text.rsplit_once("<|"));
    inner
        .filter(|(before, token)| !before.trim().is_empty() && ENDS.contains(token))
        .map_or(text, |(before, _)| before)
}

fn voice(name: &str) -> Option<(Voice, bool)> {
    let known = NAMES.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known));
    known.map(|(_, voice, is_sure)| (*voice, *is_sure))
}

/// Whether somebody asks the model to go on.
pub(super) fn asks_to_go_on(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "continue",
        "go on",
        "keep going",
        "carry on",
        "proceed",
        "resume",
        "finish",
        "the rest",
        "where you",
        "weiter",
        "continua",
        "continuez",
        "继续",
        "続け",
        "продолж",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_is_told_from_fields_and_prose() {
        for (text, voice, says) in [
            ("Human: continue", Voice::Other, "continue"),
            ("user:", Voice::Other, ""),
            ("**User:** go on", Voice::Other, "go on"),
            ("### Assistant", Voice::Model, ""),
            ("## 🤖 Assistant:", Voice::Model, ""),
            ("**Assistant**", Voice::Model, ""),
            ("**Assistant**: sink: query", Voice::Model, "sink: query"),
            ("Assistant: **[F002] XSS**", Voice::Model, "**[F002] XSS**"),
            ("[USER]", Voice::Other, ""),
            ("User (10:31): go on", Voice::Other, "go on"),
            ("<|im_start|>assistant", Voice::Model, ""),
            ("<|im_end|>", Voice::Model, ""),
            ("<|start_header_id|>user<|end_header_id|>", Voice::Other, ""),
            ("<|user|> continue", Voice::Other, "continue"),
            ("ChatGPT said:", Voice::Model, ""),
        ] {
            let found = speaker(text).map(|speaker| (speaker.voice, speaker.says));
            assert_eq!(found, Some((voice, says)), "{text}");
        }
        for text in [
            "source: user",
            "User",
            "user input",
            "Users: all",
            "- User: any",
            "Assistant",
            "model.rs: x",
            "1. User: any",
            "severity: High",
            "",
            "<|x",
            "You should",
            "[F001] User: any",
        ] {
            assert_eq!(speaker(text), None, "{text}");
        }
        for (text, without) in
            [("sink: q<|im_end|>", "sink: q"), ("a <|end|>  ", "a "), ("<|end|>", "<|end|>"), ("a|>", "a|>")]
        {
            assert_eq!(without_end(text), without);
        }
    }
}
