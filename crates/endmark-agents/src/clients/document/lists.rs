//! Appends elements to lists in a JSON document, and removes elements. Other elements do not change.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode};
use serde_json::Value;

use super::UneditableFile;
use super::jsonc::Jsonc;

/// Selects elements to remove from the inner lists of a list.
pub struct InnerListRemoval<'a> {
    /// The key of the inner list in each element of the outer list.
    pub column_key: &'a str,
    /// Whether to remove an element of an inner list. An outer element whose inner list becomes empty is
    /// removed, too.
    pub is_removed: &'a dyn Fn(&Value) -> bool,
}

impl Jsonc {
    /// Returns the elements of a list. Returns `None` if the path is not a list.
    pub(super) fn list(&self, path: &[&str]) -> Option<Vec<Value>> {
        Some(self.array(path)?.elements().iter().filter_map(CstNode::to_serde_value).collect())
    }

    /// Appends an element to a list. Creates the list and its parent tables if they are missing.
    pub(super) fn append(&mut self, path: &[&str], element: &Value) -> Result<(), UneditableFile> {
        if self.property(path).is_none() {
            return self.put(path, CstInputValue::Array(vec![to_input_value(element)]));
        }
        let list = self.array(path).ok_or_else(|| UneditableFile::NotAList(path.join(".")))?;
        list.append(to_input_value(element));
        Ok(())
    }

    /// Removes elements from the inner lists. Also removes lists and tables that become empty.
    pub(super) fn remove_elements(&mut self, path: &[&str], removal: &InnerListRemoval<'_>) {
        let Some(outer) = self.array(path) else { return };
        let mut has_removed = false;
        for element in outer.elements() {
            let inner = element.as_object().and_then(|object| object.array_value(removal.column_key));
            let Some(inner) = inner else { continue };
            let is_removed =
                |node: &CstNode| node.to_serde_value().is_some_and(|value| (removal.is_removed)(&value));
            let (gone, kept): (Vec<CstNode>, Vec<CstNode>) =
                inner.elements().into_iter().partition(is_removed);
            if gone.is_empty() {
                continue;
            }
            has_removed = true;
            if kept.is_empty() {
                element.remove();
            } else {
                gone.into_iter().for_each(CstNode::remove);
            }
        }
        if has_removed && outer.elements().is_empty() {
            self.remove_empty(path);
        }
    }

    fn array(&self, path: &[&str]) -> Option<CstArray> {
        self.property(path)?.array_value()
    }
}

fn to_input_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(to_input_value).collect()),
        Value::Object(table) => CstInputValue::Object(
            table.iter().map(|(name, value)| (name.clone(), to_input_value(value))).collect(),
        ),
    }
}
