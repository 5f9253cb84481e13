//! Caps JSON by its structure. Values that are kept stay byte for byte.

mod container;
mod string;
pub(crate) mod tape;

pub(super) use self::container::{ShortenedValue, Shortener};
pub(super) use self::string::char_size;
pub(crate) use self::string::decode_json_string;
pub(super) use self::tape::{JsonNode, JsonTape, Kind};
