use super::*;

fn read_places(text: &str) -> String {
    let location = Location::read(text).unwrap();
    location.places().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn locations_are_parsed_in_the_spellings_of_models() {
    for (text, expected) in [
        ("src/db/user.rs:41-58", "src/db/user.rs:41-58"),
        ("`src/db/user.rs:41`", "src/db/user.rs:41"),
        ("./src/a.rs:41:7", "src/a.rs:41"),
        ("src/a.rs#L41-L58", "src/a.rs:41-58"),
        ("src/a.rs#L41C3-L58C1", "src/a.rs:41-58"),
        ("src/a.rs(3,9)", "src/a.rs:3"),
        ("src/a.rs(3,9): error, src/b.rs(7)", "src/a.rs:3 src/b.rs:7"),
        ("src/a.rs(3,9) and b.c (5-6)", "src/a.rs:3 b.c:5-6"),
        ("find(3,9)", ""),
        ("src/a.rs (lines 41-58)", "src/a.rs:41-58"),
        ("src/a.rs (line 41)", "src/a.rs:41"),
        ("src/a.rs, lines 41–58", "src/a.rs:41-58"),
        ("src/a.rs line 41 to 58", "src/a.rs:41-58"),
        ("src/a.rs:L41..58", "src/a.rs:41-58"),
        ("src\\web\\a.cs:9", "src/web/a.cs:9"),
        ("C:\\src\\a.c:9-3", "C:/src/a.c:3-9"),
        ("src/a.rs:1, src/b.rs:2; src/c.rs", "src/a.rs:1 src/b.rs:2 src/c.rs"),
        ("src/a.rs:1, 5-6 and 9", "src/a.rs:1 src/a.rs:5-6 src/a.rs:9"),
        ("[src/a.rs:3](https://example.org/a#L3)", "src/a.rs:3"),
        ("https://github.com/o/r/blob/main/src/a.rs#L3-L9", "https://github.com/o/r/blob/main/src/a.rs:3-9"),
        ("https://git.example:8443/o/r/src/a.rs", "https://git.example:8443/o/r/src/a.rs"),
        ("src/a.rs in `find_user`", "src/a.rs"),
        ("src/a.rs (login)", "src/a.rs"),
        ("src/a.rs, login()", "src/a.rs"),
        ("src/a.rs::login", "src/a.rs"),
        ("fn login in src\\a.rs", "src/a.rs"),
        ("`login`, in `./src/a.rs`", "src/a.rs"),
        ("src/a.rs (login, delete_user)", "src/a.rs"),
        ("src/a.rs — class `Users`, method `get`; src/b.rs", "src/a.rs src/b.rs"),
        ("src/a.rs:~12", "src/a.rs:12"),
        ("src/a.rs, line ~12", "src/a.rs:12"),
        ("src/a.rs, around line 12", "src/a.rs:12"),
        ("src/a.rs (lines approx. 12-20)", "src/a.rs:12-20"),
        ("src/a.rs ~L400", "src/a.rs:400"),
        ("my files/a.rs:3", "my files/a.rs:3"),
        ("src/a.rs:0", "src/a.rs"),
        ("the login form", ""),
        ("src/a.py, function get, lines 41-58", "src/a.py:41-58"),
        ("get.go, ServeHTTP:30-44", "get.go:30-44"),
        ("a.html:12, etc.", "a.html:12"),
        ("x.ts:9 and :22", "x.ts:9 x.ts:22"),
        ("x.ts:9, and others", "x.ts:9"),
        ("x.rs, `handler`", "x.rs"),
        ("File \"src/a.py\", line 12, in run", "src/a.py:12"),
        ("`find_user` in `src/a.rs:41`", "src/a.rs:41"),
        ("find_user (src/a.rs:41-58)", "src/a.rs:41-58"),
        ("com.shop.X.login(X.java:120)", "X.java:120"),
        ("a.ts:9 → b.ts:3", "a.ts:9 b.ts:3"),
        ("src/My Project/Login.cs", "src/My Project/Login.cs"),
        ("src/My Project/Login.cs:40", "src/My Project/Login.cs:40"),
        ("app/(auth)/page.tsx:12", "app/(auth)/page.tsx:12"),
        ("Dockerfile:3", "Dockerfile:3"),
        ("Entire application", ""),
        ("src/v2/a.rs", "src/v2/a.rs"),
    ] {
        assert_eq!(read_places(text), expected, "{text}");
    }
    assert_eq!(Location::read(" `` "), None);
}

#[test]
fn locations_are_separated_from_surrounding_text() {
    for (text, expected) in [
        ("src/my file (1).rs:7", "src/my file (1).rs:7"),
        ("src/my file (1).rs", "src/my file (1).rs"),
        ("src/my file (1).rs (lines 7-9)", "src/my file (1).rs:7-9"),
        ("src/my file.rs:3, src/other file.rs:9", "src/my file.rs:3 src/other file.rs:9"),
        ("src/a.rs:3 (see also src/b.rs:9)", "src/a.rs:3"),
        ("src/a.rs:login", "src/a.rs"),
        ("src/a.rs:login()", "src/a.rs"),
        ("src/a.rs#login", "src/a.rs"),
        ("src/a.rs:login:12", "src/a.rs:12"),
        ("src/a.rs:[10-20]", "src/a.rs:10-20"),
        ("src/a.rs[10-20]", "src/a.rs:10-20"),
        ("src/a.rs [10]", "src/a.rs:10"),
        ("[src/a.rs](src/a.rs#L10-L20)", "src/a.rs:10-20"),
        ("[a.rs](https://github.com/o/r/blob/main/src/a.rs#L10-L20)", "a.rs:10-20"),
        ("[the login form](src/a.rs#L10)", "src/a.rs:10"),
        ("see [src/a.rs](src/a.rs#L10), [src/b.rs](src/b.rs#L3)", "src/a.rs:10 src/b.rs:3"),
        ("see also src/a.rs:10", "src/a.rs:10"),
        ("file: src/a.rs:3", "src/a.rs:3"),
        ("In file src/a.rs, line 3", "src/a.rs:3"),
        ("Lines 10-20 of a.rs", "a.rs:10-20"),
        ("line 3 of Copy of app/x.rs", "Copy of app/x.rs:3"),
        ("Copy of app/x.rs:3", "Copy of app/x.rs:3"),
        ("line 3 in Copy of app/x.rs", "Copy of app/x.rs:3"),
        ("line 10 in `src/a.rs`", "src/a.rs:10"),
        ("L10-L20, src/a.rs", "src/a.rs:10-20"),
        ("src/[id]/page.tsx:4", "src/[id]/page.tsx:4"),
        ("app/users/[id]/route.ts", "app/users/[id]/route.ts"),
        ("lib/Foo@2.js:5", "lib/Foo@2.js:5"),
    ] {
        assert_eq!(read_places(text), expected, "{text}");
    }
}

#[test]
fn words_besides_files_and_lines_are_detected() {
    for (text, expected) in [
        ("src/a.rs:10 (login)", true),
        ("POST /login (src/a.rs:10)", true),
        ("the login form", true),
        ("src/a.rs:10:login", true),
        ("src/a.py, function get, lines 41-58", true),
        ("src/a.rs:10 (login), src/b.rs", true),
        ("src/a.rs:10", false),
        ("./src\\a.rs (lines 10 to 12) and `b.rs#L3-L9`", false),
        ("around line ~12 of src/a.rs, 40", false),
        ("src/a.rs(3,9)", false),
        ("src/a.rs, fn login()", true),
    ] {
        assert_eq!(Location::read(text).unwrap().has_other_words(), expected, "{text}");
    }
}

/// Repetitive input is parsed in linear time and on a small stack.
#[test]
fn repetitive_texts_are_parsed_in_linear_time() {
    for text in ["line ", "a(", "(", "a.rs:1 ", "](", "in ", " of a", "/", "(1,", "a.rs(b.rs("] {
        assert!(Location::read(&text.repeat(20_000)).is_some());
    }
}
