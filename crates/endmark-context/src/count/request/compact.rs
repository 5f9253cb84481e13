//! Writes JSON without white space while it is parsed.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Appends one value to a text.
pub(super) struct CompactWriter<'a>(pub(super) &'a mut String);

impl CompactWriter<'_> {
    fn write<E: Error>(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), E> {
        self.0.push_str(&serde_json::to_string(value).map_err(E::custom)?);
        Ok(())
    }

    /// Closes a container. Replaces the comma after its last item.
    fn close_container(self, end: char) {
        if self.0.ends_with(',') {
            self.0.pop();
        }
        self.0.push(end);
    }
}

impl<'de> DeserializeSeed<'de> for CompactWriter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CompactWriter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.push('[');
        while items.next_element_seed(CompactWriter(self.0))?.is_some() {
            self.0.push(',');
        }
        self.close_container(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.0.push('{');
        while let Some(name) = fields.next_key::<String>()? {
            self.write(&name)?;
            self.0.push(':');
            fields.next_value_seed(CompactWriter(self.0))?;
            self.0.push(',');
        }
        self.close_container('}');
        Ok(())
    }
}
