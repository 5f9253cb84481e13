//! Edits TOML.

use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{NewValue, UneditableFile, key_below};

pub(super) struct Toml {
    document: DocumentMut,
    /// Whether the last line had no line break. The library adds one.
    lacks_final_line_break: bool,
}

impl Toml {
    pub(super) fn parse(text: &str) -> Result<Self, UneditableFile> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            // The first line of the message contains the position. The other lines only draw it.
            let text = error.to_string();
            let message = error.message();
            UneditableFile::Unreadable(match text.lines().next() {
                Some(place) => format!("{place}: {message}"),
                None => message.to_owned(),
            })
        })?;
        Ok(Self { document, lacks_final_line_break: !text.is_empty() && !text.ends_with('\n') })
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.document.to_string();
        if self.lacks_final_line_break && text.ends_with('\n') {
            text.pop();
        }
        text
    }

    pub(super) fn value(&self, path: &[&str]) -> Option<String> {
        self.item(path).map(value_text)
    }

    pub(super) fn leaves(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        let mut tables = vec![(String::new(), self.item(path)?.as_table_like()?)];
        let mut leaves = Vec::new();
        while let Some((name, table)) = tables.pop() {
            if table.is_empty() {
                leaves.push((name, "{}".to_owned()));
                continue;
            }
            for (key, item) in table.iter() {
                let name = key_below(&name, key);
                match item.as_table_like() {
                    Some(table) => tables.push((name, table)),
                    None => leaves.push((name, value_text(item))),
                }
            }
        }
        Some(leaves)
    }

    pub(super) fn set(&mut self, path: &[&str], given: &NewValue) -> Result<(), UneditableFile> {
        let is_table = self.item(path).is_some_and(Item::is_table_like);
        let item = match given {
            NewValue::Table if is_table => return Ok(()),
            NewValue::Table => Item::Table(Table::new()),
            NewValue::Text(_) if is_table => return Err(UneditableFile::IsTable(path.join("."))),
            NewValue::Text(text) => value(text.as_str()),
        };
        self.put(path, item)
    }

    pub(super) fn copy_from(&mut self, other: &Self, path: &[&str]) -> Result<(), UneditableFile> {
        if let Some(item) = other.item(path) {
            return self.put(path, item.clone());
        }
        for length in (1..=path.len()).rev() {
            let Some((last, tables)) = path.get(..length).and_then(<[_]>::split_last) else { break };
            if path.get(..length).is_some_and(|name| other.item(name).is_some()) {
                break;
            }
            let Some(table) = self.table_mut(tables) else { continue };
            let is_in_use = table.get(last).and_then(Item::as_table_like).is_some_and(|own| !own.is_empty());
            if length < path.len() && is_in_use {
                break;
            }
            table.remove(last);
        }
        Ok(())
    }

    fn put(&mut self, path: &[&str], mut item: Item) -> Result<(), UneditableFile> {
        let Some((last, tables)) = path.split_last() else { return Ok(()) };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (index, name) in tables.iter().enumerate() {
            let entry = table.entry(name).or_insert_with(|| {
                let mut new = Table::new();
                // `[a.b]` does not need `[a]` before it.
                new.set_implicit(index + 1 < tables.len() || tables.len() == 1 && path.len() > 2);
                Item::Table(new)
            });
            table = entry
                .as_table_like_mut()
                .ok_or_else(|| UneditableFile::NotATable(tables.get(..=index).unwrap_or(tables).join(".")))?;
        }
        match table.get_mut(last) {
            Some(found) => {
                // Keep the comment after the old value.
                if let (Some(old), Some(new)) = (found.as_value(), item.as_value_mut()) {
                    *new.decor_mut() = old.decor().clone();
                }
                *found = item;
            }
            None => {
                table.insert(last, item);
            }
        }
        Ok(())
    }

    fn item(&self, path: &[&str]) -> Option<&Item> {
        path.iter().try_fold(self.document.as_item(), |item, name| item.as_table_like()?.get(name))
    }

    fn table_mut(&mut self, path: &[&str]) -> Option<&mut dyn TableLike> {
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for name in path {
            table = table.get_mut(name)?.as_table_like_mut()?;
        }
        Some(table)
    }
}

/// Returns a value as text without quotation marks.
fn value_text(item: &Item) -> String {
    item.as_str().map_or_else(|| item.to_string().trim().to_owned(), str::to_owned)
}
