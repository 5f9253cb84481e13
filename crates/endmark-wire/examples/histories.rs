//! Prints N realistic agent conversations in each wire format, one per line, after the name of the format:
//! `histories 100 | …`. The compaction tests use the same conversations.

#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it is part of a test, which fails by panicking"
)]
#[path = "../tests/compaction/history.rs"]
mod history;

use std::io::{BufWriter, Write as _, stdout};

use endmark_wire::format::FORMATS;
use serde_json::value::RawValue;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).ok_or("say how many conversations of each format")?.parse()?;
    let mut lines = BufWriter::new(stdout().lock());
    for seed in 0..count {
        for format in FORMATS {
            let request = RawValue::from_string(history::body(format.name(), seed))?;
            writeln!(lines, r#"{{"for":"{}","request":{request}}}"#, format.name())?;
        }
    }
    Ok(lines.flush()?)
}
