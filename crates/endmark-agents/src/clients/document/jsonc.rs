//! JSON with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};

use super::{UnfitFile, Value, below};

pub(super) struct Jsonc(CstRootNode);

impl Jsonc {
    pub(super) fn parse(text: &str) -> Result<Self, UnfitFile> {
        // Such files often have comments and trailing commas. Other JSON5 features would be guesses.
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let root =
            CstRootNode::parse(text, &options).map_err(|error| UnfitFile::Unreadable(error.to_string()))?;
        Ok(Self(root))
    }

    pub(super) fn text(&self) -> String {
        self.0.to_string()
    }

    pub(super) fn value(&self, path: &[&str]) -> Option<String> {
        Some(value_text(&self.property(path)?.value()?))
    }

    pub(super) fn leaves(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        let mut tables = vec![(String::new(), self.property(path)?.object_value()?)];
        let mut leaves = Vec::new();
        while let Some((name, table)) = tables.pop() {
            let properties = table.properties();
            if properties.is_empty() {
                leaves.push((name, "{}".to_owned()));
                continue;
            }
            for property in properties {
                let name = below(&name, &property.decoded_name().unwrap_or_default());
                match (property.object_value(), property.value()) {
                    (Some(table), _) => tables.push((name, table)),
                    (None, Some(value)) => leaves.push((name, value_text(&value))),
                    (None, None) => {}
                }
            }
        }
        Some(leaves)
    }

    pub(super) fn set(&mut self, path: &[&str], value: &Value) -> Result<(), UnfitFile> {
        let is_table = self.property(path).is_some_and(|found| found.object_value().is_some());
        let value = match value {
            Value::Table if is_table => return Ok(()),
            Value::Table => CstInputValue::Object(Vec::new()),
            Value::Text(_) if is_table => return Err(UnfitFile::IsTable(path.join("."))),
            Value::Text(text) => CstInputValue::String(text.clone()),
        };
        self.put(path, value)
    }

    pub(super) fn copy_from(&mut self, other: &Self, path: &[&str]) -> Result<(), UnfitFile> {
        if let Some(value) = other.property(path).and_then(|property| property.value()) {
            return self.put(path, input(&value)?);
        }
        self.remove_empty_parents(path, |name| other.property(name).is_some());
        Ok(())
    }

    /// Removes a key, and parent tables that become empty.
    pub(super) fn remove_empty(&mut self, path: &[&str]) {
        self.remove_empty_parents(path, |_| false);
    }

    fn remove_empty_parents(&mut self, path: &[&str], stays: impl Fn(&[&str]) -> bool) {
        for length in (1..=path.len()).rev() {
            let Some(name) = path.get(..length) else { break };
            if stays(name) {
                break;
            }
            let Some(property) = self.property(name) else { continue };
            let is_in_use = || property.object_value().is_some_and(|table| !table.properties().is_empty());
            if length < path.len() && is_in_use() {
                break;
            }
            property.remove();
        }
    }

    pub(super) fn put(&mut self, path: &[&str], value: CstInputValue) -> Result<(), UnfitFile> {
        let Some((last, tables)) = path.split_last() else { return Ok(()) };
        let mut table =
            self.0.object_value_or_create().ok_or_else(|| UnfitFile::NoTable("the whole file".to_owned()))?;
        for (index, name) in tables.iter().enumerate() {
            // If names are equal, the library would take the first, but readers take the last.
            let found = find(&table, name);
            table = found
                .map_or_else(|| table.object_value_or_create(name), |property| property.object_value())
                .ok_or_else(|| UnfitFile::NoTable(tables.get(..=index).unwrap_or(tables).join(".")))?;
        }
        match find(&table, last) {
            Some(property) => property.set_value(value),
            None => {
                table.append(last, value);
            }
        }
        Ok(())
    }

    pub(super) fn property(&self, path: &[&str]) -> Option<CstObjectProp> {
        let (last, tables) = path.split_last()?;
        let mut table = self.0.object_value()?;
        for name in tables {
            table = find(&table, name)?.object_value()?;
        }
        find(&table, last)
    }
}

/// Returns a value as text, without quotes.
fn value_text(value: &CstNode) -> String {
    let text = value.as_string_lit().and_then(|text| text.decoded_value().ok());
    text.unwrap_or_else(|| value.to_string())
}

/// Returns the last property of this name, as every reader does.
fn find(table: &CstObject, name: &str) -> Option<CstObjectProp> {
    table.properties().into_iter().rfind(|property| property.decoded_name().as_deref() == Some(name))
}

/// Copies a value. The parser limits its nesting.
fn input(value: &CstNode) -> Result<CstInputValue, UnfitFile> {
    let unreadable = || UnfitFile::Unreadable(format!("`{value}` cannot be read"));
    if let Some(text) = value.as_string_lit() {
        return Ok(CstInputValue::String(text.decoded_value().map_err(|_| unreadable())?));
    }
    if let Some(number) = value.as_number_lit() {
        return Ok(CstInputValue::Number(number.to_string()));
    }
    if let Some(flag) = value.as_boolean_lit() {
        return Ok(CstInputValue::Bool(flag.value()));
    }
    if let Some(table) = value.as_object() {
        let properties = table.properties().into_iter().map(|property| {
            let name = property.decoded_name().ok_or_else(unreadable)?;
            Ok((name, input(&property.value().ok_or_else(unreadable)?)?))
        });
        return Ok(CstInputValue::Object(properties.collect::<Result<_, _>>()?));
    }
    if let Some(list) = value.as_array() {
        return Ok(CstInputValue::Array(list.elements().iter().map(input).collect::<Result<_, _>>()?));
    }
    Ok(CstInputValue::Null)
}
