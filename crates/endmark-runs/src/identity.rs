//! Creates ids of runs and names of agents' sessions.

use std::fs::File;
use std::io::{self, Read};

/// Returns the id of a new run: `run_` and twelve random hexadecimal digits.
pub fn run_id() -> io::Result<String> {
    let hex = hex(random_bytes()?);
    Ok(format!("run_{}", &hex[..12]))
}

/// Returns a random UUID (version 4). Agents accept it as the name of a session.
pub fn session_id() -> io::Result<String> {
    let mut bytes = random_bytes()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(bytes);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

fn hex(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_a_unique_uuid() {
        let (first, second) = (session_id().unwrap(), session_id().unwrap());
        assert_ne!(first, second);
        let parts: Vec<usize> = first.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(first.as_bytes()[14], b'4');
        assert!("89ab".contains(char::from(first.as_bytes()[19])));
        assert_eq!(run_id().unwrap().len(), 16);
    }
}
