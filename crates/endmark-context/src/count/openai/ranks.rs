//! The tokens of a vocabulary by their bytes.
//!
//! The table consists of flat lists: it is read and dropped quickly, and fits into a processor's cache. A map of boxes
//! would need three times the memory. Most lookups of a merge find no token, and a map would need two memory accesses
//! for each of them.

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;
use foldhash::fast::FixedState;

/// Bits of a rank, enough for any vocabulary. The other bits of a slot come from the token's hash.
const INDEX_BITS: u32 = 18;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Number of bytes of the file that are decompressed at once.
const READ_BYTES: usize = 32 * 1024;

/// The value of each base64 digit; 0 for the padding sign. Calling a library for each of 200,000 tokens would take
/// several times as long.
static SIX_BITS: [u8; 256] = {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [0; 256];
    let mut value = 0;
    while value < 64 {
        values[digits[value as usize] as usize] = value;
        value += 1;
    }
    values
};

/// Appends the bytes of a token in base64.
fn decode(base64: &[u8], bytes: &mut Vec<u8>) {
    for group in base64.chunks(4) {
        let sixes =
            group.iter().fold(0_u32, |sixes, digit| sixes << 6 | u32::from(SIX_BITS[usize::from(*digit)]));
        let [_, decoded @ ..] = sixes.to_be_bytes();
        bytes.extend_from_slice(&decoded);
    }
    let padding = base64.iter().rev().take_while(|digit| **digit == b'=').count();
    bytes.truncate(bytes.len() - padding.min(2));
}

/// Tokens in merge order. They are all built in, so a client cannot choose tokens whose hashes collide.
pub(super) struct Ranks {
    /// The bytes of all tokens, one after another.
    bytes: Vec<u8>,
    /// Begin of each token, and the end of the last one.
    starts: Vec<u32>,
    /// A token's rank plus one, and bits of its hash, in the first free slot from the position of its hash. 0 is a free
    /// slot.
    slots: Vec<u32>,
}

impl Ranks {
    /// Reads the compressed published format: on each line a token in base64 and its rank. The rank is the line number.
    pub(super) fn read(file: &[u8]) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        let mut file = BufReader::with_capacity(READ_BYTES, GzDecoder::new(file));
        let mut add = |line: &[u8]| {
            let token = memchr::memchr(b' ', line).unwrap_or(0);
            decode(&line[..token], &mut bytes);
            starts.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        };
        let mut tokens = Vec::new();
        // Reading cannot fail, because the file is part of the program. A test counts its tokens.
        while let Ok(read) = file.fill_buf()
            && !read.is_empty()
        {
            let mut rest = read;
            while let Some(end) = memchr::memchr(b'\n', rest) {
                if tokens.is_empty() {
                    add(&rest[..end]);
                } else {
                    tokens.extend_from_slice(&rest[..end]);
                    add(&tokens);
                    tokens.clear();
                }
                rest = &rest[end + 1..];
            }
            tokens.extend_from_slice(rest);
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

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).unwrap_or(u32::MAX)
    }

    /// Returns the rank of a token.
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

    /// Returns the position of a token's hash, and the bits of the hash in its slot.
    fn place(&self, token: &[u8]) -> (usize, u32) {
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(token);
        let hash = hasher.finish();
        // Both halves are truncated on purpose.
        #[expect(clippy::cast_possible_truncation, reason = "only some bits are used")]
        (hash as usize & (self.slots.len() - 1), (hash >> 32) as u32 & !INDEX_MASK)
    }
}
