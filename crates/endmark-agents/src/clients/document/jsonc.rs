//! Edits JSON with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};

use super::{NewValue, UneditableFile, key_below};

pub(super) struct Jsonc(CstRootNode);

impl Jsonc {
    pub(super) fn parse(text: &str) -> Result<Self, UneditableFile> {
        // Configuration files often have comments and trailing commas. Accepting other JSON5 features would
        // be guesswork.
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
        let root = CstRootNode::parse(text, &options)
            .map_err(|error| UneditableFile::Unreadable(error.to_string()))?;
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
                let name = key_below(&name, &property.decoded_name().unwrap_or_default());
                match (property.object_value(), property.value()) {
                    (Some(table), _) => tables.push((name, table)),
                    (None, Some(value)) => leaves.push((name, value_text(&value))),
                    (None, None) => {}
                }
            }
        }
        Some(leaves)
    }

    pub(super) fn set(&mut self, path: &[&str], value: &NewValue) -> Result<(), UneditableFile> {
        let is_table = self.property(path).is_some_and(|found| found.object_value().is_some());
        let value = match value {
            NewValue::Table if is_table => return Ok(()),
            NewValue::Table => CstInputValue::Object(Vec::new()),
            NewValue::Text(_) if is_table => return Err(UneditableFile::IsTable(path.join("."))),
            NewValue::Text(text) => CstInputValue::String(text.clone()),
        };
        self.put(path, value)
    }

    pub(super) fn copy_from(&mut self, other: &Self, path: &[&str]) -> Result<(), UneditableFile> {
        if let Some(value) = other.property(path).and_then(|property| property.value()) {
            return self.put(path, copy_value(&value)?);
        }
        self.remove_empty_parents(path, |name| other.property(name).is_some());
        Ok(())
    }

    /// Removes a key. Also removes parent tables that become empty.
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

    pub(super) fn put(&mut self, path: &[&str], value: CstInputValue) -> Result<(), UneditableFile> {
        let Some((last, tables)) = path.split_last() else { return Ok(()) };
        let mut table = self
            .0
            .object_value_or_create()
            .ok_or_else(|| UneditableFile::NotATable("the whole file".to_owned()))?;
        for (index, name) in tables.iter().enumerate() {
            // If a name occurs twice, the library uses the first one, but parsers use the last one.
            let found = find(&table, name);
            table = found
                .map_or_else(|| table.object_value_or_create(name), |property| property.object_value())
                .ok_or_else(|| UneditableFile::NotATable(tables.get(..=index).unwrap_or(tables).join(".")))?;
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

/// Returns a value as text without quotation marks.
fn value_text(value: &CstNode) -> String {
    let text = value.as_string_lit().and_then(|text| text.decoded_value().ok());
    text.unwrap_or_else(|| value.to_string())
}

/// Returns the last property with this name. Parsers use the last one.
fn find(table: &CstObject, name: &str) -> Option<CstObjectProp> {
    table.properties().into_iter().rfind(|property| property.decoded_name().as_deref() == Some(name))
}

/// Copies a value. The parser has already limited its nesting.
fn copy_value(value: &CstNode) -> Result<CstInputValue, UneditableFile> {
    let unreadable = || UneditableFile::Unreadable(format!("`{value}` cannot be read"));
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
            Ok((name, copy_value(&property.value().ok_or_else(unreadable)?)?))
        });
        return Ok(CstInputValue::Object(properties.collect::<Result<_, _>>()?));
    }
    if let Some(list) = value.as_array() {
        return Ok(CstInputValue::Array(list.elements().iter().map(copy_value).collect::<Result<_, _>>()?));
    }
    Ok(CstInputValue::Null)
}
