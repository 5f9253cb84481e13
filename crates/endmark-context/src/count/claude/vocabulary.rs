//! A vocabulary of pieces, and the fewest pieces that make up a stream.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use super::super::shelf::Shelf;
use super::class::{is_mark, literal};

const THREE_FILE: &str = include_str!("../../../data/claude-3.txt");
const FOUR_SEVEN_FILE: &str = include_str!("../../../data/claude-4.7.txt");

/// Vocabulary of Claude 3 to 4.6.
pub(super) static THREE: Shelf<Vocabulary> = Shelf::new(|| Vocabulary::read(THREE_FILE));

/// Vocabulary of Claude 4.7 and later.
pub(super) static FOUR_SEVEN: Shelf<Vocabulary> = Shelf::new(|| Vocabulary::read(FOUR_SEVEN_FILE));

/// First letters with a direct table, because most pieces begin with one of them.
const ROOT_LETTERS: usize = 128;

/// A vocabulary that is ready to count.
pub(super) struct Vocabulary {
    /// The nodes of the tree of pieces, level by level, and one more that ends the letters of the last.
    nodes: Vec<Node>,
    /// The letters of each node, in order. The letter at `i` leads to node `i + 1`.
    letters: Vec<char>,
    /// The nodes of the most frequent first letters.
    root: [usize; ROOT_LETTERS],
    /// Prefixes of UTF-8 characters that are one token.
    byte_prefixes: HashSet<Vec<u8>>,
    /// A power of two that is greater than the longest piece, in characters.
    ring: usize,
}

struct Node {
    /// Index of the first letter that leads on from it. Its letters end at the first one of the next node.
    first: u32,
    is_piece: bool,
}

impl Vocabulary {
    /// Reads the file format: a description, an empty line, pieces, an empty line, byte prefixes.
    fn read(file: &str) -> Self {
        let mut sections = file.split("\n\n").skip(1);
        let mut pieces: Vec<Cow<'_, str>> =
            sections.next().unwrap_or_default().lines().map(unescape).collect();
        // Pieces that begin alike are then neighbours. Nearly all are in order in the file.
        pieces.sort();
        let longest = pieces.iter().map(|piece| piece.chars().count()).max().unwrap_or(1);
        let (mut nodes, mut letters) = (Vec::new(), Vec::new());
        // The pieces under each node in the order of the nodes, and the length in bytes of the beginning they share.
        let mut under = VecDeque::from([(pieces.as_slice(), 0)]);
        while let Some((mut pieces, length)) = under.pop_front() {
            let next = |piece: &Cow<'_, str>| piece.get(length..).and_then(|rest| rest.chars().next());
            let is_piece = pieces.first().is_some_and(|piece| next(piece).is_none());
            nodes.push(Node { first: index(letters.len()), is_piece });
            while let Some(piece) = pieces.first() {
                let letter = next(piece);
                let (own, others) = pieces.split_at(pieces.partition_point(|piece| next(piece) <= letter));
                if let Some(letter) = letter {
                    letters.push(letter);
                    under.push_back((own, length + letter.len_utf8()));
                }
                pieces = others;
            }
        }
        nodes.push(Node { first: index(letters.len()), is_piece: false });
        let mut root = [0; ROOT_LETTERS];
        let of_root = nodes.get(1).map_or(0, |second| second.first as usize);
        for (at, letter) in letters.iter().enumerate().take(of_root) {
            if let Some(place) = root.get_mut(*letter as usize) {
                *place = at + 1;
            }
        }
        let bytes = |hex: &str| {
            let digits = hex.as_bytes().chunks(2);
            digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
        };
        let byte_prefixes = sections.next().unwrap_or_default().lines().map(bytes).collect();
        Self { nodes, letters, root, byte_prefixes, ring: (longest + 1).next_power_of_two() }
    }

    /// Returns the node that a letter leads to, or 0 without one. No letter leads back to the root.
    fn step(&self, node: usize, c: char) -> usize {
        if node == 0
            && let Some(found) = self.root.get(c as usize)
        {
            return *found;
        }
        let Some([own, next]) = self.nodes.get(node..node + 2) else { return 0 };
        let first = own.first as usize;
        let letters = self.letters.get(first..next.first as usize).unwrap_or_default();
        letters.binary_search(&c).map_or(0, |at| first + at + 1)
    }

    fn is_piece(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.is_piece)
    }

    /// Returns a buffer for the token counts ahead of a position, as far as the longest piece reaches.
    pub(super) fn ring(&self) -> Vec<u64> {
        vec![u64::MAX; self.ring]
    }

    /// Returns the smallest number of tokens that form a stretch of the stream. `fewest` is a [`ring`](Self::ring), and is
    /// unchanged afterwards.
    pub(super) fn tokens(&self, stretch: &str, fewest: &mut [u64]) -> u64 {
        let last = fewest.len() - 1;
        let mut so_far = 0;
        for (at, (from, c)) in stretch.char_indices().enumerate() {
            let mut reach = |to: usize, tokens: u64| fewest[to & last] = fewest[to & last].min(tokens);
            let mut node = self.step(0, c);
            reach(at + 1, so_far + if self.is_piece(node) { 1 } else { self.alone(c) });
            let behind = stretch.get(from + c.len_utf8()..).unwrap_or_default();
            for (to, c) in behind.chars().enumerate() {
                if node == 0 {
                    break;
                }
                node = self.step(node, c);
                if self.is_piece(node) {
                    reach(at + 2 + to, so_far + 1);
                }
            }
            so_far = std::mem::replace(&mut fewest[(at + 1) & last], u64::MAX);
        }
        so_far
    }

    /// Returns the tokens of a character that is not a piece: 1 for one of our marks, otherwise the smallest number of
    /// pieces of its bytes.
    fn alone(&self, c: char) -> u64 {
        if is_mark(c) {
            return 1;
        }
        let c = literal(c);
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        let mut fewest = [u64::MAX; 5];
        fewest[0] = 0;
        for to in 1..=bytes.len() {
            for from in 0..to {
                let is_token = to - from == 1 || self.byte_prefixes.contains(&bytes[from..to]);
                if is_token && fewest[from] != u64::MAX {
                    fewest[to] = fewest[to].min(fewest[from] + 1);
                }
            }
        }
        fewest[bytes.len()]
    }
}

fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Returns a piece of the file with newlines, tabs and backslashes unescaped.
fn unescape(line: &str) -> Cow<'_, str> {
    if !line.contains('\\') {
        return Cow::Borrowed(line);
    }
    let mut piece = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        piece.push(match c {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    Cow::Owned(piece)
}

#[cfg(test)]
mod tests {
    use super::super::class::{CAPITAL, CAPITALS, END, WORD_START};
    use super::*;

    /// Because of this property a stream can be counted in stretches.
    #[test]
    fn word_markers_occur_only_at_the_ends_of_pieces() {
        for file in [THREE_FILE, FOUR_SEVEN_FILE] {
            for piece in file.split("\n\n").nth(1).unwrap().lines().map(unescape) {
                let word = piece.strip_suffix(END).unwrap_or(&piece);
                let word = word.strip_prefix([CAPITAL, CAPITALS]).unwrap_or(word);
                let word = word.strip_prefix(WORD_START).unwrap_or(word);
                assert!(!word.contains([END, WORD_START, CAPITAL, CAPITALS]), "{piece:?}");
            }
        }
    }
}
