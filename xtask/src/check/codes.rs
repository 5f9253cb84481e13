//! Checks that `docs/errors.md` lists every error code once, with its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

const PAGE: &str = "docs/errors.md";

/// Calls that create an error. One of their arguments is the code, as a literal.
const CALLS: &[&str] = &[
    "CommandError::input(",
    "ErrorBody::new(",
    "Failure::invalid(",
    "Failure::new(",
    "Answer::no(",
    "Answer::no_in_text(",
    "no_answer(",
    "failed(",
];

/// Calls that create an error response of the gateway. Its code begins with `endmark_`.
const ANSWERS: &[&str] = &["error_response(", "error_event(", "error_body("];

/// Functions whose body contains codes as literals.
const FUNCTIONS: &[&str] =
    &["fn code(&self)", "fn kind(&self) -> &'static str", "fn body(&self) -> ErrorBody"];

/// Names of fields and constants whose values are codes.
const NAMED: &[&str] =
    &[" code: \"", "_REFUSED: &str = \"", "REPLY_INCOMPLETE: &str = \"", "REPLY_CUT: &str = \""];

/// The codes of each source: a command, a library, or the packages for other languages.
type Codes = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut used = Codes::new();
    for (file, text) in workspace.rust_files()? {
        let Some(place) = source_place(&file).filter(|_| !is_test_file(&file)) else { continue };
        let lines = lines_without_tests(&text).into_iter().map(|(_, line)| line);
        let code: String =
            lines.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
        for found in error_codes(&code) {
            used.entry(found.to_owned()).or_default().insert(place.clone());
        }
    }
    let page = workspace.read(Path::new(PAGE))?;
    Ok(failures(&used, &page))
}

/// Returns the source that a file belongs to, as named in the page.
fn source_place(file: &Path) -> Option<String> {
    let mut parts = file.iter().map(|part| part.to_string_lossy());
    let (top, package) = (parts.next()?, parts.next()?);
    let mut inside = parts.filter(|part| part != "src");
    match (top.as_ref(), package.as_ref()) {
        ("bindings", _) => Some("packages".to_owned()),
        ("crates", "endmark-cli") => {
            let room = inside.next()?;
            let room = if room == "commands" { inside.next()? } else { room };
            Some(room.trim_end_matches(".rs").to_owned())
        }
        ("crates", name) => name.strip_prefix("endmark-").map(str::to_owned),
        _ => None,
    }
}

/// Returns the error codes in the text of a file.
fn error_codes(text: &str) -> BTreeSet<&str> {
    let mut codes = BTreeSet::new();
    for (at, call) in CALLS.iter().flat_map(|call| text.match_indices(call)) {
        // The first argument of `Check::failed` is the name of the check, not a code.
        let is_part = |before: char| before.is_alphanumeric() || before == '_';
        if !text[..at].ends_with(is_part) && !text[..at].ends_with("Check::") {
            codes.extend(code_argument(&text[at + call.len()..]));
        }
    }
    for (at, call) in ANSWERS.iter().flat_map(|call| text.match_indices(call)) {
        let code = code_argument(&text[at + call.len()..]);
        codes.extend(code.filter(|code| code.starts_with("endmark_")));
    }
    for (at, sign) in NAMED.iter().flat_map(|sign| text.match_indices(sign)) {
        codes.extend(text[at + sign.len()..].split('"').next().filter(|word| is_code(word)));
    }
    for function in FUNCTIONS {
        for (at, _) in text.match_indices(function) {
            let body = text[at..].split("\n    }\n").next().unwrap_or_default();
            codes.extend(literals(body));
        }
    }
    codes
}

/// Returns the first of a call's first three arguments that is a code.
fn code_argument(arguments: &str) -> Option<&str> {
    let (mut depth, mut begin, mut position) = (0, 0, 0);
    for (at, character) in arguments.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ',' | ')' if depth == 0 => {
                let argument = arguments[begin..at].trim();
                let code = argument.strip_prefix('"').and_then(|code| code.strip_suffix('"'));
                if let Some(code) = code.filter(|code| is_code(code)) {
                    return Some(code);
                }
                (begin, position) = (at + 1, position + 1);
                // In `Answer::no_in_text` the data and the text precede the code.
                if position == 3 || character == ')' {
                    return None;
                }
            }
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the string literals of a text that can be codes.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).filter(|word| is_code(word))
}

fn is_code(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_')
}

/// Returns the rows of the page: the code, and the second column.
fn rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        Some((cells.next()?.trim_end_matches('`'), cells.next()?))
    })
}

fn failures(used: &Codes, page: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let mut listed = BTreeSet::new();
    for (code, places) in rows(page) {
        if !listed.insert(code) {
            failures.push(format!("{PAGE} lists `{code}` twice: a code has one meaning"));
        }
        let named: BTreeSet<String> = places.split(", ").map(str::to_owned).collect();
        match used.get(code) {
            None => failures.push(format!("{PAGE} lists `{code}`, which no source uses: delete its row")),
            Some(places) if *places != named => failures.push(format!(
                "`{code}` comes from {}, and {PAGE} names others: if it means there what the row says, name them; else \
                 choose another code",
                places.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )),
            Some(_) => {}
        }
    }
    for (code, places) in used.iter().filter(|(code, _)| !listed.contains(code.as_str())) {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        failures.push(format!("`{code}` of {} is not in {PAGE}: add a row", places.join(", ")));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_found_at_their_definitions() {
        let text = "
            CommandError::input(\n    \"no_file\",\n    \"text\", hint)
            Answer::no_in_text(to_data(&a)?, text, \"cut\", \"it is\")
            Failure::new(FailureKind::Merge, error.code(), error).with(json!({\"attempt\": 1}))
            Error { code: \"lost\", message }
    fn code(&self) -> &str {
        match self { A => \"first\", B => \"second\" }
    }
    fn other() { \"third\" }
";
        assert_eq!(Vec::from_iter(error_codes(text)), ["cut", "first", "lost", "no_file", "second"]);
    }

    #[test]
    fn a_code_is_listed_once_with_its_sources() {
        let used = Codes::from([("cut".to_owned(), BTreeSet::from(["text".to_owned()]))]);
        let of = |page: &str| failures(&used, page).len();
        assert_eq!(of("| `cut` | text | It is cut. |"), 0);
        assert_eq!(of(""), 1);
        assert_eq!(of("| `cut` | text | It is cut. |\n| `cut` | text | Another. |"), 1);
        assert_eq!(of("| `cut` | text, wire | It is cut. |"), 1);
        assert_eq!(of("| `cut` | text | It is cut. |\n| `gone` | text | Gone. |"), 1);
    }

    #[test]
    fn a_source_is_a_command_or_a_library() {
        for (file, place) in [
            ("crates/endmark-cli/src/commands/findings/fit.rs", Some("findings")),
            ("crates/endmark-cli/src/input.rs", Some("input")),
            ("crates/endmark-exec/src/drive/before.rs", Some("exec")),
            ("bindings/core/src/lib.rs", Some("packages")),
            ("xtask/src/main.rs", None),
        ] {
            assert_eq!(source_place(Path::new(file)).as_deref(), place, "{file}");
        }
    }
}
