//! Generates valid JSON documents as lists of atoms, so that a test knows where each token ends.

use proptest::prelude::*;

/// A piece of a document that is settled only as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Atom {
    pub(crate) source: String,
    pub(crate) kind: AtomKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomKind {
    /// A bracket, comma, colon, literal or quote, or a character or escape of a string.
    Fixed,
    /// A number, which is settled only if something follows it.
    Number,
    Whitespace,
}

fn atom(source: impl Into<String>, kind: AtomKind) -> Atom {
    Atom { source: source.into(), kind }
}

fn fixed_atoms(source: impl Into<String>) -> Vec<Atom> {
    vec![atom(source, AtomKind::Fixed)]
}

/// Returns the text of `atoms`.
pub(crate) fn source(atoms: &[Atom]) -> String {
    atoms.iter().map(|atom| atom.source.as_str()).collect()
}

fn whitespace() -> impl Strategy<Value = Vec<Atom>> {
    prop_oneof![
        4 => Just(Vec::new()),
        1 => "[ \n\r\t]{1,3}".prop_map(|source| vec![atom(source, AtomKind::Whitespace)]),
    ]
}

fn string() -> impl Strategy<Value = Vec<Atom>> {
    let character = prop_oneof![
        6 => "[ -!#-\\[\\]-~]",
        1 => any::<char>().prop_filter("must be escaped", |c| *c >= ' ' && *c != '"' && *c != '\\').prop_map(String::from),
        2 => r#"\\["\\/bfnrt]"#,
        1 => r"\\u[0-9a-cA-C][0-9a-fA-F]{3}",
        1 => r"\\u[dD][c-fC-F][0-9a-fA-F]{2}",
        1 => r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}",
    ];
    prop::collection::vec(character, 0..12).prop_map(|characters| {
        let inside = characters.into_iter().flat_map(fixed_atoms);
        fixed_atoms("\"").into_iter().chain(inside).chain(fixed_atoms("\"")).collect()
    })
}

fn scalar() -> impl Strategy<Value = Vec<Atom>> {
    prop_oneof![
        prop::sample::select(vec!["true", "false", "null"]).prop_map(fixed_atoms),
        r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?"
            .prop_map(|source| vec![atom(source, AtomKind::Number)]),
        string(),
    ]
}

/// Generates any value with whitespace around it.
pub(crate) fn document() -> impl Strategy<Value = Vec<Atom>> {
    with_spaces(scalar()).prop_recursive(4, 40, 5, |value| {
        let member = (with_spaces(string()), value.clone())
            .prop_map(|(key, value)| [key, fixed_atoms(":"), value].concat());
        with_spaces(prop_oneof![
            (prop::collection::vec(value, 0..5), whitespace())
                .prop_map(|(items, empty)| list("[", &items, empty, "]")),
            (prop::collection::vec(member, 0..5), whitespace())
                .prop_map(|(items, empty)| list("{", &items, empty, "}")),
        ])
    })
}

fn with_spaces(value: impl Strategy<Value = Vec<Atom>> + 'static) -> BoxedStrategy<Vec<Atom>> {
    (whitespace(), value, whitespace())
        .prop_map(|(before, value, after)| [before, value, after].concat())
        .boxed()
}

fn list(open: &str, items: &[Vec<Atom>], empty: Vec<Atom>, close: &str) -> Vec<Atom> {
    let inside = if items.is_empty() { empty } else { items.join(&fixed_atoms(",")[..]) };
    [fixed_atoms(open), inside, fixed_atoms(close)].concat()
}
