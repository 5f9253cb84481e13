//! Prints the speed tables of `bench/FIGURES.md`.
//!
//! `cargo run --release --package speed -- [ROUNDS]` prints all tables. `-- seams [ROUNDS] [PART OF A NAME]`
//! prints only the tables of stitching. `-- once LENGTH NAME` stitches each cut whose name contains NAME
//! once. It is for a profiler that counts instructions: `valgrind --tool=callgrind
//! --toggle-collect='*Cut*stitch*' target/release/speed once 2000000 'code, end, fence'`.

use cpu_time::ThreadTime;
use speed::detection::{actson_in_chunks, endmark, endmark_in_chunks, jiter_partial, serde_json_ignored};
use speed::documents::{MEGABYTE, code_strings, small_objects};
use speed::stitching::{Cut, cuts};
use speed::turns::{Contender, Measured, measure};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map_or("", String::as_str);
    let number = |index: usize, usual: usize| argument(index).parse().unwrap_or(usual);
    match argument(0) {
        "seams" => seams(number(1, 20), argument(2)),
        "once" => cuts(number(1, 200_000), argument(2)).for_each(|cut| {
            cut.warm_up();
            cut.stitch();
        }),
        _ => {
            let rounds = number(0, 15);
            detection(rounds);
            chunks(rounds);
            seams(rounds, "");
        }
    }
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

/// Prints the CPU time of the fastest round of each cut, which does not include waiting for other programs.
/// Also prints how much the time grows if the text is ten times as long.
fn seams(rounds: usize, part_of_name: &str) {
    println!("Stitching, the fastest round, in ms\n");
    println!("| what | 200 kB | 2 MB | 20 MB | growth to 2 MB | to 20 MB |\n|---|---|---|---|---|---|");
    let [short, longer, long] = [(200_000, rounds), (2 * MEGABYTE, rounds / 4), (20 * MEGABYTE, rounds / 10)]
        .map(|(length, rounds)| cuts(length, part_of_name).map(move |cut| (fastest(&cut, rounds), cut.name)));
    for (((short, name), (longer, _)), (long, _)) in short.zip(longer).zip(long) {
        let growth = [longer / short, long / longer];
        println!("| {name} | {short:.2} | {longer:.1} | {long:.0} | {:.1} | {:.1} |", growth[0], growth[1]);
    }
    println!();
}

/// Returns the CPU time of the fastest round in milliseconds.
fn fastest(cut: &Cut, rounds: usize) -> f64 {
    let time = || {
        let started = ThreadTime::now();
        cut.stitch();
        started.elapsed().as_secs_f64() * 1e3
    };
    (0..=rounds).map(|_| time()).fold(f64::INFINITY, f64::min)
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
