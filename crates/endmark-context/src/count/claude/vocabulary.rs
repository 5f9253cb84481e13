//! A vocabulary of pieces. It computes the smallest number of pieces that form a stream.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use super::super::shelf::VocabularyCache;
use super::class::{is_mark, unescape_mark};

const CLAUDE_3_FILE: &str = include_str!("../../../data/claude-3.txt");
const CLAUDE_4_7_FILE: &str = include_str!("../../../data/claude-4.7.txt");

/// The vocabulary of Claude 3 to 4.6.
pub(super) static CLAUDE_3: VocabularyCache<Vocabulary> =
    VocabularyCache::new(|| Vocabulary::read(CLAUDE_3_FILE));

/// The vocabulary of Claude 4.7 and later.
pub(super) static CLAUDE_4_7: VocabularyCache<Vocabulary> =
    VocabularyCache::new(|| Vocabulary::read(CLAUDE_4_7_FILE));

/// The root has a direct table for this many characters, because most pieces begin with one of them.
const ROOT_TABLE_SIZE: usize = 128;

/// A vocabulary as a tree of characters (trie).
pub(super) struct Vocabulary {
    /// The nodes of the tree, level by level. An additional node at the end bounds the letters of the last
    /// one.
    nodes: Vec<TrieNode>,
    /// The letters of all nodes, in order. The letter at index `i` leads to node `i + 1`.
    letters: Vec<char>,
    /// For each of the first characters, the node that it leads to from the root.
    root: [usize; ROOT_TABLE_SIZE],
    /// Beginnings of UTF-8 characters that are one token.
    byte_prefixes: HashSet<Vec<u8>>,
    /// Size of the buffer from [`ring`](Self::ring): a power of two above the length of the longest piece in
    /// characters.
    ring: usize,
}

struct TrieNode {
    /// Index of the node's first letter. Its letters end before the first letter of the next node.
    first_letter: u32,
    is_piece: bool,
}

impl Vocabulary {
    /// Parses a vocabulary file: a description, an empty line, the pieces, an empty line, and the byte
    /// prefixes.
    fn read(file: &str) -> Self {
        let mut sections = file.split("\n\n").skip(1);
        let mut pieces: Vec<Cow<'_, str>> =
            sections.next().unwrap_or_default().lines().map(unescape_piece).collect();
        // After sorting, pieces with the same beginning are neighbours. Nearly all of them already are in the
        // file.
        pieces.sort();
        let longest = pieces.iter().map(|piece| piece.chars().count()).max().unwrap_or(1);
        let (mut nodes, mut letters) = (Vec::new(), Vec::new());
        // For each node that is still to be written: its pieces, and the length in bytes of their common
        // beginning.
        let mut pending_nodes = VecDeque::from([(pieces.as_slice(), 0)]);
        while let Some((mut pieces, length)) = pending_nodes.pop_front() {
            let next = |piece: &Cow<'_, str>| piece.get(length..).and_then(|rest| rest.chars().next());
            let is_piece = pieces.first().is_some_and(|piece| next(piece).is_none());
            nodes.push(TrieNode { first_letter: as_u32(letters.len()), is_piece });
            while let Some(piece) = pieces.first() {
                let letter = next(piece);
                let (own, others) = pieces.split_at(pieces.partition_point(|piece| next(piece) <= letter));
                if let Some(letter) = letter {
                    letters.push(letter);
                    pending_nodes.push_back((own, length + letter.len_utf8()));
                }
                pieces = others;
            }
        }
        nodes.push(TrieNode { first_letter: as_u32(letters.len()), is_piece: false });
        let mut root = [0; ROOT_TABLE_SIZE];
        let of_root = nodes.get(1).map_or(0, |second| second.first_letter as usize);
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

    /// Returns the node that a letter leads to, or 0 if the letter leads to no node. No letter leads back to
    /// the root, so 0 is unambiguous.
    fn next_node(&self, node: usize, c: char) -> usize {
        if node == 0
            && let Some(found) = self.root.get(c as usize)
        {
            return *found;
        }
        let Some([own, next]) = self.nodes.get(node..node + 2) else { return 0 };
        let first = own.first_letter as usize;
        let letters = self.letters.get(first..next.first_letter as usize).unwrap_or_default();
        letters.binary_search(&c).map_or(0, |at| first + at + 1)
    }

    fn is_piece(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.is_piece)
    }

    /// Returns a ring buffer for the token counts at the next positions. It is longer than any piece.
    pub(super) fn new_buffer(&self) -> Vec<u64> {
        vec![u64::MAX; self.ring]
    }

    /// Returns the smallest number of tokens that form a stretch of the stream. `fewest` is a buffer from
    /// [`ring`](Self::ring); the function leaves it unchanged.
    pub(super) fn fewest_tokens(&self, stretch: &str, fewest: &mut [u64]) -> u64 {
        let last = fewest.len() - 1;
        let mut so_far = 0;
        for (at, (from, c)) in stretch.char_indices().enumerate() {
            let mut reach = |to: usize, tokens: u64| fewest[to & last] = fewest[to & last].min(tokens);
            let mut node = self.next_node(0, c);
            reach(at + 1, so_far + if self.is_piece(node) { 1 } else { self.tokens_of_char(c) });
            let behind = stretch.get(from + c.len_utf8()..).unwrap_or_default();
            for (to, c) in behind.chars().enumerate() {
                if node == 0 {
                    break;
                }
                node = self.next_node(node, c);
                if self.is_piece(node) {
                    reach(at + 2 + to, so_far + 1);
                }
            }
            so_far = std::mem::replace(&mut fewest[(at + 1) & last], u64::MAX);
        }
        so_far
    }

    /// Returns the number of tokens for a character that is not a piece: 1 for one of our marks, otherwise
    /// the smallest number of tokens that form its bytes.
    fn tokens_of_char(&self, c: char) -> u64 {
        if is_mark(c) {
            return 1;
        }
        let c = unescape_mark(c);
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

fn as_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Reverses the escapes of newlines, tabs and backslashes in a piece.
fn unescape_piece(line: &str) -> Cow<'_, str> {
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
    use super::super::class::{CAPITAL, CAPITALS, WORD_END, WORD_START};
    use super::*;

    /// Because of this, the stretches of a stream can be counted separately.
    #[test]
    fn word_markers_occur_only_at_the_ends_of_pieces() {
        for file in [CLAUDE_3_FILE, CLAUDE_4_7_FILE] {
            for piece in file.split("\n\n").nth(1).unwrap().lines().map(unescape_piece) {
                let word = piece.strip_suffix(WORD_END).unwrap_or(&piece);
                let word = word.strip_prefix([CAPITAL, CAPITALS]).unwrap_or(word);
                let word = word.strip_prefix(WORD_START).unwrap_or(word);
                assert!(!word.contains([WORD_END, WORD_START, CAPITAL, CAPITALS]), "{piece:?}");
            }
        }
    }
}
