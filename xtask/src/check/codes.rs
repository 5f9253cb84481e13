//! Checks that `docs/errors.md` lists each error code once, with its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

const ERRORS_PAGE: &str = "docs/errors.md";

/// Calls that create an error. One of their arguments is the code, as a string literal.
const ERROR_CALLS: &[&str] = &[
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
const RESPONSE_CALLS: &[&str] = &["error_response(", "error_event(", "error_body("];

/// Functions that return codes as string literals.
const CODE_FUNCTIONS: &[&str] =
    &["fn code(&self)", "fn error_type(&self) -> &'static str", "fn body(&self) -> ErrorBody"];

/// The ends of definitions of fields and constants that contain codes.
const CODE_DEFINITIONS: &[&str] =
    &[" code: \"", "_ERROR_TYPE: &str = \"", "REPLY_INCOMPLETE: &str = \"", "REPLY_CUT: &str = \""];

/// The codes of each source: a command, a library, or the packages for other languages.
type Codes = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut used = Codes::new();
    for (file, text) in workspace.rust_files()? {
        let Some(place) = source_of_file(&file).filter(|_| !is_test_file(&file)) else { continue };
        let lines = lines_without_tests(&text).into_iter().map(|(_, line)| line);
        let code: String =
            lines.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
        for found in error_codes(&code) {
            used.entry(found.to_owned()).or_default().insert(place.clone());
        }
    }
    let page = workspace.read(Path::new(ERRORS_PAGE))?;
    Ok(failures(&used, &page))
}

/// Returns the source to which a file belongs, as the page names it.
fn source_of_file(file: &Path) -> Option<String> {
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
    for (at, call) in ERROR_CALLS.iter().flat_map(|call| text.match_indices(call)) {
        // The first argument of `Check::failed` is the name of the check, not a code.
        let is_part = |before: char| before.is_alphanumeric() || before == '_';
        if !text[..at].ends_with(is_part) && !text[..at].ends_with("Check::") {
            codes.extend(code_argument(&text[at + call.len()..]));
        }
    }
    for (at, call) in RESPONSE_CALLS.iter().flat_map(|call| text.match_indices(call)) {
        let code = code_argument(&text[at + call.len()..]);
        codes.extend(code.filter(|code| code.starts_with("endmark_")));
    }
    for (at, sign) in CODE_DEFINITIONS.iter().flat_map(|sign| text.match_indices(sign)) {
        codes.extend(text[at + sign.len()..].split('"').next().filter(|word| is_code(word)));
    }
    for function in CODE_FUNCTIONS {
        for (at, _) in text.match_indices(function) {
            let body = text[at..].split("\n    }\n").next().unwrap_or_default();
            codes.extend(code_literals(body));
        }
    }
    codes
}

/// Returns the first code among the first three arguments of a call.
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
                // In `Answer::no_in_text`, two arguments precede the code.
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

/// Returns the string literals in a text that have the form of a code.
fn code_literals(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).filter(|word| is_code(word))
}

fn is_code(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_')
}

/// Returns the rows of the page, each as its code and its second column.
fn table_rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        Some((cells.next()?.trim_end_matches('`'), cells.next()?))
    })
}

fn failures(used: &Codes, page: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let mut listed = BTreeSet::new();
    for (code, places) in table_rows(page) {
        if !listed.insert(code) {
            failures.push(format!("{ERRORS_PAGE} lists `{code}` twice: a code has one meaning"));
        }
        let named: BTreeSet<String> = places.split(", ").map(str::to_owned).collect();
        match used.get(code) {
            None => failures.push(format!("{ERRORS_PAGE} lists `{code}`, which no source uses: delete its row")),
            Some(places) if *places != named => failures.push(format!(
                "`{code}` comes from {}, and {ERRORS_PAGE} names others: if it means there what the row says, name them; else \
                 choose another code",
                places.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )),
            Some(_) => {}
        }
    }
    for (code, places) in used.iter().filter(|(code, _)| !listed.contains(code.as_str())) {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        failures.push(format!("`{code}` of {} is not in {ERRORS_PAGE}: add a row", places.join(", ")));
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
            assert_eq!(source_of_file(Path::new(file)).as_deref(), place, "{file}");
        }
    }
}
