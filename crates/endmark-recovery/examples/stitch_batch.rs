//! Runs `stitch --batch` without the rest of the command, for `bench/recovery`: JSON Lines in, JSON Lines
//! out.
//!
//!     cargo build --release -p endmark-recovery --example stitch_batch
//!     python3 bench/recovery/run.py --command target/release/examples/stitch_batch

use std::error::Error;
use std::io::{self, BufRead as _, BufWriter, Write as _};

use endmark_recovery::stitch::{AskedFrom, stitch};
use endmark_text::Format;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let answered = answer(&serde_json::from_str(&line?)?)?;
        writeln!(output, "{answered}")?;
        output.flush()?;
    }
    Ok(())
}

/// Returns the result for one line of a batch.
fn answer(request: &Value) -> Result<Value, Box<dyn Error>> {
    let word = |name: &str| request[name].as_str();
    let format = Format::parse(word("format").unwrap_or("auto"), word("marker"))?;
    let from =
        AskedFrom::parse(word("from").unwrap_or("unknown")).ok_or("`from` is cut, token or unknown")?;
    let chunks: Vec<String> = serde_json::from_value(request["chunks"].clone())?;
    let stitched = stitch(&chunks, &format, from);
    let seams: Vec<Value> = stitched
        .seams
        .iter()
        .map(|seam| {
            json!({
                "at": seam.at, "style": seam.style.name(), "dropped_bytes": seam.dropped_bytes,
                "confidence": seam.confidence, "alternatives": seam.alternatives,
            })
        })
        .collect();
    let error = stitched.error.map(|error| json!({ "code": error.code, "message": error.message }));
    Ok(json!({
        "id": request["id"], "outcome": stitched.outcome.name(), "text": stitched.text, "seams": seams, "error": error,
    }))
}
