//! The names that serde gives to fields, so that paths and schemas match the JSON.

use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta};

use crate::attribute::parse_metas;

/// The names in `#[serde(…)]`.
#[derive(Default)]
pub(crate) struct SerdeNames {
    rename: Option<String>,
    rename_all: Option<String>,
    /// Whether the field is not part of the JSON.
    pub(crate) is_skipped: bool,
    /// Whether the struct is serialised as its only field.
    pub(crate) is_transparent: bool,
}

impl SerdeNames {
    /// Reads the attributes of a struct or field.
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self, Error> {
        let mut names = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            for meta in parse_metas(attribute)? {
                let is = |name: &str| meta.path().is_ident(name);
                if is("rename") {
                    names.rename = parse_text(&meta)?;
                } else if is("rename_all") {
                    names.rename_all = parse_text(&meta)?;
                } else if is("skip") {
                    names.is_skipped = true;
                } else if is("transparent") {
                    names.is_transparent = true;
                } else if is("flatten") {
                    let message =
                        "a flattened field has no path of its own: write its fields here, or nest it";
                    return Err(Error::new(meta.span(), message));
                }
            }
        }
        Ok(names)
    }

    /// Returns the JSON name of a field. `self` has the attributes of the struct, `field` those of the field.
    pub(crate) fn field_name(&self, identifier: &str, field: &Self) -> String {
        let identifier = identifier.strip_prefix("r#").unwrap_or(identifier);
        match (&field.rename, self.rename_all.as_deref()) {
            (Some(name), _) => name.clone(),
            (None, Some(rule)) => apply_rule(identifier, rule),
            (None, None) => identifier.to_owned(),
        }
    }
}

/// Parses `= "name"`, or returns the serialised name in `(serialize = "name", deserialize = "other")`.
fn parse_text(meta: &Meta) -> Result<Option<String>, Error> {
    match meta {
        Meta::NameValue(pair) => Ok(literal(&pair.value)),
        Meta::List(list) => {
            let mut name = None;
            list.parse_nested_meta(|inner| {
                let value: Expr = inner.value()?.parse()?;
                if inner.path.is_ident("serialize") {
                    name = literal(&value);
                }
                Ok(())
            })?;
            Ok(name)
        }
        Meta::Path(_) => Ok(None),
    }
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns a field's name under a rule of serde. An unknown rule changes nothing, because serde itself
/// rejects it.
fn apply_rule(identifier: &str, rule: &str) -> String {
    let words = || identifier.split('_').filter(|word| !word.is_empty());
    let capitalised = |word: &str| {
        let mut characters = word.chars();
        characters.next().map(|first| first.to_ascii_uppercase().to_string() + characters.as_str())
    };
    let pascal = || words().filter_map(capitalised).collect::<String>();
    match rule {
        "UPPERCASE" | "SCREAMING_SNAKE_CASE" => identifier.to_ascii_uppercase(),
        "PascalCase" => pascal(),
        "camelCase" => {
            let name = pascal();
            let first = name.chars().next().map(|first| first.to_ascii_lowercase());
            first.into_iter().chain(name.chars().skip(1)).collect()
        }
        "kebab-case" => identifier.replace('_', "-"),
        "SCREAMING-KEBAB-CASE" => identifier.to_ascii_uppercase().replace('_', "-"),
        _ => identifier.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_those_of_serde() {
        for (rule, expected) in [
            ("lowercase", "body_text"),
            ("UPPERCASE", "BODY_TEXT"),
            ("PascalCase", "BodyText"),
            ("camelCase", "bodyText"),
            ("snake_case", "body_text"),
            ("SCREAMING_SNAKE_CASE", "BODY_TEXT"),
            ("kebab-case", "body-text"),
            ("SCREAMING-KEBAB-CASE", "BODY-TEXT"),
        ] {
            assert_eq!(apply_rule("body_text", rule), expected);
        }
    }
}
