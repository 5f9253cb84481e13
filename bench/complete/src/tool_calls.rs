//! Tool calls that write code, cut inside the code.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::Cut;

/// Number of tool calls.
const CALLS: usize = 300;

/// Comments with wide characters, which are added to some lines in a third of the calls.
const WIDE_COMMENTS: [&str; 4] =
    [" // 🚢 港は静かだった", " // naïve — 文字化け 😀👩‍🚀", " // ключ → 値", " // ∎ 終わり 🎉"];

/// Returns 300 cut calls. A third of them contain emoji and CJK characters, half of them use `\u` escapes,
/// and a third of them are cut in or near an escape.
pub fn cuts() -> Vec<Cut> {
    let sources = sources();
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    (0..CALLS)
        .map(|index| {
            let code = excerpt(&sources[numbers.below(sources.len())], &mut numbers);
            let code = if index.is_multiple_of(3) { with_wide_comments(&code, &mut numbers) } else { code };
            call(index, &code, &mut numbers)
        })
        .collect()
}

fn call(index: usize, code: &str, numbers: &mut Numbers) -> Cut {
    let content = if index.is_multiple_of(2) { with_unicode_escapes(code) } else { json!(code).to_string() };
    let before = format!(
        "{{\"command\": \"create\", \"line_count\": {}, \"path\": \"src/file_{index}.rs\", \"content\": ",
        code.lines().count()
    );
    let text = format!("{before}{content}, \"overwrite\": true}}");
    let inside = before.len() + 1..before.len() + content.len();
    let mut cut = inside.start + numbers.below(inside.len());
    if index % 3 == 1 {
        // Move the cut to the next escape and up to 6 bytes past its backslash.
        let escape = text.as_bytes()[cut..inside.end].iter().position(|byte| *byte == b'\\');
        cut = escape.map_or(cut, |offset| (cut + offset + 1 + numbers.below(7)).min(inside.end - 1));
    }
    Cut {
        beginning: text.as_bytes()[..cut].to_vec(),
        document: serde_json::from_str(&text).expect("a tool call is JSON"),
        must_have: Some("content"),
    }
}

/// Writes the code as a JSON string. Non-ASCII characters and `<>&'=` become `\u` escapes.
fn with_unicode_escapes(code: &str) -> String {
    let mut inside = String::new();
    for character in json!(code).to_string().chars() {
        if character.is_ascii() && !"<>&'=".contains(character) {
            inside.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(inside, "\\u{unit:04x}");
        }
    }
    inside
}

fn with_wide_comments(code: &str, numbers: &mut Numbers) -> String {
    let lines = code.lines().map(|line| match numbers.below(3) {
        0 => format!("{line}{}\n", WIDE_COMMENTS[numbers.below(WIDE_COMMENTS.len())]),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Returns between 8 and 87 consecutive lines of a source, or fewer if the source is shorter.
fn excerpt(source: &str, numbers: &mut Numbers) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let count = 8 + numbers.below(80);
    let start = numbers.below(lines.len().saturating_sub(count) + 1);
    lines[start..].iter().take(count).flat_map(|line| [line, "\n"]).collect()
}

/// Returns the source files of this project that have at least 20 lines.
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut folders = vec![root];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let sources = files.iter().map(|file| fs::read_to_string(file).expect("a source is UTF-8"));
    sources.filter(|source| source.lines().count() >= 20).collect()
}

/// A pseudo-random number generator that returns the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound.max(1)
    }
}
