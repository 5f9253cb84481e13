//! Prints the tables of `docs/figures.md` that speak of speed.
//!
//! `cargo run --release --package speed -- [ROUNDS]`

use std::time::Instant;

use speed::detection::{actson_in_chunks, endmark, endmark_in_chunks, jiter_partial, serde_json_ignored};
use speed::documents::{MEGABYTE, code_strings, small_objects};
use speed::stitching::cuts;
use speed::turns::{Contender, Measured, measure};

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(15);
    detection(rounds);
    chunks(rounds);
    seams(rounds);
}

fn detection(rounds: usize) {
    println!("JSON of 10 MB in one piece\n");
    for (what, document) in
        [("code strings", code_strings(10 * MEGABYTE)), ("small objects", small_objects(10 * MEGABYTE))]
    {
        let contenders = [
            Contender { name: "endmark", run: &|| endmark(&document) },
            Contender { name: "serde_json IgnoredAny", run: &|| serde_json_ignored(&document) },
            Contender { name: "jiter, partial", run: &|| jiter_partial(&document) },
            Contender { name: "actson", run: &|| actson_in_chunks(&document, 64_000) },
        ];
        table(what, document.len(), &measure(&contenders, rounds));
    }
}

fn chunks(rounds: usize) {
    println!("JSON in chunks of 16 bytes\n");
    for (what, make) in
        [("code strings", code_strings as fn(usize) -> Vec<u8>), ("small objects", small_objects)]
    {
        for size in [1, 2, 4] {
            let document = make(size * MEGABYTE);
            let contenders = [
                Contender { name: "endmark", run: &|| endmark_in_chunks(&document, 16) },
                Contender { name: "actson", run: &|| actson_in_chunks(&document, 16) },
            ];
            table(&format!("{what}, {size} MB"), document.len(), &measure(&contenders, rounds));
        }
    }
}

/// Each cut by itself: its median and its fastest round, and for how long a text the time grows as the text does.
fn seams(rounds: usize) {
    println!("Stitching, in ms: median (fastest)\n\n| what | 200 kB | 2 MB | 20 MB |\n|---|---|---|---|");
    let sizes = [(200_000, rounds), (2 * MEGABYTE, 3), (20 * MEGABYTE, 1)];
    let all = sizes.map(|(length, rounds)| -> Vec<(String, String)> {
        cuts(length)
            .into_iter()
            .map(|cut| {
                let mut times: Vec<f64> = (0..rounds)
                    .map(|_| {
                        let begun = Instant::now();
                        cut.stitch();
                        begun.elapsed().as_secs_f64() * 1e3
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                (cut.name, format!("{:.1} ({:.1})", times[times.len() / 2], times[0]))
            })
            .collect()
    });
    for (index, (name, time)) in all[0].iter().enumerate() {
        println!("| {name} | {time} | {} | {} |", all[1][index].1, all[2][index].1);
    }
    println!();
}

fn table(what: &str, bytes: usize, measured: &[Measured]) {
    println!("| {what} | ms | MB/s | times as long as endmark (middle half) |\n|---|---|---|---|");
    for Measured { name, time, ratio } in measured {
        let seconds = time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "no document is that long")]
        let speed = bytes as f64 / 1e6 / seconds;
        println!(
            "| {name} | {:.2} | {speed:.0} | {:.2} ({:.2} to {:.2}) |",
            seconds * 1e3,
            ratio[1],
            ratio[0],
            ratio[2]
        );
    }
    println!();
}
