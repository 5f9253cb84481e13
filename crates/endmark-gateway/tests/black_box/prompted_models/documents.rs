//! Generates documents that resemble those of models, from a seed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::random::Random;

const SENTENCES: &str = include_str!("sentences.txt");
const NAMES: [&str; 8] = ["Anna", "Mr. Keller", "Tomás", "Yuki", "Dr. Osei", "Ingrid", "Karim", "Mei"];
const WORDS: [&str; 16] = [
    "harbour", "filter", "ticket", "anchor", "margin", "lantern", "review", "invoice", "meadow", "engine",
    "packet", "winter", "ledger", "copper", "signal", "bridge",
];

/// The type of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentKind {
    Prose,
    Markdown,
    Code,
    Json,
    JsonLines,
    Tags,
}

impl DocumentKind {
    pub(super) const ALL: [Self; 6] =
        [Self::Prose, Self::Markdown, Self::Code, Self::Json, Self::JsonLines, Self::Tags];

    /// Returns the format to require in the header `x-endmark-format`, if any.
    pub(super) fn required_format(self) -> Option<&'static str> {
        match self {
            Self::Prose | Self::Code => None,
            Self::Markdown => Some("markdown"),
            Self::Json => Some("json"),
            Self::JsonLines => Some("jsonl"),
            Self::Tags => Some("tags"),
        }
    }

    /// Returns the language of a Markdown fence for this document.
    pub(super) fn fence(self) -> &'static str {
        match self {
            Self::Prose => "",
            Self::Markdown => "markdown",
            Self::Code => "python",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Tags => "xml",
        }
    }

    pub(super) fn is_prose(self) -> bool {
        matches!(self, Self::Prose | Self::Markdown | Self::Code)
    }

    /// Returns a random document of this type.
    pub(super) fn document(self, dice: &mut Random) -> String {
        match self {
            Self::Prose => prose(dice),
            Self::Markdown => markdown(dice),
            Self::Code => code(dice),
            Self::Json => {
                let value = object(dice, 3);
                if dice.chance(50) {
                    value.to_string()
                } else {
                    serde_json::to_string_pretty(&value).unwrap()
                }
            }
            Self::JsonLines => {
                let rows = dice.range(4, 14);
                (0..rows).fold(String::new(), |text, _| text + &object(dice, 1).to_string() + "\n")
            }
            Self::Tags => tags(dice),
        }
    }
}

/// Returns all sentences of a language.
fn sentences_of(language: &str) -> Vec<&'static str> {
    let lines = SENTENCES.lines().skip_while(|line| *line != format!("# {language}")).skip(1);
    lines.take_while(|line| !line.starts_with('#')).collect()
}

fn fill_in(sentence: &str, dice: &mut Random) -> String {
    let number = dice.range(2, 480).to_string();
    sentence.replace("{n}", &number).replace("{name}", dice.pick(&NAMES))
}

/// Returns `count` different sentences of a language.
fn sentences(language: &str, count: usize, dice: &mut Random) -> Vec<String> {
    dice.pick_some(&sentences_of(language), count)
        .into_iter()
        .map(|sentence| fill_in(sentence, dice))
        .collect()
}

fn prose(dice: &mut Random) -> String {
    let language = dice.pick(&["en", "en", "en", "en", "de", "fr", "es", "ru", "zh"]);
    let all = sentences(language, 16, dice);
    let space = if language == "zh" { "" } else { " " };
    let paragraphs: Vec<String> = all.chunks(dice.range(2, 4)).map(|some| some.join(space)).collect();
    let mut text = paragraphs.join("\n\n");
    if dice.chance(50) {
        let last = dice.pick(&sentences_of("last"));
        text += if dice.chance(50) { "\n\n" } else { " " };
        text += last;
    }
    text
}

fn markdown(dice: &mut Random) -> String {
    let mut sentences_left = sentences("en", 14, dice).into_iter();
    let mut text = format!("# {}\n\n{}\n", title(dice), sentences_left.next().unwrap());
    for _ in 0..dice.range(2, 4) {
        let _ = write!(text, "\n## {}\n\n", title(dice));
        match dice.below(5) {
            0 => {
                for word in dice.pick_some(&WORDS, 4) {
                    let _ = writeln!(text, "- **{}**: ${}", capitalise(word), dice.range(10, 990));
                }
            }
            1 => {
                text += "| Item | Count | Note |\n|---|---:|---|\n";
                for word in dice.pick_some(&WORDS, 5) {
                    let _ = writeln!(text, "| {word} | {} | {} |", dice.below(500), dice.pick(&NAMES));
                }
            }
            2 => {
                let _ = write!(text, "```python\n{}```\n", function(dice));
            }
            3 => {
                for (at, sentence) in sentences_left.by_ref().take(3).enumerate() {
                    let _ = writeln!(text, "{}. {sentence}", at + 1);
                }
            }
            _ => {
                let some: Vec<String> = sentences_left.by_ref().take(3).collect();
                let _ = writeln!(text, "{} *{}*", some.join(" "), dice.pick(&WORDS));
            }
        }
    }
    if dice.chance(40) {
        let _ = writeln!(text, "\n{}", dice.pick(&sentences_of("last")));
    }
    text
}

fn title(dice: &mut Random) -> String {
    let words = dice.pick_some(&WORDS, 2);
    format!("{} and {}", capitalise(words[0]), words[1])
}

fn capitalise(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// Returns a Python function that ends with a newline.
fn function(dice: &mut Random) -> String {
    let words = dice.pick_some(&WORDS, 4);
    let [name, field, source, result] = [words[0], words[1], words[2], words[3]];
    let limit = dice.range(2, 90);
    format!(
        "def {name}_{field}({source}, limit={limit}):\n    \"\"\"{}\"\"\"\n    {result} = []\n    \
         for index, item in enumerate({source}):\n        if item.{field} > limit and index != {}:\n            \
         {result}.append(item.{field} * {limit}.5)\n        else:\n            \
         print(f\"{name}: {{item}}\\t{{index}}\")\n    return sorted({result})\n",
        fill_in(dice.pick(&sentences_of("en")), dice),
        dice.range(100, 990),
    )
}

fn code(dice: &mut Random) -> String {
    let functions: Vec<String> = (0..dice.range(2, 4)).map(|_| function(dice)).collect();
    format!("import json\n\n\n{}", functions.join("\n\n"))
}

fn number(dice: &mut Random) -> Value {
    let whole = dice.below(100_000);
    let text = match dice.below(6) {
        0 => format!("{whole}"),
        1 => format!("-{whole}"),
        2 => format!("{}.{:02}", whole % 1_000, dice.below(100)),
        3 => format!("-{}.{}", whole % 100, dice.range(1, 999)),
        4 => format!("{}.{}e-{}", dice.range(1, 9), dice.range(1, 99), dice.range(1, 12)),
        _ => format!("{}e+{}", dice.range(1, 9), dice.range(1, 20)),
    };
    serde_json::from_str(&text).unwrap()
}

fn string(dice: &mut Random) -> Value {
    match dice.below(7) {
        0 => json!(format!("C:\\dir\\{}\\new", dice.pick(&WORDS))),
        1 => json!(format!("\"{}\" said\n\t{}", dice.pick(&WORDS), dice.pick(&NAMES))),
        2 => json!(format!("{} 🚢 café", dice.pick(&WORDS))),
        3 => json!(dice.pick(&WORDS)),
        4 => {
            let language = dice.pick(&["de", "ru", "zh"]);
            json!(fill_in(dice.pick(&sentences_of(language)), dice))
        }
        _ => json!(fill_in(dice.pick(&sentences_of("en")), dice)),
    }
}

fn object(dice: &mut Random, depth: usize) -> Value {
    let fields = dice.range(3, 6);
    let names = dice.pick_some(&WORDS, fields);
    let fields = names.into_iter().map(|name| {
        let value = match dice.below(if depth > 0 { 9 } else { 6 }) {
            0 | 1 => number(dice),
            2 | 3 => string(dice),
            4 => json!(dice.chance(50)),
            5 => Value::Null,
            6 => (0..dice.range(1, 4)).map(|_| number(dice)).collect(),
            _ => object(dice, depth - 1),
        };
        (name.to_owned(), value)
    });
    Value::Object(fields.collect())
}

fn tags(dice: &mut Random) -> String {
    let mut text = "<report>\n".to_owned();
    for row in 0..dice.range(4, 9) {
        let words = dice.pick_some(&WORDS, 2);
        let sentence = fill_in(dice.pick(&sentences_of("en")), dice);
        let _ = write!(
            text,
            "  <entry id=\"{row}\">\n    <{}>{}</{}>\n    <note kind=\"{}\">{sentence} &amp; more</note>\n  </entry>\n",
            words[0],
            dice.below(5_000),
            words[0],
            words[1],
        );
    }
    text + "</report>\n"
}
