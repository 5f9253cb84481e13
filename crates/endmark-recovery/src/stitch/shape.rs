//! The shape of a document in JSON: which keys an object has had, how many values an array, and whether its
//! neighbours had the same. A seam that gives an object a key twice, or a row another length than all rows before
//! it, is a bad one.

use memchr::memchr2;

/// An object with a key twice is so unlikely, in bits.
const KEY_TWICE: f64 = 10.0;
/// At most so many bytes behind a seam are looked at.
const REACH: usize = 8_192;
/// Of a string so much is read, in bytes: no key is longer.
const LONGEST_KEY: usize = 256;
/// At most so many keys of one object are remembered.
const MOST_KEYS: usize = 4_096;

/// An open object or array.
#[derive(Debug, Clone, Default)]
struct Container {
    is_object: bool,
    /// The keys so far.
    keys: Vec<u64>,
    /// A number for the keys in their order.
    order: u64,
    /// How many values it has so far.
    values: u32,
    /// How many values inside it were objects or arrays of the same shape as the one before, and how many not.
    alike: u32,
    unlike: u32,
    last_shape: Option<u64>,
    /// Whether it was open at the seam.
    at_seam: bool,
}

/// A walk through a document that can be cloned where it is cut.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    open: Vec<Container>,
    /// Shapes by depth, for those without a neighbour: the last, and how often it came again or did not.
    by_depth: Vec<Option<(u64, u32, u32)>>,
    in_string: bool,
    escaped: bool,
    /// A number for the string so far, as far as a key reaches, and its length in bytes.
    string: u64,
    string_length: usize,
    in_word: bool,
    last_string: Option<u64>,
    /// What speaks against the seam, in bits.
    cost: f64,
}

impl Shape {
    /// Walks on.
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some((byte, behind)) = rest.split_first() {
            self.step(*byte);
            rest = behind;
            if self.in_string && !self.escaped && self.string_length >= LONGEST_KEY {
                let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.string_length += plain;
                rest = &rest[plain..];
            }
        }
    }

    /// What the part behind a seam says against it, in bits.
    pub(super) fn cost_of(&self, part: &str) -> f64 {
        let mut walk = self.clone();
        walk.cost = 0.0;
        for container in &mut walk.open {
            container.at_seam = true;
        }
        for byte in part.bytes().take(REACH) {
            walk.step(byte);
            if walk.open.len() + 2 < self.open.len() || walk.open.is_empty() {
                break;
            }
        }
        walk.cost
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.last_string = Some(self.string);
                    return;
                }
                _ => {}
            }
            if self.string_length < LONGEST_KEY {
                self.string = mix(self.string, u64::from(byte));
            }
            self.string_length += 1;
            return;
        }
        let in_word = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        if in_word && !self.in_word {
            self.value();
        }
        self.in_word = in_word;
        match byte {
            b'"' => {
                self.in_string = true;
                (self.string, self.string_length) = (0, 0);
                self.value();
            }
            b':' => self.key(),
            b'{' | b'[' => {
                self.value();
                self.open.push(Container { is_object: byte == b'{', ..Container::default() });
            }
            b'}' | b']' => self.close(),
            _ => {}
        }
    }

    /// A value begins, or, in an object, perhaps a key.
    fn value(&mut self) {
        if let Some(container) = self.open.last_mut()
            && !container.is_object
        {
            container.values += 1;
        }
    }

    fn key(&mut self) {
        let (Some(container), Some(key)) = (self.open.last_mut(), self.last_string) else { return };
        if container.at_seam && container.keys.contains(&key) {
            self.cost += KEY_TWICE;
        }
        container.order = mix(container.order, key);
        container.values += 1;
        if container.keys.len() < MOST_KEYS {
            container.keys.push(key);
        }
    }

    fn close(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        let depth = self.open.len();
        let shape = if closed.is_object { closed.order } else { mix(1, u64::from(closed.values)) };
        if self.by_depth.len() <= depth {
            self.by_depth.resize(depth + 1, None);
        }
        let cousins = self.by_depth[depth];
        let neighbours =
            self.open.last().and_then(|parent| Some((parent.last_shape?, parent.alike, parent.unlike)));
        if closed.at_seam
            && let Some((last, alike, unlike)) = neighbours.or(cousins)
        {
            let (these, others) = if last == shape { (alike, unlike) } else { (unlike, alike) };
            let all = f64::from(these) + f64::from(others);
            self.cost -= ((f64::from(these) + 0.5) / (all + 1.0)).log2();
        }
        let count = |(last, alike, unlike): (u64, u32, u32)| {
            if last == shape { (shape, alike + 1, unlike) } else { (shape, alike, unlike + 1) }
        };
        self.by_depth[depth] = Some(cousins.map_or((shape, 0, 0), count));
        if let Some(parent) = self.open.last_mut() {
            let counted = parent.last_shape.map(|last| count((last, parent.alike, parent.unlike)));
            let (last, alike, unlike) = counted.unwrap_or((shape, 0, 0));
            (parent.last_shape, parent.alike, parent.unlike) = (Some(last), alike, unlike);
        }
    }
}

/// Whether the first whole row that another text begins with has the keys of the last whole row of this one.
pub(super) fn has_rows_like(rows: &str, others: &str) -> bool {
    let keys = |row: &str| {
        let mut shape = Shape::default();
        shape.push("[");
        shape.push(row);
        let is_whole = row.trim_start().starts_with('{') && shape.open.len() == 1;
        shape.open.first().filter(|_| is_whole).and_then(|rows| rows.last_shape)
    };
    let last = rows.lines().rev().find_map(keys);
    last.is_some() && last == others.trim_start().lines().next().and_then(keys)
}

fn mix(sum: u64, next: u64) -> u64 {
    (sum ^ next.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
}

#[cfg(test)]
mod tests {
    use super::Shape;

    fn cost(initial: &str, part: &str) -> f64 {
        let mut shape = Shape::default();
        shape.push(initial);
        shape.cost_of(part)
    }

    #[test]
    fn a_key_twice_speaks_against_a_seam() {
        assert!(cost(r#"{"a": 1, "b": 2, "#, r#""b": 2, "c": 3}"#) > 9.0);
        assert!(cost(r#"{"a": 1, "b": 2, "#, r#""c": 3}"#) < 2.0);
        assert!(cost(r#"[{"a": 1, "b": 2}, "#, r#"{"a": 1}]"#) < 2.0, "another object may have it");
    }

    #[test]
    fn so_does_a_row_of_another_length() {
        let rows = "[[1, 2, 3], [4, 5, 6], [1, 2, 9], [7, 8, 9], [1, 2, 3], [1, ";
        assert!(cost(rows, "2, 2, 3]]") - cost(rows, "2, 3]]") > 2.0);
        assert!(
            cost("[[1], [1, 2, 3], [], [1, ", "2, 2, 3]]") < 3.0,
            "unless they are all of different length"
        );
    }
}
