//! Prints the shortest duration of many calls of `detect` for a file. `bench/speed/python.py` compares the
//! Python package with it.
//!
//! `cargo run --release --example detect_speed -- FILE` prints nanoseconds.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Number of timed calls, the same as in `python.py`.
const CALLS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("usage: detect_speed FILE")?;
    let raw = fs::read(file)?;
    let mut shortest = Duration::MAX;
    for _ in 0..CALLS {
        let started = Instant::now();
        black_box(endmark::detect(black_box(&raw), &endmark::Format::Json));
        shortest = shortest.min(started.elapsed());
    }
    println!("{}", shortest.as_nanos());
    Ok(())
}
