//! JSON arrays and objects: selects the items and members to keep, and shortens them.

use std::ops::Range;

use endmark_envelope::{FieldPath, Size};

use super::string;
use super::tape::{Kind, Node};
use crate::cap::error_signs::ErrorHints;
use crate::cap::limits::Limits;
use crate::cap::marker::{OMITTED, OmissionValue};
use crate::cap::rows::{Choice, Facts, Rows, has_content};

/// The deepest level at which values are shortened. Deeper values are kept whole or omitted.
const MAX_OPENED_LEVELS: usize = 48;
/// Items are shortened to no less than the list's room divided by this number. If that is not enough, fewer items are
/// kept.
const MIN_ITEM_PART: usize = 8;
/// Minimum size of the parts of members. They may become smaller than items, because each key is useful.
const MIN_MEMBER_PART: usize = 64;
const MIN_MEMBER: usize = 40;
/// Maximum length of kept white space. Longer white space is not worth its room.
const LONGEST_SPACE_BYTES: usize = 64;

/// A value that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cap) struct Cut {
    pub(in crate::cap) path: FieldPath,
    pub(in crate::cap) returned: Size,
    pub(in crate::cap) original: Size,
    /// The number of omitted items or members, and of all.
    pub(in crate::cap) items: Option<(u64, u64)>,
}

/// Shortens values of one text.
#[derive(Debug)]
pub(in crate::cap) struct Shortener<'a> {
    text: &'a str,
    nodes: &'a [Node],
    limits: &'a Limits,
    /// Whether each character is a byte.
    is_ascii: bool,
    pub(in crate::cap) cuts: Vec<Cut>,
}

/// An item of an array or a member of an object.
#[derive(Debug, Clone, Copy)]
struct Child<'a> {
    /// The white space before it.
    space: &'a str,
    /// Its key and colon.
    key: &'a str,
    value: usize,
    /// Its size, including the preceding comma.
    size: usize,
    value_size: usize,
}

impl<'a> Shortener<'a> {
    pub(in crate::cap) fn new(text: &'a str, nodes: &'a [Node], limits: &'a Limits) -> Self {
        Self { text, nodes, limits, is_ascii: text.is_ascii(), cuts: Vec::new() }
    }

    /// Returns the size of a part of the text, in the unit of [`Limits::max_buffered`].
    fn size(&self, part: &str) -> usize {
        if self.is_ascii { part.len() } else { self.limits.size(part) }
    }

    /// Returns a value in at most `most`. Returns `None` if that is impossible.
    pub(in crate::cap) fn render_value(
        &mut self,
        node: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let own = &self.nodes[node];
        let source = self.source(own);
        let natural = self.size(source);
        if natural <= most && !own.has_long_list {
            return Some(source.to_owned());
        }
        let before = self.cuts.len();
        let smaller = match own.kind {
            Kind::String => self.render_string(source, most, path),
            Kind::Array | Kind::Object if depth < MAX_OPENED_LEVELS => {
                self.render_container(node, most.min(natural), path, depth)
            }
            _ => None,
        };
        // A value stays unchanged if the result would not be shorter.
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

    fn render_string(&mut self, source: &str, most: usize, path: &FieldPath) -> Option<String> {
        let cut = string::cut(source, most, self.limits)?;
        let path = path.clone();
        self.cuts.push(Cut { path, returned: cut.returned, original: cut.original, items: None });
        Some(cut.json)
    }

    fn render_container(
        &mut self,
        node: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Option<String> {
        let inside = self.children(node);
        let most_items = if inside.is_list { self.limits.max_items } else { usize::MAX };
        // A container that fits loses only its excess items, so that a capped value is not capped again.
        let fits = self.size(self.source(&self.nodes[node])) <= most;
        let levels = |room: usize| if fits { (usize::MAX, 0) } else { inside.levels(room) };
        // No marker is needed if every child can stay, possibly shortened.
        let cuts = self.cuts.len();
        if inside.children.len() <= most_items && inside.before.is_none() {
            // Only one byte for the brackets is subtracted, because the first child has no comma before it.
            let room = most.checked_sub(1 + self.limits.size(inside.end_space))?;
            let (level, least) = levels(room);
            if level >= least {
                let all = (0..inside.children.len()).collect();
                let (body, kept) = self.render_body(&inside, all, level, room, path, depth);
                if kept == inside.children.len() {
                    return Some(inside.wrap(&body));
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
            self.choose_children(&inside, size, room, most_items, path, depth)
        };
        let (mut body, kept) = self.render_body(&inside, chosen, size, room, path, depth);
        let returned = Size::of(&body);
        if kept < count {
            // An object without members is useless to a reader. In this case it is better to change the shape of the value.
            if !inside.is_list && (kept == 0 && depth == 0 || !is_marked) {
                return None;
            }
            let original = Size::of(self.source(&self.nodes[node]));
            let returned = Size { bytes: returned.bytes + 2, chars: returned.chars + 2 };
            self.cuts.push(Cut {
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
        Some(inside.wrap(&body))
    }

    /// Writes as many of these children as fit, each in at most `size`. Returns the text and their number.
    /// children in it.
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

    /// Returns the value of a child so that the whole child needs at most `most`.
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
            return Some(self.source(own).to_owned());
        }
        let path = path.clone();
        let path = if inside.is_list { path.index(index) } else { path.key(name(child.key)) };
        self.render_value(child.value, most, &path, depth + 1)
    }

    /// Chooses the children to keep if there is no room for all.
    fn choose_children(
        &mut self,
        inside: &ContainerContent<'_>,
        size: usize,
        room: usize,
        most: usize,
        path: &FieldPath,
        depth: usize,
    ) -> Vec<usize> {
        let mut rows = Rows::new(most.min(inside.children.len()), room);
        let mut facts = Facts::default();
        let mut hints = ErrorHints::search(&self.text[inside.span.clone()], inside.span.start);
        let cuts = self.cuts.len();
        for (index, child) in inside.children.iter().enumerate() {
            let Node { begin, end, .. } = self.nodes[child.value];
            let hint = hints.first_in(begin as usize..end as usize);
            facts.collect_json(self.text, self.nodes, child.value, hint);
            if !inside.is_list {
                facts.with_key(unquote_key(child.key), has_content(self.text, &self.nodes[child.value]));
            }
            let mut taken = child.size;
            if child.size > size {
                let smaller = self.render_child(inside, index, size, path, depth);
                taken = smaller.map_or(taken, |smaller| child.fixed_size() + self.limits.size(&smaller));
            }
            rows.take(index, taken, &facts);
        }
        self.cuts.truncate(cuts);
        let chosen = rows.choose(Choice { room, most, keep: self.limits.keep, gap: 0 });
        chosen.into_iter().map(|row| row.value).collect()
    }

    fn children(&self, node: usize) -> ContainerContent<'a> {
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
                (spaces(&self.text[at..begin]), &self.text[begin..self.nodes[value].begin as usize]);
            let source = self.source(&self.nodes[value]);
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
            children.push(Child { space, key, value, size, value_size });
        }
        let inside = &self.text[..own.end as usize - 1];
        let end_space = spaces(&inside[inside.trim_end_matches([' ', '\n', '\r', '\t']).len()..]);
        let span = own.begin as usize..own.end as usize;
        ContainerContent { span, is_list, children, before, end_space }
    }
}

/// Content of a container.
#[derive(Debug)]
struct ContainerContent<'a> {
    span: Range<usize>,
    is_list: bool,
    children: Vec<Child<'a>>,
    /// The parts that an earlier capping omitted.
    before: Option<OmissionValue>,
    /// White space before the closing bracket.
    end_space: &'a str,
}

impl ContainerContent<'_> {
    /// Returns the size to which larger children are shortened so that all fit, and the smallest size that is worth
    /// keeping.
    fn levels(&self, room: usize) -> (usize, usize) {
        let level = fair_level(self.children.iter().map(|child| child.size).collect(), room);
        let least =
            if self.is_list { room / MIN_ITEM_PART } else { (room / MIN_MEMBER_PART).max(MIN_MEMBER) };
        (level, least)
    }

    fn wrap(&self, body: &str) -> String {
        let (open, close) = if self.is_list { ('[', ']') } else { ('{', '}') };
        format!("{open}{body}{}{close}", self.end_space)
    }
}

impl Child<'_> {
    /// Returns the child's size without its value.
    fn fixed_size(&self) -> usize {
        self.size - self.value_size
    }
}

/// Returns white space unchanged, or nothing if it is too long.
fn spaces(space: &str) -> &str {
    if space.len() > LONGEST_SPACE_BYTES { "" } else { space }
}

/// Returns a key as written, without its quotation marks and colon.
fn unquote_key(key: &str) -> &str {
    quoted_key(key).trim_matches('"')
}

/// Returns a key as written, without its colon.
fn quoted_key(key: &str) -> &str {
    key.trim_end_matches([' ', '\n', '\r', '\t', ':'])
}

/// Returns the decoded key, as a JSON Pointer needs it.
fn name(key: &str) -> String {
    string::decode(quoted_key(key)).unwrap_or_else(|| unquote_key(key).to_owned())
}

/// Returns the size to which larger values must be shortened so that all of them fit into `room`.
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
    fn small_values_stay_whole_and_large_ones_share_the_limit() {
        assert_eq!(fair_level(vec![10, 10, 500, 900], 220), 100);
        assert_eq!(fair_level(vec![10, 10], 20), usize::MAX);
        assert_eq!(fair_level(Vec::new(), 0), usize::MAX);
    }

    #[test]
    fn a_member_name_is_decoded_like_a_pointer() {
        for (key, expected) in [(r#""a" :"#, "a"), (r#""a\"/:": "#, "a\"/:"), (r#""a\ud800":"#, "a\u{fffd}")]
        {
            assert_eq!(name(key), expected);
            let json = format!("{{{key} 1}}");
            let pointer = FieldPath::root().key(name(key)).pointer();
            assert_eq!(crate::read::resolve_pointer(&json, &pointer), Ok("1"));
        }
    }
}
