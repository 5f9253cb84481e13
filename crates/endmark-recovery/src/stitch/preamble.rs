//! New turns: what a model says that goes on with nothing, and remarks after it is done.

/// Beginnings of a new turn that carry nothing of the text at all.
const NEW_TURNS: &[&str] = &[
    "i'm ready",
    "i am ready",
    "i'm so glad",
    "i'm glad",
    "i am glad",
    "i'm here to",
    "i am here to",
    "i'm happy to",
    "i am happy to",
    "i'd be happy",
    "i'd be glad",
    "how can i",
    "how may i",
    "what would you",
    "please share",
    "as an ai",
    "i'm sorry",
    "i am sorry",
    "i apologize",
    "i'm unable",
    "i'm not sure what",
    "it seems you",
    "it seems that you",
    "it seems like you",
    "it looks like you",
    "you're welcome",
    "you are welcome",
    "hello",
    "hi!",
    "hi,",
    "hi there",
    "your message",
    "your previous",
    "your text",
    "i don't see",
    "i see that you",
    "the response was",
    "the text was",
    "the previous",
    "there is nothing",
    "my previous",
    "my last",
    "as requested",
];

/// Beginnings that are those of a new turn where no space sets them off from what they would go on from.
const FIRST_PERSON: &[&str] = &[
    "i ",
    "i'll ",
    "i will ",
    "i've ",
    "i can't",
    "i cannot",
    "i understand",
    "i think",
    "i don't",
    "i am ",
    "i'm ",
    "would you like",
    "please provide",
    "please let me",
    "could you",
    "thank you",
    "thanks",
];

/// How a continuation begins, as far as it may be a turn of its own, such as an offer of help or a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewTurn {
    /// As nothing but a new turn does.
    Certain,
    /// In the first person, or with a request.
    Possible,
    /// As a text may go on.
    No,
}

/// Whether a continuation begins a turn of its own.
pub(super) fn new_turn(continuation: &str) -> NewTurn {
    let start = continuation.trim_start();
    let lower = head(start, 80).to_lowercase().replace('\u{2019}', "'");
    let begins = |turns: &[&str]| {
        start.starts_with(char::is_uppercase) && turns.iter().any(|turn| lower.starts_with(turn))
    };
    if begins(NEW_TURNS) {
        NewTurn::Certain
    } else if begins(FIRST_PERSON) {
        NewTurn::Possible
    } else {
        NewTurn::No
    }
}

/// What quotes the prompt does so at its beginning, in bytes.
const PROMPT: usize = 600;

/// Whether the continuation says what it was asked, rather than what it was asked for: words of the prompt that
/// are not in the text.
pub(super) fn quotes_the_prompt(initial: &str, continuation: &str) -> bool {
    const WORDS: &[&str] = &[
        "last valid token",
        "any content before the last",
        "your last reply was cut off",
        "text has been cut off",
    ];
    let (said, text) = (head(continuation, PROMPT).to_ascii_lowercase(), initial.to_ascii_lowercase());
    let has = |text: &str| WORDS.iter().any(|words| text.contains(words));
    has(&said) && !has(&text)
}

/// Whether what follows the end of a document is a remark about it, or the end of its fence: anything that is not
/// JSON itself.
pub(super) fn is_remark(mut rest: &str) -> bool {
    while let Some(after) = super::fence::closing(rest.trim()) {
        rest = after;
    }
    let text = rest.trim();
    let Some(first) = text.chars().next() else { return true };
    let separated = rest.starts_with(char::is_whitespace);
    let words = text.split_whitespace().take(2).count();
    let bracketed = first == '[' && !begins_json(text);
    let json = matches!(first, '{' | '}' | '[' | ']' | '"' | ',' | ':' | '\\') && !bracketed
        || first.is_ascii_digit() && !text.contains(' ');
    !json
        && (separated
            || words == 2
                && (first.is_alphabetic() || matches!(first, '*' | '#' | '(' | '>' | '_' | '\u{2014}')))
}

/// Whether a text is a beginning of JSON.
pub(super) fn begins_json(text: &str) -> bool {
    let mut detector = endmark_text::detect::Detector::new(&endmark_text::Format::Json);
    detector.push(text.as_bytes());
    !detector.is_malformed()
}

/// At most this many bytes of the beginning, ending between characters.
pub(super) fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
