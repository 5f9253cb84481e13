//! The path of a file among the words that stand around it. (AR-1)

/// Names of files that have no extension.
const BARE_NAMES: [&str; 18] = [
    "dockerfile",
    "containerfile",
    "makefile",
    "gnumakefile",
    "justfile",
    "jenkinsfile",
    "vagrantfile",
    "procfile",
    "gemfile",
    "rakefile",
    "podfile",
    "fastfile",
    "brewfile",
    "caddyfile",
    "codeowners",
    "license",
    "readme",
    "go.mod",
];

/// What the names of files commonly end with: without lines and folders, `db.execute` and `req.body` are none.
const EXTENSIONS: [&str; 96] = [
    "asm",
    "asp",
    "aspx",
    "astro",
    "bash",
    "bat",
    "c",
    "cc",
    "cfg",
    "cjs",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "cshtml",
    "css",
    "csv",
    "cts",
    "cxx",
    "dart",
    "ejs",
    "env",
    "erb",
    "erl",
    "ex",
    "exs",
    "fs",
    "go",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "haml",
    "hbs",
    "hcl",
    "hpp",
    "hs",
    "html",
    "ini",
    "ipynb",
    "j2",
    "java",
    "js",
    "json",
    "jsp",
    "jsx",
    "key",
    "kt",
    "kts",
    "less",
    "lock",
    "lua",
    "m",
    "md",
    "mjs",
    "ml",
    "mm",
    "mod",
    "mts",
    "nix",
    "pem",
    "php",
    "pl",
    "plist",
    "pm",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "rb",
    "rs",
    "sass",
    "scala",
    "scss",
    "service",
    "sh",
    "sol",
    "sql",
    "svelte",
    "swift",
    "tf",
    "tfvars",
    "toml",
    "tpl",
    "ts",
    "tsx",
    "txt",
    "vb",
    "vue",
    "xml",
    "yaml",
    "yml",
    "zig",
];

/// Folders that code commonly lies in.
const FOLDERS: [&str; 20] = [
    "src", "lib", "app", "apps", "bin", "cmd", "config", "crates", "deploy", "docs", "internal", "packages",
    "pkg", "public", "scripts", "test", "tests", "tools", "vendor", "web",
];

/// Whether a place that was read is a file or a folder beyond doubt, and no route, host, function or other word with a `/` or
/// a full stop in it.
pub(crate) fn names_file(file: &str, has_lines: bool) -> bool {
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    let is_spaced = file.contains(char::is_whitespace);
    let first = file.split('/').next().unwrap_or(file);
    let is_route = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].iter().any(|method| {
        first.strip_prefix(method).is_some_and(|behind| behind.starts_with(char::is_whitespace))
    });
    let is_url = file
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphabetic()));
    if is_url || is_route {
        return is_url;
    }
    if BARE_NAMES.contains(&name.to_ascii_lowercase().as_str()) || name.starts_with('.') && name.len() > 2 {
        return true;
    }
    match name.rsplit_once('.') {
        Some(_) if has_extension(name) => {
            has_known_extension(name) || has_lines || !folders.is_empty() && !is_spaced
        }
        _ => {
            !is_spaced
                && (has_lines || !folders.is_empty() && (FOLDERS.contains(&first) || first.starts_with('.')))
        }
    }
}

/// What stands between a function and its file, and around a path.
const BETWEEN: [&str; 6] = ["`", "\"", " in ", " at ", " of ", " from "];

/// A longer extension is a word behind a full stop.
const LONGEST_EXTENSION: usize = 12;

/// Which of several paths is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    /// The one directly before the lines that are named.
    Last,
}

/// The path in a text, with `/` between folders and without `./` before them; none where nothing in it is one.
pub(super) fn path_in(text: &str, which: Which) -> Option<String> {
    let mut pieces = vec![text];
    for between in BETWEEN {
        pieces = pieces.into_iter().flat_map(|piece| piece.split(between)).collect();
    }
    pieces = pieces.into_iter().flat_map(around_open_parenthesis).collect();
    let mut paths = pieces.into_iter().filter_map(path);
    match which {
        Which::First => paths.next(),
        Which::Last => paths.next_back(),
    }
}

/// `login` and `X.java` of `login(X.java`; a folder as `(auth)` is closed.
fn around_open_parenthesis(text: &str) -> Vec<&str> {
    match text.rfind('(') {
        Some(at) if !text[at..].contains(')') && !text[..at].ends_with(['/', '\\']) => {
            vec![&text[..at], &text[at + 1..]]
        }
        _ => vec![text],
    }
}

fn path(text: &str) -> Option<String> {
    let text = trimmed(text);
    // `src/a.rs::find_user`
    let text = text.split_once("::").map_or(text, |(file, _)| file);
    let text = trimmed(without_introduction(trimmed(up_to_path(text)?))).replace('\\', "/");
    let text = without_part(text.strip_prefix("./").unwrap_or(&text));
    (!text.is_empty()).then(|| text.to_owned())
}

/// A path without what is named of the file behind it: `login` of `a.rs:login` and `a.rs#login`, `0` of `a.rs:0`.
fn without_part(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let marks = path[name..].match_indices([':', '#', '[']).map(|(at, _)| name + at);
    let is_file = |at: &usize| has_extension(&path[..*at]) && !has_known_extension(&path[*at..]);
    marks.into_iter().find(is_file).map_or(path, |at| &path[..at])
}

fn has_known_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

/// Words with which a path is introduced.
const INTRODUCTIONS: [&str; 9] = ["see", "also", "cf", "in", "at", "from", "of", "file", "path"];

fn without_introduction(text: &str) -> &str {
    match text.split_once(char::is_whitespace) {
        Some((word, rest))
            if INTRODUCTIONS.contains(&word.trim_end_matches([':', '.']).to_ascii_lowercase().as_str()) =>
        {
            without_introduction(rest.trim_start())
        }
        _ => text,
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|sign: char| sign.is_whitespace() || "`*\"'()[]<>:".contains(sign))
}

/// A text up to the word with which a path ends: folders may have spaces in their names.
fn up_to_path(text: &str) -> Option<&str> {
    let ends = |word: &str| {
        let begins = word.as_ptr().addr() - text.as_ptr().addr();
        &text[..begins + word.len()]
    };
    let has_extension = text.split_whitespace().find(|word| has_extension(word));
    let has_folder = || text.split_whitespace().find(|word| word.contains(['/', '\\']));
    has_extension.or_else(has_folder).map(ends)
}

/// Whether a word ends as the name of a file does, or is one of those without an extension.
fn has_extension(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.split([':', '#', '?']).next().unwrap_or(name);
    let name = name.trim_matches(|sign: char| "`*\"'()[]<>,".contains(sign));
    if BARE_NAMES.contains(&name.to_ascii_lowercase().as_str()) {
        return true;
    }
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        (1..=LONGEST_EXTENSION).contains(&extension.len())
            && extension.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-')
            && extension.contains(|sign: char| sign.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_from_other_names_with_the_same_signs() {
        for (file, has_lines) in [
            ("src/a.rs", false),
            ("a.py", false),
            ("Dockerfile", false),
            (".env", false),
            ("bin/run", true),
            ("src/handlers", false),
            ("config/x.odd", false),
            ("src/My Project/Login.cs", false),
            ("x.odd", true),
            ("https://github.com/o/r/blob/main/src/a", false),
            ("C:/src/a.c", true),
        ] {
            assert!(names_file(file, has_lines), "{file}");
        }
        for (words, has_lines) in [
            ("POST /login", false),
            ("GET /a.php", false),
            ("/login", false),
            ("the /login", false),
            ("client/server", false),
            ("and/or", false),
            ("db.execute", false),
            ("req.body", false),
            ("example.com", false),
            ("example.com/login", false),
            ("POST /login", true),
        ] {
            assert!(!names_file(words, has_lines), "{words}");
        }
    }

    #[test]
    fn a_path_is_told_from_the_words_around_it() {
        for (text, expected) in [
            ("src/a.rs", "src/a.rs"),
            ("src/a.rs in `find_user`", "src/a.rs"),
            ("`find_user` in `src/a.rs`", "src/a.rs"),
            ("find_user (src/a.rs", "src/a.rs"),
            ("com.shop.X.login(X.java", "X.java"),
            ("app/(auth)/login/page.tsx", "app/(auth)/login/page.tsx"),
            ("File \"src/a.py\"", "src/a.py"),
            ("src/a.rs::find_user", "src/a.rs"),
            ("src/My Project/Login.cs", "src/My Project/Login.cs"),
            ("docs/user guide.md", "docs/user guide.md"),
            ("src/a.rs find_user", "src/a.rs"),
            ("Dockerfile", "Dockerfile"),
            (".env", ".env"),
            ("src/.env.local handler", "src/.env.local"),
            ("POST /login", "POST /login"),
            ("src/handlers directory", "src/handlers"),
        ] {
            assert_eq!(path_in(text, Which::Last).as_deref(), Some(expected), "{text}");
        }
        for text in ["function get", "etc.", "and others", "multiple locations", "e.g.", "in run", "v1.2", ""]
        {
            assert_eq!(path_in(text, Which::First), None, "{text}");
        }
    }
}
