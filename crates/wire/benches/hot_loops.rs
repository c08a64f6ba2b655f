//! The loops that run for every datagram: writing headers, reading them, and the receiver's accounting.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use linerate_units::MonotonicTime;
use linerate_wire::sequence::Tracker;
use linerate_wire::udp::{CounterWidth, Header};

/// Datagrams in one train, as segmentation offload sends them.
const TRAIN: u64 = 45;
const BLOCK: usize = 1448;

fn headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("udp header");
    group.throughput(Throughput::Elements(TRAIN));
    let mut train = vec![0_u8; BLOCK * usize::try_from(TRAIN).expect("small")];
    let sent_at = MonotonicTime::from_nanos(123_456_789_000);
    group.bench_function("write a train", |bencher| {
        bencher.iter(|| {
            for (number, datagram) in (1..).zip(black_box(&mut train).chunks_exact_mut(BLOCK)) {
                let _ = Header { sent_at, number }.encode(CounterWidth::Bits32, datagram);
            }
        });
    });
    group.bench_function("read a train", |bencher| {
        bencher.iter(|| {
            let headers = black_box(&train).chunks_exact(BLOCK);
            headers
                .filter_map(|datagram| Header::decode(CounterWidth::Bits32, datagram))
                .map(|header| header.number)
                .sum::<u64>()
        });
    });
    group.finish();
}

fn tracker(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tracker");
    group.throughput(Throughput::Elements(TRAIN));
    for (name, reorder) in [("in order", 1), ("every eighth swapped", 8)] {
        let mut tracker = Tracker::new(CounterWidth::Bits64);
        let mut next = 1;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for number in next..next + TRAIN {
                    let number = if reorder > 1 && number % reorder == 0 { number + 1 } else { number };
                    let time = MonotonicTime::from_nanos(number * 200);
                    tracker.record(black_box(number), time, time);
                }
                next += TRAIN;
            });
        });
        black_box(tracker.snapshot());
    }
    group.finish();
}

criterion_group!(benches, headers, tracker);
criterion_main!(benches);
