//! Finds file paths in prose. (AR-1, AR-5)

use super::lines::find_lines;
use crate::vocabulary::{contains, find_list};

/// The maximum length of a file extension, in bytes. Anything longer is a word after a full stop.
const MAX_EXTENSION_BYTES: usize = 12;

/// What may separate a path from the words before it.
const SEPARATORS_BEFORE_PATH: [&str; 6] = ["`", "\"", "*", " in ", " at ", " from "];

/// Returns the first file in a text, and the text before and after it. The path uses `/` between folders and has no
/// leading `./`. Folder names may contain spaces.
pub(super) fn find_file(text: &str) -> Option<(String, &str, &str)> {
    let offset_of = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    let find_end = |length: &dyn Fn(&str) -> Option<usize>| {
        text.split_whitespace().find_map(|word| Some(offset_of(word) + length(word)?))
    };
    let ends = find_end(&file_path_end).or_else(|| find_end(&folder_path_end))?;
    let (before, tail) = text.split_at(ends);
    let after =
        SEPARATORS_BEFORE_PATH.iter().filter_map(|between| Some(before.rfind(between)? + between.len()));
    // A bracket that is closed again belongs to a folder such as `(auth)`.
    let open = before.rfind('(').filter(|at| !before[*at..].contains(')')).map(|at| at + 1);
    let mut begins = after.chain(open).max().unwrap_or(0);
    // In `line 3 of src/a.rs` the path begins after `of`, but `Copy of src/a.rs` is a path itself, also after
    // `line 3 in`.
    let rest = &before[begins..];
    let of = rest.match_indices(" of ").find(|(at, _)| find_lines(&rest[..*at]).is_some());
    begins += of.map_or(0, |(at, of)| at + of.len());
    // Skip the usual words before a path: `see also src/a.rs`.
    while let Some((word, _)) = before[begins..].trim_start().split_once(' ') {
        if !is_location_word(word.trim_end_matches([':', '.'])) {
            break;
        }
        begins = offset_of(word) + word.len();
    }
    let file = before[begins..].trim_matches(|ch: char| ch.is_whitespace() || "[<>'".contains(ch));
    let file = file.replace('\\', "/");
    let file = file.strip_prefix("./").unwrap_or(&file);
    (!file.is_empty()).then(|| (file.to_owned(), &text[..begins], tail))
}

/// Returns the offset at which the file path in a word ends. Details may follow the path, as in `a.rs:41` and
/// `a.rs#login`, or enclose it: `login(X.java:120)`.
fn file_path_end(word: &str) -> Option<usize> {
    let call =
        word.split_once('(').filter(|(before, _)| !before.is_empty() && !before.ends_with(['/', '\\']));
    let inner = call.and_then(|(before, inner)| Some(before.len() + 1 + bare_file_path_end(inner)?));
    inner.or_else(|| bare_file_path_end(word))
}

fn bare_file_path_end(word: &str) -> Option<usize> {
    let begins = word.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let name = &word[begins..];
    let first = name.chars().next().map_or(0, char::len_utf8);
    let length = name[first..].find([':', '#', '?', '(', '[', '`', '"', '\'', ']', '>']);
    let name = &name[..length.map_or(name.len(), |length| first + length)];
    let name = name.trim_end_matches(['.', '*', ')']);
    has_extension(name.trim_start_matches(['(', '[', '`', '"', '*', '<'])).then_some(begins + name.len())
}

/// Returns the offset at which the folder path in a word ends.
fn folder_path_end(word: &str) -> Option<usize> {
    let bare = word.trim_end_matches(['`', '"', '\'', '*', ')', ']', '.', ':']);
    bare.contains(['/', '\\']).then_some(bare.len())
}

/// Whether a name has a file extension, or is a known file name without one.
fn has_extension(name: &str) -> bool {
    let is_extension = |extension: &str| {
        (1..=MAX_EXTENSION_BYTES).contains(&extension.len())
            && extension.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_' || ch == '-')
            && extension.contains(|ch: char| ch.is_ascii_alphabetic())
    };
    contains("file", name) || name.rsplit_once('.').is_some_and(|(_, extension)| is_extension(extension))
}

fn is_location_word(word: &str) -> bool {
    find_list("around", &word.to_lowercase()).is_some()
}

/// Whether a text has words in addition to the given files, line numbers and the usual words around them.
pub(super) fn has_other_words<'a>(text: &str, named: impl Iterator<Item = &'a str>) -> bool {
    let text = named.fold(text.replace('\\', "/"), |text, named| text.replace(named, " "));
    let mut words = text.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty());
    // A line number: `12`, `L12`.
    let is_line = |word: &str| word.trim_start_matches(['L', 'l']).chars().all(|ch| ch.is_ascii_digit());
    words.any(|word| !is_line(word) && !is_location_word(word))
}

/// Whether a parsed place is a URL.
pub(crate) fn is_url(file: &str) -> bool {
    let scheme = file.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Whether a parsed place is certainly a file, a folder or a URL. Routes, hosts, functions and other words may also
/// contain a `/` or a full stop.
pub(crate) fn names_file(file: &str, has_lines: bool) -> bool {
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    let has_spaces = file.contains(char::is_whitespace);
    let first = file.split('/').next().unwrap_or(file);
    // An HTTP method before a route: `GET /login`.
    let method = first.split_whitespace().next().filter(|_| first.contains(char::is_whitespace));
    let is_route =
        method.is_some_and(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase()));
    if is_url(file) || is_route {
        return is_url(file);
    }
    if contains("file", name) || name.starts_with('.') && name.len() > 2 {
        return true;
    }
    if has_extension(name) {
        let is_known = name.rsplit_once('.').is_some_and(|(_, extension)| contains("extension", extension));
        return is_known || has_lines || !folders.is_empty() && !has_spaces;
    }
    let is_folder = !folders.is_empty() && (contains("folder", first) || first.starts_with('.'));
    !has_spaces && (has_lines || is_folder)
}
