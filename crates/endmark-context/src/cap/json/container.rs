//! Lists and objects in JSON: which of their items and members are kept, and how much of each.

use endmark_envelope::{FieldPath, Size};

use super::string;
use super::tape::{Kind, Node, skip_space};
use crate::cap::limits::Limits;
use crate::cap::marker::{OMITTED, Omitted};
use crate::cap::rows::{Choice, Facts, Rows};

/// How deep values are taken apart; what lies deeper is kept whole or left out.
const DEPTH: usize = 48;
/// An item is not made smaller than this part of the room of its list: rather there are fewer.
const LEAST_ITEM_PART: usize = 8;
/// The same for members, of which each key is worth something.
const LEAST_MEMBER_PART: usize = 64;
const LEAST_MEMBER: usize = 40;
/// White space beyond this is not worth its room.
const LONGEST_SPACE_BYTES: usize = 64;

/// A value that is not there in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cap) struct Cut {
    pub(in crate::cap) path: FieldPath,
    pub(in crate::cap) returned: Size,
    pub(in crate::cap) original: Size,
    /// Items or members that were left out, and of how many.
    pub(in crate::cap) items: Option<(u64, u64)>,
}

/// Makes values of one text smaller.
#[derive(Debug)]
pub(in crate::cap) struct Shortener<'a> {
    text: &'a str,
    nodes: &'a [Node],
    limits: &'a Limits,
    pub(in crate::cap) cuts: Vec<Cut>,
}

/// An item of a list, or a member of an object.
#[derive(Debug, Clone, Copy)]
struct Child<'a> {
    /// The white space before it.
    space: &'a str,
    /// Its key and colon.
    key: &'a str,
    value: usize,
    /// What it takes, with the comma before it.
    size: usize,
    value_size: usize,
}

impl<'a> Shortener<'a> {
    pub(in crate::cap) fn new(text: &'a str, nodes: &'a [Node], limits: &'a Limits) -> Self {
        Self { text, nodes, limits, cuts: Vec::new() }
    }

    /// A value in at most so much room; none where that cannot be.
    pub(in crate::cap) fn value(
        &mut self,
        node: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let own = &self.nodes[node];
        let source = self.source(own);
        let natural = self.limits.size(source);
        if natural <= most && !own.has_long_list {
            return Some(source.to_owned());
        }
        let before = self.cuts.len();
        let smaller = match own.kind {
            Kind::String => self.string(source, most, path),
            Kind::Array | Kind::Object if depth < DEPTH => {
                self.container(node, most.min(natural), path, depth)
            }
            _ => None,
        };
        // What would be no shorter stays as it is.
        let smaller =
            smaller.filter(|smaller| smaller.len() < source.len() && self.limits.size(smaller) <= most);
        if smaller.is_none() {
            self.cuts.truncate(before);
        }
        smaller.or_else(|| (natural <= most).then(|| source.to_owned()))
    }

    fn source(&self, node: &Node) -> &'a str {
        &self.text[node.begin as usize..node.end as usize]
    }

    fn string(&mut self, source: &str, most: usize, path: &FieldPath) -> Option<String> {
        let cut = string::cut(source, most, self.limits)?;
        let path = path.clone();
        self.cuts.push(Cut { path, returned: cut.returned, original: cut.original, items: None });
        Some(cut.json)
    }

    fn container(&mut self, node: usize, most: usize, path: &FieldPath, depth: usize) -> Option<String> {
        let own = self.nodes[node];
        let is_list = own.kind == Kind::Array;
        let (children, before, end_space) = self.children(node);
        let count = children.len() as u64;
        let of = before.as_ref().map_or(count, |before| before.items.saturating_add(count));
        let handle =
            before.as_ref().and_then(|before| before.handle.clone()).or_else(|| self.limits.handle.clone());
        let left_out = |kept: u64| Omitted { items: of - kept, of, handle: handle.clone() };
        let marker_space = children.last().map_or("", |child| child.space);
        let written = |marker: &Omitted| if is_list { marker.item() } else { marker.member() };
        let overhead =
            3 + written(&left_out(0)).len() + self.limits.size(marker_space) + self.limits.size(end_space);
        let room = most.checked_sub(overhead)?;

        let most_items = if is_list { self.limits.max_items } else { usize::MAX };
        let level = fair_level(children.iter().map(|child| child.size).collect(), room);
        let least =
            if is_list { room / LEAST_ITEM_PART } else { (room / LEAST_MEMBER_PART).max(LEAST_MEMBER) };
        let size = level.max(least);
        let chosen: Vec<usize> = if level >= least && children.len() <= most_items {
            (0..children.len()).collect()
        } else {
            self.chosen(&children, size, room, most_items)
        };

        let (mut body, mut kept, mut room) = (String::new(), 0, room);
        for index in chosen {
            let child = children[index];
            let fixed = child.size - child.value_size;
            let path =
                if is_list { path.clone().index(index) } else { path.clone().key(unquoted(child.key)) };
            let cuts = self.cuts.len();
            let value = size
                .min(room)
                .checked_sub(fixed)
                .and_then(|most| self.value(child.value, most, &path, depth + 1));
            let Some(value) = value else { continue };
            let taken = fixed + self.limits.size(&value);
            let Some(rest) = room.checked_sub(taken) else {
                self.cuts.truncate(cuts);
                continue;
            };
            room = rest;
            body.push_str(if body.is_empty() { "" } else { "," });
            body.extend([child.space, child.key, &value]);
            kept += 1;
        }
        let returned = Size::of(&body);
        if kept < count {
            // Nothing of an object says nothing: the one change of shape says more.
            if kept == 0 && !is_list && depth == 0 {
                return None;
            }
            let original = Size::of(self.source(&own));
            let returned = Size { bytes: returned.bytes + 2, chars: returned.chars + 2 };
            self.cuts.push(Cut { path: path.clone(), returned, original, items: Some((of - kept, of)) });
        }
        if kept < of {
            body.push_str(if body.is_empty() { "" } else { "," });
            body.extend([marker_space, &written(&left_out(kept))]);
        }
        let (open, close) = if is_list { ('[', ']') } else { ('{', '}') };
        Some(format!("{open}{body}{end_space}{close}"))
    }

    /// Which children are kept, where they cannot all be.
    fn chosen(&self, children: &[Child<'_>], size: usize, room: usize, most: usize) -> Vec<usize> {
        let mut rows = Rows::new(most.min(children.len()), room);
        let mut facts = Facts::default();
        for (index, child) in children.iter().enumerate() {
            facts.of_json(self.text, self.nodes, child.value);
            facts.with_key(unquoted(child.key), self.nodes[child.value].end > self.nodes[child.value].begin);
            rows.take(index, child.size.min(size), &facts);
        }
        let chosen = rows.choose(Choice { room, most, keep: self.limits.keep, gap: 0 });
        chosen.into_iter().map(|row| row.value).collect()
    }

    /// What a container holds, what an earlier capping left out of it, and the white space before its end.
    fn children(&self, node: usize) -> (Vec<Child<'a>>, Option<Omitted>, &'a str) {
        let own = &self.nodes[node];
        let is_list = own.kind == Kind::Array;
        let bytes = self.text.as_bytes();
        let mut children = Vec::with_capacity(own.count as usize);
        let mut omitted = None;
        let (mut at, mut child) = (own.begin as usize + 1, node + 1);
        while child < own.next as usize {
            let begin = self.nodes[child].begin as usize;
            let value = if is_list { child } else { child + 1 };
            let (space, key) =
                (spaces(&self.text[at..begin]), &self.text[begin..self.nodes[value].begin as usize]);
            let source = self.source(&self.nodes[value]);
            child = self.nodes[value].next as usize;
            at = skip_space(bytes, self.nodes[value].end as usize) + 1;
            if child == own.next as usize {
                omitted = if is_list {
                    Omitted::read(source)
                } else if unquoted(key) == OMITTED {
                    serde_json::from_str(source).ok().as_ref().and_then(Omitted::of_value)
                } else {
                    None
                };
                if omitted.is_some() {
                    break;
                }
            }
            let value_size = self.limits.size(source);
            let size = 1 + self.limits.size(space) + self.limits.size(key) + value_size;
            children.push(Child { space, key, value, size, value_size });
        }
        let last = own.end as usize - 1;
        let end_space =
            self.text[..last].len() - self.text[..last].trim_end_matches([' ', '\n', '\r', '\t']).len();
        (children, omitted, spaces(&self.text[last - end_space..last]))
    }
}

/// White space, if it is not too much.
fn spaces(space: &str) -> &str {
    if space.len() > LONGEST_SPACE_BYTES { "" } else { space }
}

/// A key as it is written, without its quotation marks and colon.
fn unquoted(key: &str) -> &str {
    key.trim_end_matches([' ', '\n', '\r', '\t', ':']).trim_matches('"')
}

/// The size to which those that are larger are cut, so that all together take at most this room.
fn fair_level(mut sizes: Vec<usize>, mut room: usize) -> usize {
    sizes.sort_unstable();
    let mut left = sizes.len();
    for size in sizes {
        let share = room / left;
        if size > share {
            return share;
        }
        (room, left) = (room - size, left - 1);
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_stay_whole_and_the_large_share_the_rest() {
        assert_eq!(fair_level(vec![10, 10, 500, 900], 220), 100);
        assert_eq!(fair_level(vec![10, 10], 20), usize::MAX);
        assert_eq!(fair_level(Vec::new(), 0), usize::MAX);
    }
}
