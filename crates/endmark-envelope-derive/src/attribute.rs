//! Parses `#[limits(…)]` on a field.

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Path, Token, parse_quote};

/// The names of the limits, in the order in which messages list them.
const LIMIT_NAMES: [&str; 4] = ["max_bytes", "max_chars", "max_items", "skip"];

/// The limits of one field.
#[derive(Default)]
pub(crate) struct FieldLimits {
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_chars: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) skip: bool,
}

impl FieldLimits {
    /// Reads the attributes of a field.
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self, Error> {
        let mut limits = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("limits")) {
            let metas = parse_metas(attribute)?;
            if metas.is_empty() {
                return Err(Error::new(
                    attribute.span(),
                    "nothing is limited: write `#[limits(max_bytes = 255)]`",
                ));
            }
            for meta in &metas {
                limits.add(meta)?;
            }
            if limits.skip && limits.has_limit() {
                let message = "a field that is skipped has no limits: leave out `skip`, or the limits";
                return Err(Error::new(attribute.span(), message));
            }
        }
        Ok(limits)
    }

    /// Returns whether the attribute limits the size of the field.
    pub(crate) fn has_limit(&self) -> bool {
        self.max_bytes.is_some() || self.max_chars.is_some() || self.max_items.is_some()
    }

    fn add(&mut self, meta: &Meta) -> Result<(), Error> {
        let name = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
        let slot = match name.as_str() {
            "max_bytes" => &mut self.max_bytes,
            "max_chars" => &mut self.max_chars,
            "max_items" => &mut self.max_items,
            "skip" => {
                meta.require_path_only().map_err(|_| Error::new(meta.span(), "`skip` has no value"))?;
                self.skip = true;
                return Ok(());
            }
            _ => return Err(Error::new(meta.path().span(), unknown_message(&name))),
        };
        if slot.is_some() {
            return Err(Error::new(meta.span(), format!("`{name}` is given twice")));
        }
        *slot = Some(parse_number(meta, &name)?);
        Ok(())
    }
}

/// Returns the path of the library. It is `::endmark_envelope`, unless `#[limits(crate = "…")]` on the type
/// names another path.
pub(crate) fn find_library(attributes: &[Attribute]) -> Result<Path, Error> {
    let mut library = parse_quote!(::endmark_envelope);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("limits")) {
        for meta in parse_metas(attribute)? {
            let Meta::NameValue(pair) = &meta else { return Err(misplaced_error(attribute)) };
            if !pair.path.is_ident("crate") {
                return Err(misplaced_error(attribute));
            }
            let Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) = &pair.value else {
                return Err(Error::new(
                    pair.value.span(),
                    "a path in quotes is missing: `crate = \"endmark::envelope\"`",
                ));
            };
            library = path.parse()?;
        }
    }
    Ok(library)
}

fn misplaced_error(attribute: &Attribute) -> Error {
    Error::new(attribute.span(), "limits stand on fields: put it onto the field that is limited")
}

/// Returns the items in an attribute's parentheses, separated by commas.
pub(crate) fn parse_metas(attribute: &Attribute) -> Result<Vec<Meta>, Error> {
    let Meta::List(list) = &attribute.meta else {
        return Ok(Vec::new());
    };
    let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
    Ok(parser.parse2(list.tokens.clone())?.into_iter().collect())
}

fn parse_number(meta: &Meta, name: &str) -> Result<u64, Error> {
    let wrong = |span| Error::new(span, format!("a whole number is missing: `{name} = 255`"));
    let value = match meta {
        Meta::NameValue(pair) => &pair.value,
        Meta::Path(_) | Meta::List(_) => return Err(wrong(meta.span())),
    };
    let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = value else {
        return Err(wrong(value.span()));
    };
    match literal.base10_parse() {
        Ok(0) => Err(Error::new(literal.span(), "a limit of 0 allows nothing: leave the field out")),
        Ok(limit) => Ok(limit),
        Err(_) => Err(wrong(literal.span())),
    }
}

fn unknown_message(name: &str) -> String {
    let near = match name {
        "max_length" | "max_len" | "max_characters" | "max_char" => Some("max_chars"),
        "max_byte" | "bytes" | "max_size" => Some("max_bytes"),
        "max_count" | "max_item" | "items" => Some("max_items"),
        "ignore" | "none" => Some("skip"),
        _ => None,
    };
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!(
        "unknown limit `{name}`: {near}there are {}",
        LIMIT_NAMES.map(|name| format!("`{name}`")).join(", ")
    )
}
