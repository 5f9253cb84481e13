//! Criterion benchmark of stitching documents of 200 kB in every style.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use speed::stitching::cuts;

fn stitch_200_kilobytes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stitch 200 kB");
    for cut in cuts(200_000, "") {
        group.sample_size(10).throughput(Throughput::Bytes(cut.len() as u64));
        group.bench_function(&cut.name, |bencher| bencher.iter(|| cut.stitch()));
    }
    group.finish();
}

criterion_group!(stitch, stitch_200_kilobytes);
criterion_main!(stitch);
