//! Lists in a JSON document: elements are added at the end, and taken out, without touching those of others.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode};
use serde_json::Value;

use super::Unfit;
use super::jsonc::Jsonc;

/// Which elements a list of lists has to lose.
pub struct Removal<'a> {
    /// The list that each element of the outer list has.
    pub within: &'a str,
    /// Which of that list's elements go. An outer element goes with the last of them.
    pub is_removed: &'a dyn Fn(&Value) -> bool,
}

impl Jsonc {
    /// The elements of a list; none where there is no list.
    pub(super) fn list(&self, path: &[&str]) -> Option<Vec<Value>> {
        Some(self.array(path)?.elements().iter().filter_map(CstNode::to_serde_value).collect())
    }

    /// Adds an element to a list, with the tables on the way to it.
    pub(super) fn append(&mut self, path: &[&str], element: &Value) -> Result<(), Unfit> {
        if self.property(path).is_none() {
            return self.put(path, CstInputValue::Array(vec![written(element)]));
        }
        let list = self.array(path).ok_or_else(|| Unfit::NoList(path.join(".")))?;
        list.append(written(element));
        Ok(())
    }

    /// Takes elements out of the lists in a list. Lists and tables that have nothing left in them go as well.
    pub(super) fn remove_elements(&mut self, path: &[&str], removal: &Removal<'_>) {
        let Some(outer) = self.array(path) else { return };
        let mut has_removed = false;
        for element in outer.elements() {
            let inner = element.as_object().and_then(|object| object.array_value(removal.within));
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

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(written).collect()),
        Value::Object(table) => {
            CstInputValue::Object(table.iter().map(|(name, value)| (name.clone(), written(value))).collect())
        }
    }
}
