//! `#[derive(Limits)]`: how large the fields of a struct may be, checked before a write. (EN-4)
//!
//! It is used through `endmark_envelope`, whose trait `Limits` says what the limits mean.

mod attribute;
mod expand;
mod serde_name;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `endmark_envelope::Limits`.
///
/// On a field: `#[limits(max_bytes = 255)]`, `max_chars`, `max_items`, or `skip`. A field without it is checked by the
/// limits of its own type, so that nested structs cannot be forgotten; only `#[limits(skip)]` leaves one out, and a field
/// with `#[serde(skip_serializing)]` or `#[serde(skip)]` is checked like any other. Names follow `#[serde(rename)]`,
/// `#[serde(rename_all)]` and `#[serde(transparent)]`. Of a map the values are limited and their number, not the keys.
///
/// On the type: `#[limits(crate = "endmark::envelope")]` where the library is reached through another crate.
#[proc_macro_derive(Limits, attributes(limits))]
pub fn derive_limits(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand_limits(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
