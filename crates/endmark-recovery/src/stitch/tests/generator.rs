//! Generates documents, cuts and styles of continuation from a fixed seed.
#![expect(
    clippy::format_push_string,
    clippy::format_collect,
    clippy::many_single_char_names,
    clippy::too_many_lines,
    clippy::semicolon_if_nothing_returned,
    reason = "a generator of texts reads best as the texts it makes"
)]

/// A small random number generator (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from((self.next() >> 11) % end.max(1) as u64).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind {
    ToolCall,
    Records,
    Nested,
    Lines,
    Prose,
    Markdown,
    Code,
}

pub(super) const JSON_KINDS: &[DocumentKind] =
    &[DocumentKind::ToolCall, DocumentKind::Records, DocumentKind::Nested, DocumentKind::Lines];
pub(super) const TEXT_KINDS: &[DocumentKind] =
    &[DocumentKind::Prose, DocumentKind::Markdown, DocumentKind::Code];

const NOUNS: &[&str] = &[
    "river", "engine", "garden", "letter", "window", "market", "signal", "teacher", "bridge", "record",
    "harbour", "forest", "budget", "keyboard", "village", "captain", "melody", "planet", "shelter", "ticket",
    "wagon", "printer", "journal", "orchard",
];
const VERBS: &[&str] = &[
    "carries",
    "follows",
    "opens",
    "describes",
    "repairs",
    "measures",
    "crosses",
    "answers",
    "remembers",
    "collects",
    "paints",
    "moves",
];
const ADJECTIVES: &[&str] = &[
    "old", "quiet", "narrow", "bright", "second", "distant", "careful", "broken", "modern", "green", "loud",
    "early",
];
const LINKS: &[&str] = &["and", "while", "because", "although", "before", "until"];

fn sentence(random: &mut Random) -> String {
    let (a, n, v, b, m) = (
        random.pick(ADJECTIVES),
        random.pick(NOUNS),
        random.pick(VERBS),
        random.pick(ADJECTIVES),
        random.pick(NOUNS),
    );
    let mut text = format!("{} {a} {n} {v} the {b} {m}", random.pick(&["The", "Every", "A", "Our"]));
    match random.below(4) {
        0 => {
            text += &format!(", {} the {} {} it", random.pick(LINKS), random.pick(NOUNS), random.pick(VERBS))
        }
        1 => {
            text += &format!(
                " {} a {} {} {} {} of them",
                random.pick(LINKS),
                random.pick(NOUNS),
                random.pick(VERBS),
                random.below(90) + 3,
                random.pick(NOUNS)
            )
        }
        _ => {}
    }
    text.push('.');
    text
}

fn paragraph(random: &mut Random) -> String {
    let count = 2 + random.below(4);
    (0..count).map(|_| sentence(random)).collect::<Vec<_>>().join(" ")
}

fn code(random: &mut Random, lines: usize) -> String {
    let mut text = String::from("import json\nfrom pathlib import Path\n\n");
    for _ in 0..lines {
        let (a, b, c) = (random.pick(NOUNS), random.pick(NOUNS), random.pick(VERBS));
        text += &match random.below(7) {
            0 => format!("def {c}_{a}({b}, limit={}):\n", random.below(100)),
            1 => format!("    if {a} is None or {a} == \"{b}\":\n        return None\n"),
            2 => format!("    {a} = {b}.get('{c}', {})\n", random.below(1000)),
            3 => format!("    # the {a} {c} the {b}\n"),
            4 => format!("    for {a} in {b}s:\n        total += {a}.{c}(0, 0, 0)\n"),
            5 => format!("    print(f\"{{{a}}}: {{{b}}}\\n\")\n"),
            _ => "    return total\n\n".to_owned(),
        };
    }
    text
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Returns a whole document of this kind.
pub(super) fn document(kind: DocumentKind, random: &mut Random) -> String {
    match kind {
        DocumentKind::ToolCall => {
            let lines = 4 + random.below(30);
            let content = quote(&code(random, lines));
            format!(
                "{{\"tool\": \"write_file\", \"path\": \"src/{}.py\", \"content\": {content}, \"overwrite\": true, \"mode\": {}}}",
                random.pick(NOUNS),
                random.below(900)
            )
        }
        DocumentKind::Records => {
            let count = 3 + random.below(14);
            let rows: Vec<_> = (0..count).map(|id| {
                format!("  {{\"id\": {}, \"name\": \"{} {}\", \"score\": {}.{}, \"active\": {}, \"tags\": [\"{}\", \"{}\"]}}", id + 1, random.pick(ADJECTIVES), random.pick(NOUNS),
                    random.below(100), random.below(100), random.below(2) == 0, random.pick(NOUNS), random.pick(NOUNS))
            }).collect();
            format!("[\n{}\n]", rows.join(",\n"))
        }
        DocumentKind::Nested => {
            let mut text = format!(
                "{{\"title\": {}, \"matrix\": [[0, 0, 1], [0, 0, 0], [1, 0, 0]], \"unicode\": \"caf\\u00e9 \u{4e2d}\u{6587} \\ud83d\\ude00 \u{1f680} na\u{ef}ve\", \"empty\": {{}}, ",
                quote(&sentence(random))
            );
            text += &format!(
                "\"nested\": {{\"a\": {{\"b\": [null, true, -1.5e3, \"{}\"]}}, \"note\": {}}}, \"log\": {}, \"n\": {}}}",
                random.pick(NOUNS),
                quote(&paragraph(random)),
                quote(&format!("{}\n\t\"{}\" \\ done", sentence(random), random.pick(NOUNS))),
                random.below(100_000)
            );
            text
        }
        DocumentKind::Lines => {
            let count = 3 + random.below(10);
            (0..count)
                .map(|id| {
                    format!(
                        "{{\"id\": {id}, \"event\": \"{}\", \"message\": {}}}\n",
                        random.pick(VERBS),
                        quote(&sentence(random))
                    )
                })
                .collect()
        }
        DocumentKind::Prose => {
            (0..3 + random.below(4)).map(|_| paragraph(random)).collect::<Vec<_>>().join("\n\n") + "\n"
        }
        DocumentKind::Markdown => {
            let mut text = format!("# The {}\n\n{}\n\n## Steps\n\n", random.pick(NOUNS), paragraph(random));
            for _ in 0..3 + random.below(4) {
                text += &format!("- **{}**: {}\n", random.pick(NOUNS), sentence(random));
            }
            let lines = 3 + random.below(8);
            text += &format!(
                "\n```python\n{}```\n\n{}\n\n| {} | {} |\n|---|---|\n| {} | {} |\n\n{}\n",
                code(random, lines),
                paragraph(random),
                random.pick(NOUNS),
                random.pick(NOUNS),
                random.below(50),
                random.below(50),
                paragraph(random)
            );
            text
        }
        DocumentKind::Code => {
            let lines = 8 + random.below(40);
            code(random, lines)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContinuationStyle {
    Exact,
    RepeatedLetters,
    RepeatedWord,
    RepeatedTwenty,
    RepeatedLine,
    RepeatedSixHundred,
    Fence,
    FenceOverlap,
    Preamble,
    InlinePreamble,
    PreambleFence,
    PreambleFenceOverlap,
    Restart,
    FencedRestart,
    PreambleRestart,
    Reformatted,
    OpenObject,
    OpenString,
    OtherEscapes,
    AddedBreak,
    AddedSpace,
    LostSpace,
    Remark,
    FenceRemark,
    Ellipsis,
    Token,
    Divergent,
    Answer,
    Unescaped,
}

pub(super) const STYLES: &[ContinuationStyle] = &[
    ContinuationStyle::Exact,
    ContinuationStyle::RepeatedLetters,
    ContinuationStyle::RepeatedWord,
    ContinuationStyle::RepeatedTwenty,
    ContinuationStyle::RepeatedLine,
    ContinuationStyle::RepeatedSixHundred,
    ContinuationStyle::Fence,
    ContinuationStyle::FenceOverlap,
    ContinuationStyle::Preamble,
    ContinuationStyle::InlinePreamble,
    ContinuationStyle::PreambleFence,
    ContinuationStyle::PreambleFenceOverlap,
    ContinuationStyle::Restart,
    ContinuationStyle::FencedRestart,
    ContinuationStyle::PreambleRestart,
    ContinuationStyle::Reformatted,
    ContinuationStyle::OpenObject,
    ContinuationStyle::OpenString,
    ContinuationStyle::OtherEscapes,
    ContinuationStyle::AddedBreak,
    ContinuationStyle::AddedSpace,
    ContinuationStyle::LostSpace,
    ContinuationStyle::Remark,
    ContinuationStyle::FenceRemark,
    ContinuationStyle::Ellipsis,
    ContinuationStyle::Token,
    ContinuationStyle::Divergent,
    ContinuationStyle::Answer,
    ContinuationStyle::Unescaped,
];

const ANNOUNCEMENTS: &[&str] = &[
    "Sure, continuing from where I left off:",
    "Here is the rest:",
    "Apologies for the interruption. Here's the continuation:",
    "Continuing:",
    "I apologize for the cut-off. Let me continue.",
    "Certainly! Here is the remaining part:",
    "Of course. Picking up where the text stopped:",
];
const REMARKS: &[&str] = &[
    "\n\nLet me know if you need anything else!",
    "\n\nThat completes the document.",
    "\n\nI hope this helps.",
    "\nNote: the output is complete now.",
];

fn bytes_before_last(text: &str, count: usize) -> usize {
    text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at)
}

/// Returns the continuation of a cut document in this style, or `None` if the style is impossible at this
/// cut.
pub(super) fn continuation(
    style: ContinuationStyle,
    kind: DocumentKind,
    whole: &str,
    cut: usize,
    settled: usize,
    random: &mut Random,
) -> Option<String> {
    let (initial, rest) = whole.split_at(cut);
    let json = JSON_KINDS.contains(&kind);
    let info = match kind {
        DocumentKind::ToolCall | DocumentKind::Records | DocumentKind::Nested => "json",
        DocumentKind::Lines => "jsonl",
        DocumentKind::Code => "python",
        _ => "",
    };
    let repeated = |count: usize| format!("{}{rest}", &initial[bytes_before_last(initial, count)..]);
    let tail = 20 + random.below(41);
    let announcement = random.pick(ANNOUNCEMENTS);
    Some(match style {
        ContinuationStyle::Exact => rest.to_owned(),
        ContinuationStyle::RepeatedLetters => repeated(1 + random.below(5)),
        ContinuationStyle::RepeatedWord => {
            let start = initial
                .trim_end()
                .rfind(|character: char| !character.is_alphanumeric())
                .map_or(0, |at| at + initial[at..].chars().next().unwrap().len_utf8());
            if start == initial.len() {
                return None;
            }
            format!("{}{rest}", &initial[start..])
        }
        ContinuationStyle::RepeatedTwenty => repeated(tail),
        ContinuationStyle::RepeatedLine => {
            let line = initial.rfind('\n').map_or(0, |at| at + 1);
            if initial[line..].trim().len() < 8 {
                return None;
            }
            format!("{}{rest}", &initial[line..])
        }
        ContinuationStyle::RepeatedSixHundred => repeated(600),
        ContinuationStyle::Fence => format!("```{info}\n{rest}\n```"),
        ContinuationStyle::FenceOverlap => format!("```{info}\n{}\n```", repeated(tail)),
        ContinuationStyle::Preamble => format!("{announcement}\n\n{rest}"),
        ContinuationStyle::InlinePreamble => {
            if announcement.ends_with(':') {
                format!("{announcement} {rest}")
            } else {
                return None;
            }
        }
        ContinuationStyle::PreambleFence => format!("{announcement}\n\n```{info}\n{rest}\n```"),
        ContinuationStyle::PreambleFenceOverlap => {
            format!("{announcement}\n```{info}\n{}\n```", repeated(tail))
        }
        ContinuationStyle::Restart => whole.to_owned(),
        ContinuationStyle::FencedRestart => format!("```{info}\n{whole}\n```"),
        ContinuationStyle::PreambleRestart => format!("Here is the complete text again:\n\n{whole}"),
        ContinuationStyle::Reformatted => {
            if !matches!(kind, DocumentKind::ToolCall | DocumentKind::Records | DocumentKind::Nested) {
                return None;
            }
            let value: serde_json::Value = serde_json::from_str(whole).unwrap();
            serde_json::to_string_pretty(&value).unwrap()
        }
        ContinuationStyle::OpenObject => {
            let start = initial.rfind('{').filter(|_| json)?;
            format!("{}{rest}", &initial[start..])
        }
        ContinuationStyle::OpenString => {
            let mut open = None;
            let mut escaped = false;
            for (at, byte) in initial.bytes().enumerate() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if open.is_some() => escaped = true,
                    b'"' => open = if open.is_some() { None } else { Some(at) },
                    _ => {}
                }
            }
            format!("{}{rest}", &initial[open.filter(|_| json)?..])
        }
        ContinuationStyle::OtherEscapes => {
            if !json || !initial.ends_with(|character: char| character.is_alphanumeric() || character == ' ')
            {
                return None;
            }
            let text: String = repeated(tail);
            text.chars()
                .map(|sign| {
                    if sign.is_ascii() {
                        sign.to_string()
                    } else {
                        format!(
                            "{:?}",
                            sign.encode_utf16(&mut [0; 2])
                                .iter()
                                .map(|unit| format!("\\u{unit:04x}"))
                                .collect::<String>()
                        )
                        .trim_matches('"')
                        .replace("\\\\", "\\")
                    }
                })
                .collect()
        }
        ContinuationStyle::AddedBreak => format!("\n{rest}"),
        ContinuationStyle::AddedSpace => format!(" {rest}"),
        ContinuationStyle::LostSpace => {
            if rest.starts_with(char::is_whitespace) {
                rest.trim_start().to_owned()
            } else {
                return None;
            }
        }
        ContinuationStyle::Remark => {
            if json {
                format!("{rest}{}", random.pick(REMARKS))
            } else {
                return None;
            }
        }
        ContinuationStyle::FenceRemark => {
            if json {
                format!("```{info}\n{rest}\n```{}", random.pick(REMARKS))
            } else {
                return None;
            }
        }
        ContinuationStyle::Ellipsis => format!("...{rest}"),
        ContinuationStyle::Token => {
            if json {
                whole[settled..].to_owned()
            } else {
                return None;
            }
        }
        ContinuationStyle::Divergent => {
            let other = document(kind, random);
            if other.starts_with(initial) {
                return None;
            }
            other
        }
        ContinuationStyle::Answer => random
            .pick(&[
                "I'm ready to help you with anything else you need.",
                "I'm sorry, but I can't help with that.",
                "Your message seems to be incomplete. Could you share the rest?",
                "What would you like me to do next?",
            ])
            .to_owned(),
        ContinuationStyle::Unescaped => {
            if kind != DocumentKind::ToolCall {
                return None;
            }
            rest.replace("\\n", "\n").replace("\\\"", "\"")
        }
    })
}
