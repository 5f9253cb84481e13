//! Criterion benchmark of detection, compared with other parsers on the same bytes.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use speed::detection::{actson_in_chunks, endmark, endmark_in_chunks, jiter_partial, serde_json_ignored};
use speed::documents::{MEGABYTE, code_strings, small_objects};

type Reader = fn(&[u8]);

fn detect_in_one_piece(criterion: &mut Criterion) {
    let readers: [(&str, Reader); 4] = [
        ("endmark", endmark),
        ("serde_json IgnoredAny", serde_json_ignored),
        ("jiter, partial", jiter_partial),
        ("actson", |document| actson_in_chunks(document, 64_000)),
    ];
    for (what, document) in
        [("code strings", code_strings(10 * MEGABYTE)), ("small objects", small_objects(10 * MEGABYTE))]
    {
        let mut group = criterion.benchmark_group(format!("10 MB of {what}"));
        group.sample_size(20).throughput(Throughput::Bytes(document.len() as u64));
        for (name, read) in readers {
            group.bench_function(name, |bencher| bencher.iter(|| read(&document)));
        }
        group.finish();
    }
}

fn detect_in_small_chunks(criterion: &mut Criterion) {
    let readers: [(&str, Reader); 2] = [
        ("endmark", |document| endmark_in_chunks(document, 16)),
        ("actson", |document| actson_in_chunks(document, 16)),
    ];
    for (what, make) in
        [("code strings", code_strings as fn(usize) -> Vec<u8>), ("small objects", small_objects)]
    {
        let mut group = criterion.benchmark_group(format!("{what} in chunks of 16 bytes"));
        for size in [1, 2, 4] {
            let document = make(size * MEGABYTE);
            group.sample_size(20).throughput(Throughput::Bytes(document.len() as u64));
            for (name, read) in readers {
                group.bench_function(BenchmarkId::new(name, format!("{size} MB")), |bencher| {
                    bencher.iter(|| read(&document));
                });
            }
        }
        group.finish();
    }
}

criterion_group!(detect, detect_in_one_piece, detect_in_small_chunks);
criterion_main!(detect);
