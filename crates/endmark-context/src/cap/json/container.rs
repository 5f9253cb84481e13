//! Shortens JSON arrays and objects: selects the items and members to keep, and shortens their values.

use std::ops::Range;

use endmark_envelope::{FieldPath, Size};

use super::string;
use super::tape::{JsonNode, Kind};
use crate::cap::error_signs::ErrorHints;
use crate::cap::limits::Limits;
use crate::cap::marker::{OMITTED, OmissionValue};
use crate::cap::rows::{RowFacts, RowSelector, SelectionLimits, has_content};

/// Values are shortened down to this nesting level. Deeper values are kept whole or omitted.
const MAX_SHORTENED_LEVELS: usize = 48;
/// Items are shortened to no less than the list's room divided by this number. If that is not enough, items
/// are omitted.
const MAX_ITEM_DIVISOR: usize = 8;
/// The same number for members. They may become smaller than items, because each key is useful.
const MAX_MEMBER_DIVISOR: usize = 64;
const MIN_MEMBER_SIZE: usize = 40;
/// White space of more than this many bytes is removed.
const MAX_SPACE_BYTES: usize = 64;

/// A value that was shortened, with its sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cap) struct ShortenedValue {
    pub(in crate::cap) path: FieldPath,
    pub(in crate::cap) returned: Size,
    pub(in crate::cap) original: Size,
    /// The number of omitted items or members, and the number of all items or members.
    pub(in crate::cap) items: Option<(u64, u64)>,
}

/// Shortens the values of one JSON text.
#[derive(Debug)]
pub(in crate::cap) struct Shortener<'a> {
    text: &'a str,
    nodes: &'a [JsonNode],
    limits: &'a Limits,
    /// Whether the text is ASCII, so that each byte is a character.
    is_ascii: bool,
    pub(in crate::cap) cuts: Vec<ShortenedValue>,
}

/// An item of an array, or a member of an object.
#[derive(Debug, Clone, Copy)]
struct ContainerChild<'a> {
    /// The white space before the child.
    space: &'a str,
    /// The key and the colon of a member. Empty for an item.
    key: &'a str,
    value: usize,
    /// Size of the child, including the comma before it.
    size: usize,
    value_size: usize,
}

impl<'a> Shortener<'a> {
    pub(in crate::cap) fn new(text: &'a str, nodes: &'a [JsonNode], limits: &'a Limits) -> Self {
        Self { text, nodes, limits, is_ascii: text.is_ascii(), cuts: Vec::new() }
    }

    /// Returns the size of a part of the text in the unit of [`Limits::max_buffered`].
    fn size(&self, part: &str) -> usize {
        if self.is_ascii { part.len() } else { self.limits.size(part) }
    }

    /// Returns a value whose size is at most `most`. Returns `None` if it cannot be shortened that much.
    pub(in crate::cap) fn render_value(
        &mut self,
        node: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let own = &self.nodes[node];
        let source = self.node_text(own);
        let natural = self.size(source);
        if natural <= most && !own.has_long_list {
            return Some(source.to_owned());
        }
        let before = self.cuts.len();
        let smaller = match own.kind {
            Kind::String => self.render_string(source, most, path),
            Kind::Array | Kind::Object if depth < MAX_SHORTENED_LEVELS => {
                self.render_container(node, most.min(natural), path, depth)
            }
            _ => None,
        };
        // Keep the value unchanged if the result would not be shorter.
        let smaller =
            smaller.filter(|smaller| smaller.len() < source.len() && self.limits.size(smaller) <= most);
        if smaller.is_none() {
            self.cuts.truncate(before);
        }
        smaller.or_else(|| (natural <= most).then(|| source.to_owned()))
    }

    fn node_text(&self, node: &JsonNode) -> &'a str {
        &self.text[node.begin as usize..node.end as usize]
    }

    fn render_string(&mut self, source: &str, most: usize, path: &FieldPath) -> Option<String> {
        let cut = string::shorten(source, most, self.limits)?;
        let path = path.clone();
        self.cuts.push(ShortenedValue { path, returned: cut.returned, original: cut.original, items: None });
        Some(cut.json)
    }

    fn render_container(
        &mut self,
        node: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let inside = self.read_children(node);
        let most_items = if inside.is_list { self.limits.max_items } else { usize::MAX };
        // A container that fits loses only its excess items. Otherwise, capping a capped value again would
        // change it.
        let fits = self.size(self.node_text(&self.nodes[node])) <= most;
        let levels = |room: usize| if fits { (usize::MAX, 0) } else { inside.size_levels(room) };
        // No marker is needed if every child can stay, possibly shortened.
        let cuts = self.cuts.len();
        if inside.children.len() <= most_items && inside.before.is_none() {
            // Subtract one byte for both brackets: the size of the first child includes a comma that is not
            // written.
            let room = most.checked_sub(1 + self.limits.size(inside.end_space))?;
            let (level, least) = levels(room);
            if level >= least {
                let all = (0..inside.children.len()).collect();
                let (body, kept) = self.render_body(&inside, all, level, room, path, depth);
                if kept == inside.children.len() {
                    return Some(inside.with_brackets(&body));
                }
                self.cuts.truncate(cuts);
            }
        }
        let count = inside.children.len();
        let before = inside.before.as_ref();
        let of = before.map_or(0, |before| before.items).saturating_add(count as u64);
        let handle = before
            .and_then(|before| before.handle.clone())
            .or_else(|| self.limits.marker_handle().map(str::to_owned));
        let marker = |kept: usize| {
            let omitted = OmissionValue { items: of - kept as u64, of, handle: handle.clone() };
            if inside.is_list { omitted.item() } else { omitted.member() }
        };
        let marker_space = inside.children.last().map_or("", |child| child.space);
        let is_marked = !self.limits.keeps_types;
        let marker_size = if is_marked { marker(0).len() + self.limits.size(marker_space) } else { 0 };
        let overhead = 3 + marker_size + self.limits.size(inside.end_space);
        let room = if fits { most } else { most.checked_sub(overhead)? };
        let (level, least) = levels(room);
        let size = level.max(least);
        let chosen = if level >= least && count <= most_items {
            (0..count).collect()
        } else {
            self.select_children(&inside, size, room, most_items, path, depth)
        };
        let (mut body, kept) = self.render_body(&inside, chosen, size, room, path, depth);
        let returned = Size::of(&body);
        if kept < count {
            // An object without members is useless to a reader, so its caller should replace the whole value
            // instead.
            if !inside.is_list && (kept == 0 && depth == 0 || !is_marked) {
                return None;
            }
            let original = Size::of(self.node_text(&self.nodes[node]));
            let returned = Size { bytes: returned.bytes + 2, chars: returned.chars + 2 };
            self.cuts.push(ShortenedValue {
                path: path.clone(),
                returned,
                original,
                items: Some((of - kept as u64, of)),
            });
        }
        if is_marked {
            body.push_str(if body.is_empty() { "" } else { "," });
            body.extend([marker_space, &marker(kept)]);
        }
        Some(inside.with_brackets(&body))
    }

    /// Writes as many of these children as fit, each in at most `size`. Returns the text and the number of
    /// children.
    fn render_body(
        &mut self,
        inside: &ContainerContent<'_>,
        chosen: Vec<usize>,
        size: usize,
        mut room: usize,
        path: &FieldPath,
        depth: usize,
    ) -> (String, usize) {
        let (mut body, mut kept) = (String::new(), 0);
        for index in chosen {
            let child = inside.children[index];
            let cuts = self.cuts.len();
            let value = self.render_child(inside, index, size.min(room), path, depth);
            // A value that cannot be shortened is kept whole if there is room.
            let value = value.or_else(|| self.render_child(inside, index, room, path, depth));
            let left = value
                .as_ref()
                .and_then(|value| room.checked_sub(child.fixed_size() + self.limits.size(value)));
            let (Some(value), Some(left)) = (value, left) else {
                self.cuts.truncate(cuts);
                continue;
            };
            room = left;
            body.push_str(if body.is_empty() { "" } else { "," });
            body.extend([child.space, child.key, &value]);
            kept += 1;
        }
        (body, kept)
    }

    /// Returns the value of a child, shortened so that the child with its key needs at most `most`.
    fn render_child(
        &mut self,
        inside: &ContainerContent<'_>,
        index: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let child = inside.children[index];
        let most = most.checked_sub(child.fixed_size())?;
        let own = &self.nodes[child.value];
        if child.value_size <= most && !own.has_long_list {
            return Some(self.node_text(own).to_owned());
        }
        let path = path.clone();
        let path = if inside.is_list { path.index(index) } else { path.key(decode_key(child.key)) };
        self.render_value(child.value, most, &path, depth + 1)
    }

    /// Selects the children to keep if not all of them fit.
    fn select_children(
        &mut self,
        inside: &ContainerContent<'_>,
        size: usize,
        room: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Vec<usize> {
        let mut rows = RowSelector::new(most.min(inside.children.len()), room);
        let mut facts = RowFacts::default();
        let mut hints = ErrorHints::search(&self.text[inside.span.clone()], inside.span.start);
        let cuts = self.cuts.len();
        for (index, child) in inside.children.iter().enumerate() {
            let JsonNode { begin, end, .. } = self.nodes[child.value];
            let hint = hints.first_in(begin as usize..end as usize);
            facts.collect_json(self.text, self.nodes, child.value, hint);
            if !inside.is_list {
                facts.note_key(unquote_key(child.key), has_content(self.text, &self.nodes[child.value]));
            }
            let mut taken = child.size;
            if child.size > size {
                let smaller = self.render_child(inside, index, size, path, depth);
                taken = smaller.map_or(taken, |smaller| child.fixed_size() + self.limits.size(&smaller));
            }
            rows.push(index, taken, &facts);
        }
        self.cuts.truncate(cuts);
        let chosen = rows.select(SelectionLimits { room, max_rows: most, keep: self.limits.keep, gap: 0 });
        chosen.into_iter().map(|row| row.value).collect()
    }

    fn read_children(&self, node: usize) -> ContainerContent<'a> {
        let own = &self.nodes[node];
        let is_list = own.kind == Kind::Array;
        let bytes = self.text.as_bytes();
        let mut children = Vec::with_capacity(own.count as usize);
        let mut before = None;
        let (mut at, mut child) = (own.begin as usize + 1, node + 1);
        while child < own.next as usize {
            let begin = self.nodes[child].begin as usize;
            let value = if is_list { child } else { child + 1 };
            let (space, key) =
                (drop_long_space(&self.text[at..begin]), &self.text[begin..self.nodes[value].begin as usize]);
            let source = self.node_text(&self.nodes[value]);
            child = self.nodes[value].next as usize;
            let end = self.nodes[value].end as usize;
            at = end + bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count() + 1;
            if child == own.next as usize {
                before = if is_list {
                    OmissionValue::read(source)
                } else if unquote_key(key) == OMITTED {
                    serde_json::from_str(source).ok().as_ref().and_then(OmissionValue::from_value)
                } else {
                    None
                };
                if before.is_some() {
                    break;
                }
            }
            let value_size = self.size(source);
            let size = 1 + self.size(space) + self.size(key) + value_size;
            children.push(ContainerChild { space, key, value, size, value_size });
        }
        let inside = &self.text[..own.end as usize - 1];
        let end_space = drop_long_space(&inside[inside.trim_end_matches([' ', '\n', '\r', '\t']).len()..]);
        let span = own.begin as usize..own.end as usize;
        ContainerContent { span, is_list, children, before, end_space }
    }
}

/// The content of an array or object.
#[derive(Debug)]
struct ContainerContent<'a> {
    span: Range<usize>,
    is_list: bool,
    children: Vec<ContainerChild<'a>>,
    /// The marker of an earlier capping.
    before: Option<OmissionValue>,
    /// The white space before the closing bracket.
    end_space: &'a str,
}

impl ContainerContent<'_> {
    /// Returns the size to which larger children are shortened so that all of them fit, and the smallest size
    /// that is worth keeping.
    fn size_levels(&self, room: usize) -> (usize, usize) {
        let level = fair_size_limit(self.children.iter().map(|child| child.size).collect(), room);
        let least = if self.is_list {
            room / MAX_ITEM_DIVISOR
        } else {
            (room / MAX_MEMBER_DIVISOR).max(MIN_MEMBER_SIZE)
        };
        (level, least)
    }

    fn with_brackets(&self, body: &str) -> String {
        let (open, close) = if self.is_list { ('[', ']') } else { ('{', '}') };
        format!("{open}{body}{}{close}", self.end_space)
    }
}

impl ContainerChild<'_> {
    /// Returns the size of the child without its value.
    fn fixed_size(&self) -> usize {
        self.size - self.value_size
    }
}

/// Returns white space unchanged. Returns an empty text if it is too long.
fn drop_long_space(space: &str) -> &str {
    if space.len() > MAX_SPACE_BYTES { "" } else { space }
}

/// Returns a key as it is written, without quotation marks and colon.
fn unquote_key(key: &str) -> &str {
    quoted_key(key).trim_matches('"')
}

/// Returns a key as it is written, without its colon.
fn quoted_key(key: &str) -> &str {
    key.trim_end_matches([' ', '\n', '\r', '\t', ':'])
}

/// Returns the decoded key, as used in a JSON Pointer.
fn decode_key(key: &str) -> String {
    string::decode_json_string(quoted_key(key)).unwrap_or_else(|| unquote_key(key).to_owned())
}

/// Returns the size to which larger values must be shortened so that all values fit into `room`.
fn fair_size_limit(mut sizes: Vec<usize>, mut room: usize) -> usize {
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
    fn small_values_stay_whole_and_large_ones_share_the_rest() {
        assert_eq!(fair_size_limit(vec![10, 10, 500, 900], 220), 100);
        assert_eq!(fair_size_limit(vec![10, 10], 20), usize::MAX);
        assert_eq!(fair_size_limit(Vec::new(), 0), usize::MAX);
    }

    #[test]
    fn a_member_name_is_decoded_like_a_pointer() {
        for (key, expected) in [(r#""a" :"#, "a"), (r#""a\"/:": "#, "a\"/:"), (r#""a\ud800":"#, "a\u{fffd}")]
        {
            assert_eq!(decode_key(key), expected);
            let json = format!("{{{key} 1}}");
            let pointer = FieldPath::root().key(decode_key(key)).pointer();
            assert_eq!(crate::read::resolve_pointer(&json, &pointer), Ok("1"));
        }
    }
}
