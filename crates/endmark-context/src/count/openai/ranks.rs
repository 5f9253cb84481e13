//! The tokens of a vocabulary by their bytes: a table in four flat lists, which is read and dropped in a moment, and fits
//! into a processor's cache. A map of boxes has three times the memory, and searches for a text that is no token, as most
//! are that merging tries, go to two places in it.

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;
use foldhash::fast::FixedState;

/// More tokens than any vocabulary has, in bits; the other bits of a slot are bits of the token's hash.
const INDEX_BITS: u32 = 18;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Bytes of the file that are unpacked at once.
const READ_BYTES: usize = 32 * 1024;

/// What a digit of base64 stands for. A library that is called for each of 200,000 tokens takes several times as long.
fn six_bits(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Tokens in the order in which they are merged. None comes from outside, so nobody can choose them to collide.
pub(super) struct Ranks {
    /// All tokens, one after the other.
    bytes: Vec<u8>,
    /// Where each begins, and where the last one ends.
    starts: Vec<u32>,
    /// A token's rank plus one and bits of its hash, at the first free place from the one that its hash names; 0 is free.
    slots: Vec<u32>,
}

impl Ranks {
    /// Reads the published form, compressed: a token in base64 and its rank on each line. The ranks are those of the lines.
    pub(super) fn read(file: &[u8]) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        let (mut sixes, mut bits, mut is_token) = (0_u32, 0, true);
        let mut file = BufReader::with_capacity(READ_BYTES, GzDecoder::new(file));
        // It is a part of the program; the tests count its tokens.
        while let Ok(read) = file.fill_buf()
            && !read.is_empty()
        {
            for byte in read {
                match byte {
                    b'\n' => (bits, is_token) = (0, true),
                    b' ' => {
                        is_token = false;
                        starts.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
                    }
                    _ if !is_token => {}
                    _ => {
                        let Some(six) = six_bits(*byte) else { continue };
                        (sixes, bits) = (sixes << 6 | u32::from(six), bits + 6);
                        if bits >= 8 {
                            bits -= 8;
                            bytes.extend((sixes >> bits).to_le_bytes().first());
                        }
                    }
                }
            }
            let length = read.len();
            file.consume(length);
        }
        let mut ranks = Self { bytes, slots: vec![0; (starts.len() * 2).next_power_of_two()], starts };
        for rank in 0..ranks.len() {
            let (mut place, mark) = ranks.place(ranks.token(rank));
            while ranks.slots[place] != 0 {
                place = (place + 1) & (ranks.slots.len() - 1);
            }
            ranks.slots[place] = mark | (rank + 1);
        }
        ranks
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).unwrap_or(u32::MAX)
    }

    /// The rank of a token.
    pub(super) fn get(&self, token: &[u8]) -> Option<u32> {
        let (mut place, mark) = self.place(token);
        loop {
            let slot = *self.slots.get(place).filter(|slot| **slot != 0)?;
            let rank = (slot & INDEX_MASK) - 1;
            if slot & !INDEX_MASK == mark && self.token(rank) == token {
                return Some(rank);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    fn token(&self, rank: u32) -> &[u8] {
        let rank = rank as usize;
        &self.bytes[self.starts[rank] as usize..self.starts[rank + 1] as usize]
    }

    /// The place that the hash of a token names, and bits of it that stand in the slot.
    fn place(&self, token: &[u8]) -> (usize, u32) {
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(token);
        let hash = hasher.finish();
        // Both halves are cut on purpose.
        #[expect(clippy::cast_possible_truncation, reason = "only some bits are used")]
        (hash as usize & (self.slots.len() - 1), (hash >> 32) as u32 & !INDEX_MASK)
    }
}
