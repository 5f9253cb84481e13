//! Generates the implementation for a type.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DataEnum, DataStruct, DeriveInput, Error, Field, Fields, GenericParam, Generics, parse_quote,
};

use crate::attribute::{FieldLimits, find_library};
use crate::serde_name::SerdeNames;

/// Returns `impl Limits for …`.
pub(crate) fn expand_limits(input: &DeriveInput) -> Result<TokenStream, Error> {
    let library = find_library(&input.attrs)?;
    let names = SerdeNames::read(&input.attrs)?;
    let FunctionBodies { declare, check } = match &input.data {
        Data::Struct(data) => expand_struct(data, &names, input)?,
        Data::Enum(data) => expand_enum(data)?,
        Data::Union(_) => {
            return Err(Error::new(input.ident.span(), "a union cannot have limits: use a struct"));
        }
    };
    let generics = with_bounds(input.generics.clone());
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        const _: () = {
            use #library as endmark_envelope;

            #[automatically_derived]
            impl #impl_generics endmark_envelope::Limits for #name #type_generics #where_clause {
                fn declare(
                    at: &endmark_envelope::FieldPattern,
                    _limit: endmark_envelope::Limit,
                    into: &mut endmark_envelope::FieldRules,
                ) {
                    // A type may contain itself, so stop at a maximum depth.
                    if !at.is_deep() {
                        #declare
                    }
                    let _ = into;
                }

                fn check_at(
                    &self,
                    at: &endmark_envelope::FieldPath,
                    _limit: endmark_envelope::Limit,
                    found: &mut ::std::vec::Vec<endmark_envelope::FieldTooLarge>,
                ) {
                    #check
                    let _ = (at, found);
                }
            }
        };
    })
}

/// The bodies of the two generated functions.
#[derive(Default)]
struct FunctionBodies {
    declare: TokenStream,
    check: TokenStream,
}

fn expand_struct(
    data: &DataStruct,
    names: &SerdeNames,
    input: &DeriveInput,
) -> Result<FunctionBodies, Error> {
    let mut bodies = FunctionBodies::default();
    match &data.fields {
        Fields::Named(fields) => {
            for field in &fields.named {
                add(&mut bodies, field, names, None)?;
            }
        }
        // Serde serialises a newtype as its content.
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            for field in &fields.unnamed {
                add(&mut bodies, field, names, Some(quote!(0)))?;
            }
        }
        Fields::Unit => {}
        Fields::Unnamed(_) => {
            let message = "a tuple has no names for its fields: give them names";
            return Err(Error::new(input.ident.span(), message));
        }
    }
    Ok(bodies)
}

fn expand_enum(data: &DataEnum) -> Result<FunctionBodies, Error> {
    let mut attributes = data.variants.iter().flat_map(|variant| &variant.attrs);
    if let Some(attribute) = attributes.find(|attribute| attribute.path().is_ident("limits")) {
        return Err(Error::new(attribute.span(), "a variant has nothing to limit: limits stand on fields"));
    }
    match data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        None => Ok(FunctionBodies::default()),
        Some(variant) => Err(Error::new(
            variant.span(),
            "limits are for structs and for enums without fields: put what this variant holds into a struct",
        )),
    }
}

/// Adds the code for one field. `position` is its position in a newtype.
fn add(
    bodies: &mut FunctionBodies,
    field: &Field,
    names: &SerdeNames,
    position: Option<TokenStream>,
) -> Result<(), Error> {
    let limits = FieldLimits::read(&field.attrs)?;
    let own = SerdeNames::read(&field.attrs)?;
    if limits.skip {
        return Ok(());
    }
    if own.is_skipped && limits.has_limit() {
        let message = "serde skips this field, so its limit is never reported: remove `serde(skip)`, or write \
                       `#[expand_limits(skip)]`";
        return Err(Error::new(limits_span(field), message));
    }
    let (member, pattern, path) = match (&field.ident, position) {
        (Some(identifier), _) if names.is_transparent => {
            (identifier.to_token_stream(), quote!(at), quote!(at))
        }
        (Some(identifier), _) => {
            let name = names.field_name(&identifier.to_string(), &own);
            (identifier.to_token_stream(), quote!(&at.clone().key(#name)), quote!(&at.clone().key(#name)))
        }
        (None, position) => (position.unwrap_or_default(), quote!(at), quote!(at)),
    };
    let kind = &field.ty;
    let span = kind.span();
    let option = |limit: Option<u64>| {
        limit.map_or_else(
            || quote!(::core::option::Option::None),
            |limit| quote!(::core::option::Option::Some(#limit)),
        )
    };
    let (bytes, chars, items) =
        (option(limits.max_bytes), option(limits.max_chars), option(limits.max_items));
    let limit = quote! {
        endmark_envelope::Limit { max_bytes: #bytes, max_chars: #chars, max_items: #items }
    };
    if limits.max_bytes.is_some() || limits.max_chars.is_some() {
        bodies.declare.extend(quote_spanned!(span=> endmark_envelope::limits::is_text::<#kind>();));
    }
    if limits.max_items.is_some() {
        bodies.declare.extend(quote_spanned!(span=> endmark_envelope::limits::is_list::<#kind>();));
    }
    // A field that is not serialised cannot be in a backend's data.
    if !own.is_skipped {
        bodies.declare.extend(quote_spanned! {span=>
            <#kind as endmark_envelope::Limits>::declare(#pattern, #limit, into);
        });
    }
    bodies.check.extend(quote_spanned! {span=>
        <#kind as endmark_envelope::Limits>::check_at(&self.#member, #path, #limit, found);
    });
    Ok(())
}

/// Returns the location of a field's limits in the source.
fn limits_span(field: &Field) -> Span {
    let attribute = field.attrs.iter().find(|attribute| attribute.path().is_ident("limits"));
    attribute.map_or_else(|| field.span(), Spanned::span)
}

/// Adds a bound `Limits` to each type parameter.
fn with_bounds(mut generics: Generics) -> Generics {
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(endmark_envelope::Limits));
        }
    }
    generics
}
