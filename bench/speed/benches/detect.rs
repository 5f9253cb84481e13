//! Detection with criterion, beside others on the same bytes.
#![expect(missing_docs, reason = "criterion's macros make public functions without any")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use speed::detection::{actson_in_chunks, endmark, endmark_in_chunks, jiter_partial, serde_json_ignored};
use speed::documents::{MEGABYTE, code_strings, small_objects};

fn in_one_piece(criterion: &mut Criterion) {
    for (what, document) in
        [("code strings", code_strings(10 * MEGABYTE)), ("small objects", small_objects(10 * MEGABYTE))]
    {
        let mut group = criterion.benchmark_group(format!("10 MB of {what}"));
        group.sample_size(20).throughput(Throughput::Bytes(document.len() as u64));
        group.bench_function("endmark", |bencher| bencher.iter(|| endmark(&document)));
        group.bench_function("serde_json IgnoredAny", |bencher| {
            bencher.iter(|| serde_json_ignored(&document))
        });
        group.bench_function("jiter, partial", |bencher| bencher.iter(|| jiter_partial(&document)));
        group.bench_function("actson", |bencher| bencher.iter(|| actson_in_chunks(&document, 64_000)));
        group.finish();
    }
}

fn in_small_chunks(criterion: &mut Criterion) {
    for (what, make) in
        [("code strings", code_strings as fn(usize) -> Vec<u8>), ("small objects", small_objects)]
    {
        let mut group = criterion.benchmark_group(format!("{what} in chunks of 16 bytes"));
        for size in [1, 2, 4] {
            let document = make(size * MEGABYTE);
            group.sample_size(20).throughput(Throughput::Bytes(document.len() as u64));
            group.bench_function(BenchmarkId::new("endmark", format!("{size} MB")), |bencher| {
                bencher.iter(|| endmark_in_chunks(&document, 16));
            });
            group.bench_function(BenchmarkId::new("actson", format!("{size} MB")), |bencher| {
                bencher.iter(|| actson_in_chunks(&document, 16));
            });
        }
        group.finish();
    }
}

criterion_group!(detect, in_one_piece, in_small_chunks);
criterion_main!(detect);
