//! Announcements and apologies: what a model says before it goes on, and remarks after it is done.

/// How certain it is that a piece of prose speaks about the continuation and is no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// It has the form of an announcement, but none of the usual words.
    Form,
    /// It begins as announcements do.
    Opener,
    /// It begins as announcements do and speaks of continuing.
    Certain,
}

/// Words that announcements begin with.
const OPENERS: &[&str] = &[
    "absolutely",
    "alright",
    "apologies",
    "as requested",
    "below is",
    "certainly",
    "continuation",
    "continued",
    "continuing",
    "got it",
    "great",
    "here are",
    "here is",
    "here's",
    "here it is",
    "here you go",
    "i apologize",
    "i apologise",
    "i will continue",
    "i'll continue",
    "i'll complete",
    "i'll pick up",
    "i'm sorry",
    "i am sorry",
    "i'm continuing",
    "let me continue",
    "let me complete",
    "let me finish",
    "let me pick",
    "let's continue",
    "my apologies",
    "no problem",
    "of course",
    "ok,",
    "ok.",
    "ok!",
    "okay",
    "picking up",
    "please find",
    "resuming",
    "right,",
    "sorry",
    "sure",
    "thanks",
    "thank you",
    "the continuation",
    "the remaining",
    "the rest",
    "the remainder",
    "to continue",
    "understood",
    "yes,",
    "yes!",
    "you're right",
    "remaining",
    "this is the rest",
    "this is the continuation",
    "going on",
];

/// Words that speak of continuing.
const ABOUT_CONTINUING: &[&str] = &[
    "continu",
    "left off",
    "the rest",
    "rest of",
    "remaining",
    "remainder",
    "cut off",
    "truncat",
    "where i ",
    "where we ",
    "where it ",
    "picking up",
    "pick up",
    "resum",
    "apolog",
    "interrupt",
    "complet",
    "missing part",
    "previous response",
    "last valid token",
    "went wrong",
    "the full",
    "starting from",
    "for the interruption",
];

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

/// What a piece of prose at the very beginning of a continuation is.
pub(super) fn announcement(prose: &str) -> Option<Certainty> {
    let line = plain(prose);
    let lower = line.to_lowercase().replace('\u{2019}', "'");
    let first = line.chars().next()?;
    if !first.is_alphabetic()
        || line.contains(['{', '}', '[', ']', '"', '\\', ';', '=', '<']) && !line.ends_with(':')
    {
        return None;
    }
    let opens = OPENERS.iter().any(|opener| begins_with_word(&lower, opener));
    let speaks = ABOUT_CONTINUING.iter().any(|word| lower.contains(word));
    let words = line.split_whitespace().count();
    let closes = line.ends_with([':', '.', '!', '\u{2026}', '\u{ff1a}']);
    match (opens, speaks) {
        (true, true) => Some(Certainty::Certain),
        (true, false) => Some(Certainty::Opener),
        (false, true) if closes && first.is_uppercase() => Some(Certainty::Opener),
        _ if closes && words >= 2 && !first.is_lowercase() && !line.contains(['"', '{', '\\']) => {
            Some(Certainty::Form)
        }
        _ => None,
    }
}

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

/// Whether the first sentence of a continuation is an announcement, though the text may go on in its line.
pub(super) fn begins_with_announcement(continuation: &str) -> Option<Certainty> {
    let start = head(continuation, 200).trim_start();
    let line = start.lines().next().unwrap_or_default();
    let lower = plain(line).to_lowercase().replace('\u{2019}', "'");
    if !plain(line).starts_with(char::is_uppercase)
        || !OPENERS.iter().any(|opener| begins_with_word(&lower, opener))
    {
        return None;
    }
    let speaks = ABOUT_CONTINUING.iter().any(|word| lower.contains(word));
    Some(if speaks { Certainty::Certain } else { Certainty::Opener })
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
    let mut detector = crate::detect::Detector::new(&crate::Format::Json);
    detector.push(text.as_bytes());
    !detector.is_malformed()
}

fn begins_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        !word.ends_with(char::is_alphabetic)
            || !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '(')
    })
}

/// The line without the signs of emphasis, heading and comment around it.
fn plain(line: &str) -> &str {
    line.trim().trim_matches(|sign: char| matches!(sign, '*' | '_' | '#' | '>' | '(' | ')' | '[' | ']' | ' '))
}

/// At most this many bytes of the beginning, ending between characters.
pub(super) fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
