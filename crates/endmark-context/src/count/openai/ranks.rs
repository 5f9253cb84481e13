//! The tokens of a vocabulary with their ranks, as a hash table in flat lists.
//!
//! The lists are built and freed quickly, and they fit into a processor's cache. A map with a separate
//! allocation per token would need three times the memory. Most lookups during merges find no token, and a
//! map would need two memory accesses for each of them.

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;
use foldhash::fast::FixedState;

/// Number of bits for a rank, enough for any vocabulary. The other bits of a slot come from the hash of the
/// token.
const RANK_BITS: u32 = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// This many bytes of the file are decompressed at once.
const DECOMPRESSION_BYTES: usize = 32 * 1024;

/// The value of each base64 digit, and 0 for the padding character. A library call for each of 200,000 tokens
/// would take several times as long.
static BASE64_VALUES: [u8; 256] = {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [0; 256];
    let mut value = 0;
    while value < 64 {
        values[digits[value as usize] as usize] = value;
        value += 1;
    }
    values
};

/// Decodes a token from base64, and appends its bytes.
fn decode_base64(base64: &[u8], bytes: &mut Vec<u8>) {
    for group in base64.chunks(4) {
        let sixes = group
            .iter()
            .fold(0_u32, |sixes, digit| sixes << 6 | u32::from(BASE64_VALUES[usize::from(*digit)]));
        let [_, decoded @ ..] = sixes.to_be_bytes();
        bytes.extend_from_slice(&decoded);
    }
    let padding = base64.iter().rev().take_while(|digit| **digit == b'=').count();
    bytes.truncate(bytes.len() - padding.min(2));
}

/// All tokens by rank. They are built in, so a client cannot choose tokens whose hashes collide.
pub(super) struct TokenRanks {
    /// The bytes of all tokens, one after the other.
    bytes: Vec<u8>,
    /// The start of each token in `bytes`, followed by the end of the last one.
    starts: Vec<u32>,
    /// The hash table. A used slot contains a token's rank plus one and some bits of its hash; 0 is a free
    /// slot. A token is in the first slot that was free at or after the position of its hash.
    slots: Vec<u32>,
}

impl TokenRanks {
    /// Reads the published format, compressed: each line has a token in base64 and its rank, which equals the
    /// line number.
    pub(super) fn read(file: &[u8]) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        let mut file = BufReader::with_capacity(DECOMPRESSION_BYTES, GzDecoder::new(file));
        let mut add = |line: &[u8]| {
            let token = memchr::memchr(b' ', line).unwrap_or(0);
            decode_base64(&line[..token], &mut bytes);
            starts.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        };
        let mut tokens = Vec::new();
        // Reading cannot fail, because the file is part of the program. A test checks the number of tokens.
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
            let (mut place, mark) = ranks.first_slot(ranks.token(rank));
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

    /// Returns the rank of a token. Returns `None` if the bytes are not a token.
    pub(super) fn get(&self, token: &[u8]) -> Option<u32> {
        let (mut place, mark) = self.first_slot(token);
        loop {
            let slot = *self.slots.get(place).filter(|slot| **slot != 0)?;
            let rank = (slot & RANK_MASK) - 1;
            if slot & !RANK_MASK == mark && self.token(rank) == token {
                return Some(rank);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    fn token(&self, rank: u32) -> &[u8] {
        let rank = rank as usize;
        &self.bytes[self.starts[rank] as usize..self.starts[rank + 1] as usize]
    }

    /// Returns the first slot for a token, and the hash bits that its slot contains.
    fn first_slot(&self, token: &[u8]) -> (usize, u32) {
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(token);
        let hash = hasher.finish();
        // Both halves of the hash are truncated on purpose.
        #[expect(clippy::cast_possible_truncation, reason = "only some bits are used")]
        (hash as usize & (self.slots.len() - 1), (hash >> 32) as u32 & !RANK_MASK)
    }
}
