//! Checks limits inside a JSON payload while it is parsed, without keeping the values in memory. (EN-4)
//!
//! If an object repeats a name, all values with this name are checked, because it is unknown which one the
//! tool uses.

use std::fmt;
use std::io::{BufReader, Read};

use endmark_envelope::{FieldPath, Limit};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::manifest::PayloadLimit;

/// A value that is larger than its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OversizedValue {
    /// The name of the value, such as `arguments.title`, `arguments[2]` or `stdin`.
    pub(crate) field: String,
    /// The limit that the value exceeds.
    pub(crate) limit: u64,
    /// The size of the value. For standard input, the number of bytes that were read until the limit was
    /// exceeded.
    pub(crate) actual: u64,
    /// The unit of `limit` and `actual`: bytes, characters or items.
    pub(crate) unit: &'static str,
}

/// A payload that must be JSON but is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidJson {
    /// The name of the payload, such as `arguments.data` or `stdin`.
    pub(crate) field: FieldPath,
    pub(crate) reason: String,
}

/// The reason why a payload is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PayloadFault {
    TooLarge(OversizedValue),
    InvalidJson(InvalidJson),
}

/// Checks the limits in all JSON values of a payload.
pub(crate) fn check_payload(
    limits: &[PayloadLimit],
    field: &FieldPath,
    payload: impl Read,
) -> Result<(), PayloadFault> {
    let mut found = None;
    let mut values = serde_json::Deserializer::from_reader(BufReader::new(payload));
    while values.end().is_err() {
        let at = FieldPath::root();
        let read =
            PayloadVisitor { limits, field, path: at, first_fault: &mut found }.deserialize(&mut values);
        if let Some(too_large) = found.take() {
            return Err(PayloadFault::TooLarge(too_large));
        }
        read.map_err(|error| {
            PayloadFault::InvalidJson(InvalidJson { field: field.clone(), reason: error.to_string() })
        })?;
    }
    Ok(())
}

/// The position of the parser in a payload, and the first value that was found to be too large.
struct PayloadVisitor<'a> {
    limits: &'a [PayloadLimit],
    field: &'a FieldPath,
    path: FieldPath,
    first_fault: &'a mut Option<OversizedValue>,
}

impl PayloadVisitor<'_> {
    /// Returns an error if the current value exceeds a limit, which stops the parser. `measured` returns the
    /// size and the unit for each kind of limit. A limit in bytes or characters also applies to each string
    /// inside the value.
    fn check_limits<E: serde::de::Error>(
        &mut self,
        measured: impl Fn(&Limit) -> [(Option<u64>, u64, &'static str); 2],
        is_deep: bool,
    ) -> Result<(), E> {
        let limits = self
            .limits
            .iter()
            .filter(|limit| limit.path.matches(&self.path) || (is_deep && limit.path.is_above(&self.path)));
        let exceeded = limits.flat_map(|limit| measured(&limit.limit)).find_map(|(limit, actual, unit)| {
            limit.filter(|limit| actual > *limit).map(|limit| (limit, actual, unit))
        });
        let Some((limit, actual, unit)) = exceeded else { return Ok(()) };
        let field = self.field.join(&self.path).to_string();
        *self.first_fault = Some(OversizedValue { field, limit, actual, unit });
        Err(E::custom("a value is too large"))
    }

    fn child_path(&mut self, at: FieldPath) -> PayloadVisitor<'_> {
        PayloadVisitor { limits: self.limits, field: self.field, path: at, first_fault: self.first_fault }
    }

    fn check_items<E: serde::de::Error>(&mut self, count: u64) -> Result<(), E> {
        self.check_limits(|limit| [(limit.max_items, count, "items"), (None, 0, "")], false)
    }
}

impl<'de> DeserializeSeed<'de> for PayloadVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PayloadVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let characters = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let measured =
            |limit: &Limit| [(limit.max_bytes, bytes, "bytes"), (limit.max_chars, characters, "characters")];
        self.check_limits(measured, true)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let at = self.path.clone().index(index);
            if items.next_element_seed(self.child_path(at))?.is_none() {
                return Ok(());
            }
            index += 1;
            self.check_items(u64::try_from(index).map_err(A::Error::custom)?)?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut count = 0;
        while let Some(name) = members.next_key::<String>()? {
            count += 1;
            self.check_items(count)?;
            let at = self.path.clone().key(name);
            members.next_value_seed(self.child_path(at))?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}
