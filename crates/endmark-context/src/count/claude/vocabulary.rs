//! A vocabulary of pieces, and the fewest pieces that make up a stream.

use std::collections::{HashMap, HashSet};

use super::super::shelf::Shelf;
use super::class::{is_mark, literal};

const THREE_FILE: &str = include_str!("../../../data/claude-3.txt");
const FOUR_SEVEN_FILE: &str = include_str!("../../../data/claude-4.7.txt");

/// Vocabulary of Claude 3 to 4.6.
pub(super) static THREE: Shelf<Vocabulary> = Shelf::new(|| Vocabulary::read(THREE_FILE));

/// Vocabulary of Claude 4.7 and later.
pub(super) static FOUR_SEVEN: Shelf<Vocabulary> = Shelf::new(|| Vocabulary::read(FOUR_SEVEN_FILE));

/// First letters with a table of their own, since most pieces begin with one.
const ROOT_LETTERS: usize = 128;

/// A vocabulary that is ready to count.
pub(super) struct Vocabulary {
    /// The nodes of the tree of pieces, each with its first edge and its number of edges.
    nodes: Vec<Node>,
    /// The letters of each node in order, with the nodes that they lead to.
    edges: Vec<(char, u32)>,
    /// The nodes of the most frequent first letters.
    root: [u32; ROOT_LETTERS],
    /// Prefixes of UTF-8 characters that are one token.
    byte_prefixes: HashSet<Vec<u8>>,
    /// A power of two that is greater than the longest piece, in characters.
    ring: usize,
}

#[derive(Clone, Copy, Default)]
struct Node {
    first_edge: u32,
    edges: u32,
    is_piece: bool,
}

impl Vocabulary {
    /// Reads the file format: a description, an empty line, pieces, an empty line, byte prefixes.
    fn read(file: &str) -> Self {
        let mut sections = file.split("\n\n").skip(1);
        let pieces = sections.next().unwrap_or_default().lines().map(unescaped);
        let mut children: Vec<HashMap<char, u32>> = vec![HashMap::new()];
        let (mut is_piece, mut ring) = (vec![false], 2);
        for piece in pieces {
            let mut node = 0;
            ring = ring.max((piece.chars().count() + 1).next_power_of_two());
            for c in piece.chars() {
                let next = u32::try_from(children.len()).unwrap_or(u32::MAX);
                let found = children.get_mut(node).map_or(0, |of| *of.entry(c).or_insert(next));
                if found == next {
                    children.push(HashMap::new());
                    is_piece.push(false);
                }
                node = found as usize;
            }
            if let Some(end) = is_piece.get_mut(node) {
                *end = true;
            }
        }
        let (mut nodes, mut edges) = (Vec::with_capacity(children.len()), Vec::new());
        for (of, is_piece) in children.iter().zip(is_piece) {
            let first_edge = u32::try_from(edges.len()).unwrap_or(u32::MAX);
            let mut own: Vec<(char, u32)> = of.iter().map(|(c, node)| (*c, *node)).collect();
            own.sort_unstable();
            nodes.push(Node { first_edge, edges: u32::try_from(own.len()).unwrap_or(0), is_piece });
            edges.extend(own);
        }
        let mut root = [0; ROOT_LETTERS];
        for (c, node) in children.first().into_iter().flatten() {
            if let Some(place) = root.get_mut(*c as usize) {
                *place = *node;
            }
        }
        let bytes = |hex: &str| {
            let digits = hex.as_bytes().chunks(2);
            digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
        };
        let byte_prefixes = sections.next().unwrap_or_default().lines().map(bytes).collect();
        Self { nodes, edges, root, byte_prefixes, ring }
    }

    /// Returns the node that a letter leads to, or 0 without one. No edge leads back to the root.
    fn step(&self, node: u32, c: char) -> u32 {
        if node == 0
            && let Some(found) = self.root.get(c as usize)
        {
            return *found;
        }
        let Some(of) = self.nodes.get(node as usize) else { return 0 };
        let from = of.first_edge as usize;
        let own = self.edges.get(from..from + of.edges as usize).unwrap_or_default();
        own.binary_search_by_key(&c, |edge| edge.0).ok().and_then(|at| own.get(at)).map_or(0, |edge| edge.1)
    }

    fn is_piece(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.is_piece)
    }

    /// Returns a buffer for the token counts ahead of a place, as far as the longest piece reaches.
    pub(super) fn ring(&self) -> Vec<u64> {
        vec![u64::MAX; self.ring]
    }

    /// Returns the fewest tokens that make up a stretch of a stream. `fewest` is a [`ring`](Self::ring), and is
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

    /// Returns the tokens of a character that is not a piece: 1 for one of our marks, otherwise the fewest pieces of
    /// its bytes.
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

/// Returns a piece of the file with newlines, tabs and backslashes unescaped.
fn unescaped(line: &str) -> String {
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
    piece
}

#[cfg(test)]
mod tests {
    use super::super::class::{BEGIN, CAPITAL, CAPITALS, END};
    use super::*;

    /// This property allows a stream to be counted in stretches.
    #[test]
    fn no_piece_goes_on_behind_a_word_or_holds_a_beginning_that_it_does_not_begin_with() {
        for file in [THREE_FILE, FOUR_SEVEN_FILE] {
            for piece in file.split("\n\n").nth(1).unwrap().lines().map(unescaped) {
                let word = piece.strip_suffix(END).unwrap_or(&piece);
                let word = word.strip_prefix([CAPITAL, CAPITALS]).unwrap_or(word);
                let word = word.strip_prefix(BEGIN).unwrap_or(word);
                assert!(!word.contains([END, BEGIN, CAPITAL, CAPITALS]), "{piece:?}");
            }
        }
    }
}
