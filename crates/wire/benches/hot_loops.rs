//! The loops that run for every datagram: encoding and decoding headers, and the receiver's accounting.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use linerate_units::MonotonicTime;
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::udp::{CounterWidth, DatagramHeader};

/// Datagrams in one GSO train.
const GSO_TRAIN_LENGTH: u64 = 45;
const BLOCK_LENGTH: usize = 1448;

fn headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("udp header");
    group.throughput(Throughput::Elements(GSO_TRAIN_LENGTH));
    let mut train = vec![0_u8; BLOCK_LENGTH * usize::try_from(GSO_TRAIN_LENGTH).expect("small")];
    let sent_at = MonotonicTime::from_nanos(123_456_789_000);
    group.bench_function("write a GSO train", |bencher| {
        bencher.iter(|| {
            for (number, datagram) in (1..).zip(black_box(&mut train).chunks_exact_mut(BLOCK_LENGTH)) {
                let _ = DatagramHeader { sent_at, number }.encode(CounterWidth::Bits32, datagram);
            }
        });
    });
    group.bench_function("read a GSO train", |bencher| {
        bencher.iter(|| {
            let headers = black_box(&train).chunks_exact(BLOCK_LENGTH);
            headers
                .filter_map(|datagram| DatagramHeader::decode(CounterWidth::Bits32, datagram))
                .map(|header| header.number)
                .sum::<u64>()
        });
    });
    group.finish();
}

fn tracker(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tracker");
    group.throughput(Throughput::Elements(GSO_TRAIN_LENGTH));
    for (name, reorder) in [("in order", 1), ("every eighth swapped", 8)] {
        let mut tracker = SequenceTracker::new(CounterWidth::Bits64);
        let mut next = 1;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for number in next..next + GSO_TRAIN_LENGTH {
                    let number = if reorder > 1 && number % reorder == 0 { number + 1 } else { number };
                    let time = MonotonicTime::from_nanos(number * 200);
                    tracker.record(black_box(number), time, time);
                }
                next += GSO_TRAIN_LENGTH;
            });
        });
        black_box(tracker.snapshot());
    }
    group.finish();
}

criterion_group!(benches, headers, tracker);
criterion_main!(benches);
