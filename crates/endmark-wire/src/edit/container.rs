//! Adds and removes fields and items, with the necessary commas.

use std::collections::{BTreeMap, BTreeSet};

use crate::edit::Patch;
use crate::json::{Kind, Value, quote};

/// The changes of one object or array.
#[derive(Debug, Clone)]
pub(super) struct ContainerEdit<'a> {
    pub(super) container: Value<'a>,
    /// The names of removed fields.
    pub(super) removed: Vec<String>,
    /// The positions of removed items.
    pub(super) removed_items: BTreeSet<usize>,
    /// Items inserted before the one at this position.
    pub(super) insertions: BTreeMap<usize, Vec<String>>,
    /// Fields with their names, or items, that follow the last existing one.
    pub(super) added: Vec<(Option<String>, String)>,
}

impl<'a> ContainerEdit<'a> {
    pub(super) fn new(container: Value<'a>) -> Self {
        Self {
            container,
            removed: Vec::new(),
            removed_items: BTreeSet::new(),
            insertions: BTreeMap::new(),
            added: Vec::new(),
        }
    }

    pub(super) fn add_field(&mut self, name: &str, json: &str) {
        self.added.retain(|(added, _)| added.as_deref() != Some(name));
        self.added.push((Some(name.to_owned()), json.to_owned()));
    }

    pub(super) fn remove_field(&mut self, name: &str) {
        self.added.retain(|(added, _)| added.as_deref() != Some(name));
        if !self.removed.iter().any(|removed| removed == name) {
            self.removed.push(name.to_owned());
        }
    }

    /// Adds the patches that make these changes to the document.
    ///
    /// Consecutive removed fields are removed together with the comma before them. At the beginning of an
    /// object, where no comma precedes them, the comma after them is removed. Inserted fields replace the
    /// removed ones.
    pub(super) fn add_patches(&self, patches: &mut Vec<Patch>) {
        let mut kept_end = None;
        let mut gone_from = None;
        let mut new: Vec<&str> = Vec::new();
        let mut end = self.container.span().start + 1;
        let members = self.members();
        for (position, member) in members.iter().enumerate() {
            new.extend(self.inserted_before(position));
            if member.is_removed {
                gone_from.get_or_insert(kept_end.unwrap_or(member.start));
            } else {
                if gone_from.is_some() || !new.is_empty() {
                    let (span, text) = match kept_end {
                        Some(kept) => {
                            (kept..if gone_from.is_some() { end } else { kept }, comma_before_each(&new))
                        }
                        None => (gone_from.unwrap_or(member.start)..member.start, comma_after_each(&new)),
                    };
                    patches.push(Patch { span, text });
                }
                (gone_from, kept_end) = (None, Some(member.end));
                new.clear();
            }
            end = member.end;
        }
        let last = self.insertions.keys().next_back().map_or(0, |last| last + 1);
        new.extend((members.len()..last).flat_map(|at| self.inserted_before(at)));
        let mut text = if kept_end.is_some() { comma_before_each(&new) } else { new.join(",") };
        text.push_str(&self.additions(kept_end.is_some() || !text.is_empty()));
        let start = gone_from.unwrap_or(end);
        if start != end || !text.is_empty() {
            patches.push(Patch { span: start..end, text });
        }
    }

    fn inserted_before(&self, position: usize) -> impl Iterator<Item = &str> {
        self.insertions.get(&position).into_iter().flatten().map(String::as_str)
    }

    fn members(&self) -> Vec<Member> {
        if self.container.kind() == Kind::Array {
            let items = self.container.items().enumerate().map(|(position, item)| Member {
                start: item.span().start,
                end: item.span().end,
                is_removed: self.removed_items.contains(&position),
            });
            return items.collect();
        }
        let fields = self.container.fields().map(|field| Member {
            start: field.key.span().start,
            end: field.value.span().end,
            is_removed: self.removed.iter().any(|name| field.has_name(name)),
        });
        fields.collect()
    }

    fn additions(&self, after_others: bool) -> String {
        let mut text = String::new();
        for (name, json) in &self.added {
            if after_others || !text.is_empty() {
                text.push(',');
            }
            if let Some(name) = name {
                text.push_str(&quote(name));
                text.push(':');
            }
            text.push_str(json);
        }
        text
    }
}

/// Returns items with a comma before each.
fn comma_before_each(items: &[&str]) -> String {
    items.iter().flat_map(|item| [",", item]).collect()
}

/// Returns items with a comma after each.
fn comma_after_each(items: &[&str]) -> String {
    items.iter().flat_map(|item| [item, ","]).collect()
}

/// A field or an item, by its position in the document.
struct Member {
    start: usize,
    end: usize,
    is_removed: bool,
}
