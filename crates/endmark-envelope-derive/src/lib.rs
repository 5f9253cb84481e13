//! `#[derive(Limits)]` declares how large the fields of a struct may be, and checks this before a write.
//! (EN-4)
//!
//! Use it through `endmark_envelope`, whose trait `Limits` documents the limits.

mod attribute;
mod expand;
mod serde_name;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `endmark_envelope::Limits`.
///
/// On a field: `#[limits(max_bytes = 255)]`, `max_chars`, `max_items`, or `skip`. Without the attribute, a field is
/// checked by the limits of its own type, so that nested structs are not forgotten. Only `#[limits(skip)]` excludes a
/// field. A field with `#[serde(skip_serializing)]` or `#[serde(skip)]` is checked like any other. Names follow
/// `#[serde(rename)]`, `#[serde(rename_all)]` and `#[serde(transparent)]`. In a map, the values and their number are
/// limited, but not the keys.
///
/// On the type: `#[limits(crate = "endmark::envelope")]` if the library is used through another crate.
#[proc_macro_derive(Limits, attributes(limits))]
pub fn derive_limits(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand_limits(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
