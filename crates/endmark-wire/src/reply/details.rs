//! Provider-specific counts in addition to the tokens of a prompt and a reply, such as tokens by cache
//! lifetime or by modality, and the cost of a call.

use std::fmt;
use std::sync::Arc;

use super::amount::Amount;
use crate::edit::Edits;
use crate::json::{Fields, Kind, Value, quote};

/// Maximum number of details. No provider has more, and further ones are not kept.
const MAX_DETAILS: usize = 64;

/// Maximum length of a name that is kept, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The fields of an entry in a list of tokens by modality.
const MODALITY_FIELD: &str = "modality";
const COUNT_FIELD: &str = "tokenCount";

/// The place of a number in a usage object.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CountPlace {
    /// A field.
    Field(String),
    /// A field of an object.
    Member(String, String),
    /// An entry of a list: the tokens of this modality.
    Modality(String, String),
}

/// Counts in addition to the tokens of a prompt and a reply. Numbers that are not counts, such as tokens per
/// second, are ignored.
///
/// They are reference-counted, because a call's counts are copied often but rarely changed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Details(Arc<[(CountPlace, Amount)]>);

impl Details {
    /// Reads the counts of a usage object, except for the `known` ones that the format reads itself (`name`,
    /// or `object.name`).
    pub(crate) fn read(usage: &Fields<'_>, known: &[&str]) -> Self {
        let mut details = Vec::new();
        for field in usage.iter() {
            let Some(name) = field.key.text().filter(|name| name.len() <= MAX_NAME_BYTES) else { continue };
            match field.value.kind() {
                Kind::Number if is_count(&name) && !known.contains(&&*name) => {
                    note(&mut details, CountPlace::Field(name.into_owned()), field.value);
                }
                Kind::Object => {
                    for inner in field.value.fields() {
                        let own = inner.key.text().filter(|own| own.len() <= MAX_NAME_BYTES && is_count(own));
                        let is_known =
                            |own: &str| known.iter().any(|path| path.split_once('.') == Some((&*name, own)));
                        let Some(own) = own.filter(|own| !is_known(own)) else { continue };
                        note(
                            &mut details,
                            CountPlace::Member(name.to_string(), own.into_owned()),
                            inner.value,
                        );
                    }
                }
                Kind::Array => {
                    for entry in field.value.items() {
                        let kind =
                            entry.non_empty_text(MODALITY_FIELD).filter(|kind| kind.len() <= MAX_NAME_BYTES);
                        if let (Some(kind), Some(count)) = (kind, entry.field(COUNT_FIELD)) {
                            note(&mut details, CountPlace::Modality(name.to_string(), kind), count);
                        }
                    }
                }
                Kind::Number | Kind::String | Kind::Bool | Kind::Null => {}
            }
        }
        Self(details.into())
    }

    /// Returns these counts, replaced by those in a later object.
    pub(crate) fn updated_by(&self, later: &Self) -> Self {
        let mut both = self.0.to_vec();
        for (place, amount) in &*later.0 {
            match both.iter_mut().find(|(known, _)| known == place) {
                Some((_, known)) => *known = *amount,
                None => both.push((place.clone(), *amount)),
            }
        }
        Self(both.into())
    }

    /// Returns the sum of both. A sum with too many digits is dropped.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut both = self.0.to_vec();
        for (place, amount) in &*other.0 {
            match both.iter().position(|(known, _)| known == place) {
                Some(at) => match both[at].1.plus(*amount) {
                    Some(sum) => both[at].1 = sum,
                    None => {
                        both.swap_remove(at);
                    }
                },
                None => both.push((place.clone(), *amount)),
            }
        }
        Self(both.into())
    }

    /// Returns the count in this field.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let is_it = |place: &CountPlace| matches!(place, CountPlace::Field(own) if own == name);
        self.0.iter().find(|(place, _)| is_it(place)).and_then(|(_, amount)| amount.count())
    }

    /// Returns the count in this field of an object.
    pub(super) fn member(&self, object: &str, name: &str) -> Option<u64> {
        let is_it = |place: &CountPlace| matches!(place, CountPlace::Member(own, key) if own == object && key == name);
        self.0.iter().find(|(place, _)| is_it(place)).and_then(|(_, amount)| amount.count())
    }

    /// Returns the count of this modality in a list.
    pub(super) fn modality(&self, list: &str, kind: &str) -> Option<u64> {
        let is_it = |place: &CountPlace| matches!(place, CountPlace::Modality(own, of) if own == list && of.eq_ignore_ascii_case(kind));
        self.0.iter().find(|(place, _)| is_it(place)).and_then(|(_, amount)| amount.count())
    }

    /// Writes the counts into this usage object.
    pub(crate) fn write<'a>(&self, edits: &mut Edits<'a>, usage: Value<'a>) {
        let mut made: Vec<&str> = Vec::new();
        for (place, amount) in &*self.0 {
            match place {
                CountPlace::Field(name) => edits.set_field(usage, name, &amount.to_string()),
                CountPlace::Member(object, name) => {
                    match usage.field(object).and_then(|own| own.as_kind(Kind::Object)) {
                        Some(own) => edits.set_field(own, name, &amount.to_string()),
                        None if made.contains(&object.as_str()) => {}
                        None => {
                            made.push(object);
                            edits.set_field(usage, object, &self.object(object));
                        }
                    }
                }
                CountPlace::Modality(list, kind) => {
                    match usage.field(list).and_then(|own| own.as_kind(Kind::Array)) {
                        Some(own) => match own.items().find(|entry| entry.has_text(MODALITY_FIELD, kind)) {
                            Some(entry) => edits.set_field(entry, COUNT_FIELD, &amount.to_string()),
                            None => edits.push_item(own, &entry(kind, *amount)),
                        },
                        None if made.contains(&list.as_str()) => {}
                        None => {
                            made.push(list);
                            edits.set_field(usage, list, &self.list(list));
                        }
                    }
                }
            }
        }
    }

    /// Returns a usage object with these counts added.
    pub(crate) fn add_to_json(&self, json: String) -> String {
        let Some(usage) = Value::parse_str(&json).ok().filter(|_| !self.0.is_empty()) else { return json };
        let mut edits = Edits::for_document(usage);
        self.write(&mut edits, usage);
        String::from_utf8(edits.finish()).unwrap_or_default()
    }

    fn object(&self, object: &str) -> String {
        let fields = self.0.iter().filter_map(|(place, amount)| match place {
            CountPlace::Member(own, name) if own == object => Some(format!("{}:{amount}", quote(name))),
            _ => None,
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }

    fn list(&self, list: &str) -> String {
        let entries = self.0.iter().filter_map(|(place, amount)| match place {
            CountPlace::Modality(own, kind) if own == list => Some(entry(kind, *amount)),
            _ => None,
        });
        format!("[{}]", entries.collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for Details {
    /// Formats the counts as a usage object without other fields.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.add_to_json("{}".to_owned()))
    }
}

fn note(details: &mut Vec<(CountPlace, Amount)>, place: CountPlace, number: Value<'_>) {
    let amount = number.as_kind(Kind::Number).and_then(|number| Amount::read(number.raw()));
    if let Some(amount) = amount.filter(|_| details.len() < MAX_DETAILS) {
        details.push((place, amount));
    }
}

fn entry(kind: &str, amount: Amount) -> String {
    format!("{{\"{MODALITY_FIELD}\":{},\"{COUNT_FIELD}\":{amount}}}", quote(kind))
}

/// Returns whether the number with this name is a count of tokens or requests, or a price. Such numbers can
/// be added up over several calls.
fn is_count(name: &str) -> bool {
    ["tokens", "requests", "queries", "TokenCount", "cost"].iter().any(|end| name.ends_with(end))
}
