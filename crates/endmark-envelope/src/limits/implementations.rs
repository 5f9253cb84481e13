//! Limits for the types of the standard library.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::{FieldTooLarge, Limit, Limits};
use crate::page::Page;
use crate::path::{FieldPath, FieldPattern};
use crate::rules::FieldRules;

/// A text, or a type that consists of texts. `max_bytes` and `max_chars` apply to it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text: `max_bytes` and `max_chars` do not apply to it",
    label = "is not text",
    note = "they apply to `String`, `&str`, and options, lists and maps of them; `max_items` limits the number of items in a list"
)]
pub trait LimitedText {}

/// A list or map. `max_items` applies to it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list: `max_items` does not apply to it",
    label = "is not a list",
    note = "it applies to `Vec`, slices, sets and maps, also in an `Option`; `max_bytes` or `max_chars` limit the length of a text"
)]
pub trait LimitedList {}

impl LimitedText for str {}
impl LimitedText for String {}
impl LimitedText for Cow<'_, str> {}
impl<T: LimitedText + ?Sized> LimitedText for &T {}
impl<T: LimitedText + ?Sized> LimitedText for Box<T> {}
impl<T: LimitedText> LimitedText for Option<T> {}
impl<T: LimitedText> LimitedText for Vec<T> {}
impl<T: LimitedText> LimitedText for [T] {}
impl<T: LimitedText> LimitedText for BTreeSet<T> {}
impl<T: LimitedText, S> LimitedText for HashSet<T, S> {}
impl<K, T: LimitedText> LimitedText for BTreeMap<K, T> {}
impl<K, T: LimitedText, S> LimitedText for HashMap<K, T, S> {}

impl<T> LimitedList for Vec<T> {}
impl<T> LimitedList for [T] {}
impl<T> LimitedList for BTreeSet<T> {}
impl<T, S> LimitedList for HashSet<T, S> {}
impl<K, T> LimitedList for BTreeMap<K, T> {}
impl<K, T, S> LimitedList for HashMap<K, T, S> {}
impl<T: LimitedList> LimitedList for Option<T> {}
impl<T: LimitedList + ?Sized> LimitedList for &T {}
impl<T: LimitedList + ?Sized> LimitedList for Box<T> {}

impl Limits for str {
    fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
        let limit = Limit { max_items: None, ..limit };
        if limit != Limit::default() {
            into.add(at.clone(), limit.rule());
        }
    }

    fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
        if let Some(max_chars) = limit.max_chars {
            add(at, max_chars, self.chars().count(), "characters", found);
        }
        if let Some(max_bytes) = limit.max_bytes {
            add(at, max_bytes, self.len(), "bytes", found);
        }
    }
}

fn add(at: &FieldPath, limit: u64, actual: usize, unit: &'static str, found: &mut Vec<FieldTooLarge>) {
    let actual = actual as u64;
    if actual > limit {
        found.push(FieldTooLarge { field: at.clone(), limit, actual, unit });
    }
}

/// Implements the trait for types that another type represents.
macro_rules! checked_as {
    ($(<$($parameter:ident),*> $type:ty => $target:ty;)*) => {$(
        impl<$($parameter: Limits + ?Sized),*> Limits for $type {
            fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
                <$target>::declare(at, limit, into);
            }

            fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
                <$target>::check_at(self, at, limit, found);
            }
        }
    )*};
}

checked_as! {
    <> String => str;
    <> Cow<'_, str> => str;
    <T> &T => T;
    <T> Box<T> => T;
}

impl<T: Limits> Limits for Option<T> {
    fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
        T::declare(at, limit, into);
    }

    fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
        if let Some(value) = self {
            value.check_at(at, limit, found);
        }
    }
}

/// Adds the rules of a list or map: its number of items, and the rules of each item.
fn declare_all<T: Limits>(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
    if limit.max_items.is_some() {
        into.add(at.clone(), Limit { max_items: limit.max_items, ..Limit::default() }.rule());
    }
    T::declare(&at.clone().any(), Limit { max_items: None, ..limit }, into);
}

fn check_items<'a, T: Limits + 'a>(
    items: impl ExactSizeIterator<Item = &'a T>,
    at: &FieldPath,
    limit: Limit,
    found: &mut Vec<FieldTooLarge>,
) {
    if let Some(max_items) = limit.max_items {
        add(at, max_items, items.len(), "items", found);
    }
    for (index, item) in items.enumerate() {
        item.check_at(&at.clone().index(index), Limit { max_items: None, ..limit }, found);
    }
}

macro_rules! lists {
    ($(<$($extra:ident)?> $type:ty;)*) => {$(
        impl<T: Limits $(, $extra)?> Limits for $type {
            fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
                declare_all::<T>(at, limit, into);
            }

            fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
                check_items(self.iter(), at, limit, found);
            }
        }
    )*};
}

lists! {
    <> Vec<T>;
    <> [T];
    <> BTreeSet<T>;
    <S> HashSet<T, S>;
}

macro_rules! maps {
    ($(<$($extra:ident)?> $type:ty;)*) => {$(
        impl<K: AsRef<str>, T: Limits $(, $extra)?> Limits for $type {
            fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
                declare_all::<T>(at, limit, into);
            }

            fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
                if let Some(max_items) = limit.max_items {
                    add(at, max_items, self.len(), "items", found);
                }
                for (key, value) in self {
                    let limit = Limit { max_items: None, ..limit };
                    value.check_at(&at.clone().key(key.as_ref()), limit, found);
                }
            }
        }
    )*};
}

maps! {
    <> BTreeMap<K, T>;
    <S> HashMap<K, T, S>;
}

impl<T: Limits> Limits for Page<T> {
    fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules) {
        Vec::<T>::declare(&at.clone().key("items"), limit, into);
    }

    fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>) {
        self.items.check_at(&at.clone().key("items"), limit, found);
    }
}

/// Implements the trait for types without a length.
macro_rules! unlimited {
    ($($type:ty),*) => {$(
        impl Limits for $type {
            fn declare(_at: &FieldPattern, _limit: Limit, _into: &mut FieldRules) {}

            fn check_at(&self, _at: &FieldPath, _limit: Limit, _found: &mut Vec<FieldTooLarge>) {}
        }
    )*};
}

unlimited!((), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, Value);
