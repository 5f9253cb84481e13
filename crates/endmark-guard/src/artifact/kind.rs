//! Determines the kind of a text from its file name or content.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

/// The kind of a text. It determines what counts as a sentence and as a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactKind {
    /// Markdown, or plain prose.
    Markdown,
    /// Code or configuration. Only its comments are checked as text for people.
    Code,
    /// A JSON document.
    Json,
}

/// File extensions of prose.
const PROSE_EXTENSIONS: &[&str] =
    &["md", "markdown", "mdown", "mkd", "mdx", "txt", "text", "rst", "adoc", "asciidoc", "org"];

/// The maximum number of lines that determine the kind.
const SAMPLE_LINES: usize = 400;

/// The maximum number of bytes at the start of a text that are parsed to recognise JSON.
const JSON_SAMPLE_BYTES: usize = 64 << 10;

/// Words that often begin a line of code, but rarely a line of prose.
const CODE_WORDS: &[&str] = &[
    "import ",
    "from ",
    "def ",
    "class ",
    "fn ",
    "pub ",
    "use ",
    "let ",
    "const ",
    "var ",
    "function ",
    "return",
    "package ",
    "func ",
    "struct ",
    "impl ",
    "enum ",
    "#include",
    "#define",
    "#!",
    "#[",
    "public ",
    "private ",
    "protected ",
    "static ",
    "void ",
    "namespace ",
    "using ",
    "export ",
    "module ",
    "require",
    "async ",
    "await ",
    "if (",
    "for (",
    "while (",
    "switch (",
    "else",
    "elif ",
    "try:",
    "except ",
    "try {",
    "} ",
    "@",
    "<?",
    "</",
    "<!DOCTYPE",
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "CREATE ",
    "ALTER ",
    "DROP ",
    "local ",
    "end",
    "begin",
    "interface ",
    "type ",
    "self.",
    "this.",
    "print(",
    "assert ",
];

impl ArtifactKind {
    /// Returns the kind for a file name, or `None` if the extension is unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let (_, ending) = file.rsplit_once('.')?;
        let ending = ending.to_ascii_lowercase();
        if PROSE_EXTENSIONS.contains(&ending.as_str()) {
            return Some(Self::Markdown);
        }
        match ending.as_str() {
            "json" => Some(Self::Json),
            "rs" | "py" | "pyi" | "js" | "mjs" | "cjs" | "ts" | "tsx" | "jsx" | "vue" | "svelte" | "go"
            | "java" | "kt" | "kts" | "scala" | "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "cs" | "fs"
            | "vb" | "swift" | "m" | "mm" | "rb" | "php" | "pl" | "pm" | "lua" | "r" | "jl" | "hs" | "ml"
            | "ex" | "exs" | "erl" | "clj" | "lisp" | "el" | "sql" | "sh" | "bash" | "zsh" | "ps1"
            | "bat" | "cmd" | "yaml" | "yml" | "toml" | "ini" | "cfg" | "html" | "htm" | "xml" | "css"
            | "scss" | "less" | "proto" | "tf" | "gradle" | "dart" | "zig" | "nim" | "cmake"
            | "dockerfile" | "ipynb" | "jsonc" | "json5" | "tex" => Some(Self::Code),
            _ => None,
        }
    }

    /// Determines the kind from the beginning of a text.
    pub(crate) fn from_text(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['{', '[']) && is_json(text) {
            return Self::Json;
        }
        if ["#!", "<?php", "<?xml", "<!DOCTYPE", "<!doctype", "<html"]
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            return Self::Code;
        }
        let (mut code, mut prose) = (0, 0);
        for line in text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE_LINES) {
            match classify_line(line) {
                LineKind::Markdown => return Self::Markdown,
                LineKind::Code => code += 1,
                LineKind::Prose => prose += 1,
                LineKind::Neither => {}
            }
        }
        if code > prose { Self::Code } else { Self::Markdown }
    }
}

fn is_json(text: &str) -> bool {
    let end =
        (0..=JSON_SAMPLE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let after_bracket = text[1..].trim_start();
    // Markdown may begin with `[`, for example in `[a link](…)`.
    after_bracket.starts_with(['"', '{', '[', '}', ']', '-', 't', 'f', 'n'])
        | after_bracket.starts_with(|first: char| first.is_ascii_digit())
        && !matches!(detect(&text.as_bytes()[..end], &Format::Json).verdict, Verdict::Malformed { .. })
}

enum LineKind {
    /// The line is certainly Markdown.
    Markdown,
    Code,
    Prose,
    Neither,
}

fn classify_line(line: &str) -> LineKind {
    let code = line.trim();
    if ["```", "~~~", "## ", "### ", "#### ", "|--", "| --", "|:-", "**"]
        .iter()
        .any(|sign| line.starts_with(sign))
    {
        return LineKind::Markdown;
    }
    let ends = code.ends_with([';', '{', '}'])
        || code.ends_with("});")
        || code.ends_with("),")
        || code.ends_with("],")
        || code.ends_with(')') && code.contains('(') && !code.contains(". ");
    let begins = CODE_WORDS.iter().any(|word| code.starts_with(word));
    let assigns = code.contains(" = ")
        || code.contains(" := ")
        || code.contains("=>")
        || code.contains("->")
        || code.contains("()")
        || code.contains("==");
    if code.starts_with(['#', '/', '*', '-']) && !begins {
        // The line may be a comment, a heading or a list item.
        return LineKind::Neither;
    }
    let words = code.split_whitespace().count();
    let letters = code
        .chars()
        .filter(|character| {
            character.is_alphabetic() || character.is_whitespace() || ",.'’".contains(*character)
        })
        .count();
    let is_prose = letters * 20 >= code.chars().count() * 18
        && (words >= 6 || !code.is_ascii() || code.ends_with(['.', '!', '?']));
    match (ends || assigns || (begins && !is_prose), is_prose) {
        (true, _) => LineKind::Code,
        (false, true) => LineKind::Prose,
        _ => LineKind::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_extension_determines_the_kind() {
        for (name, kind) in [
            ("a/b.md", Some(ArtifactKind::Markdown)),
            ("c.RS", Some(ArtifactKind::Code)),
            ("d.json", Some(ArtifactKind::Json)),
            ("e", None),
            ("f.unknown", None),
            ("v1.2/readme", None),
        ] {
            assert_eq!(ArtifactKind::from_name(name), kind, "{name}");
        }
    }

    #[test]
    fn the_text_determines_the_kind_without_an_extension() {
        for text in [
            "# Title\n\nSome words that are a sentence.\n",
            "Just a few words.\n",
            "[a link](x) and more words behind it\n",
            "",
            "[todo]",
            "- one\n- two\n",
            "日本語の文書です。\n",
        ] {
            assert_eq!(ArtifactKind::from_text(text), ArtifactKind::Markdown, "{text}");
        }
        for text in [
            "import os\n\ndef main():\n    print(1)\n",
            "#!/bin/sh\nls\n",
            "fn main() {\n    run();\n}\n",
            "# a comment\nx = 1\ny = 2\n",
            "<?php\necho 1;\n",
            "SELECT a FROM b;\n",
        ] {
            assert_eq!(ArtifactKind::from_text(text), ArtifactKind::Code, "{text}");
        }
        for text in ["{\"a\": [1,", "[{\"a\": 1}]\n", "{}"] {
            assert_eq!(ArtifactKind::from_text(text), ArtifactKind::Json, "{text}");
        }
    }
}
