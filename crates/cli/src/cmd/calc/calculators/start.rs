//! How a connection starts, paces and counts.

use linerate_model::formulas::{
    entry, pacing_rate, pacing_round_trip, pacing_window, sequence_wrap_rate, sequence_wrap_time, serialisation_time,
    slow_start_rate, slow_start_round_trip, slow_start_rounds, slow_start_volume,
};
use linerate_units::SegmentCount;

use super::{Calculator, Kind, Known, Quantity, RATE, RTT, SEGMENT, TOO_LONG, TOO_SMALL, Value, WINDOW};
use super::{rate, size, time};
use crate::cmd::calc::solve::{Derived, Relation};

pub(super) static SLOW_START: Calculator = Calculator {
    name: "slow-start",
    about: "How long slow start takes to fill a path, and what it sends",
    quantities: &[
        RATE,
        RTT,
        Quantity::new("time", "time of slow start", Kind::Time, "1.5s", "How long slow start takes"),
        SEGMENT,
        Quantity::new("initial-window", "initial window", Kind::Count("segments"), "10", "Initial window in segments")
            .default("10"),
    ],
    relations: &[Relation {
        formula: entry::SLOW_START,
        solve: &[
            ("time", |k| {
                let (rounds, round_trip) = (rounds(k)?, k.time("rtt")?);
                time(std::time::Duration::try_from_secs_f64(round_trip.as_secs_f64() * rounds).ok(), TOO_LONG)
            }),
            ("rate", |k| {
                let reached = slow_start_rate(k.time("time")?, k.time("rtt")?, k.mss("mss")?, initial(k)?);
                rate(reached, "the rate is beyond all numbers: so many round trips fit into that time")
            }),
            ("rtt", |k| {
                let found = slow_start_round_trip(k.time("time")?, k.rate("rate")?, k.mss("mss")?, initial(k)?);
                time(found, TOO_LONG)
            }),
        ],
    }],
    derived: &[
        Derived { title: "round trips", kind: Kind::Factor, compute: |k| rounds(k).map(Value::Number) },
        Derived {
            title: "sent until then",
            kind: Kind::Size,
            compute: |k| {
                size(slow_start_volume(k.rate("rate")?, k.time("rtt")?, k.mss("mss")?, initial(k)?), TOO_SMALL)
            },
        },
        Derived {
            title: "leave out of a test",
            kind: Kind::Time,
            compute: |k| Ok(Value::Time(k.time("time")?.saturating_mul(2))),
        },
        Derived {
            title: "shortest fair test",
            kind: Kind::Time,
            compute: |k| Ok(Value::Time(k.time("time")?.saturating_mul(10))),
        },
    ],
    next: &[|k| k.ask("bdp", &[("rate", "rate"), ("rtt", "rtt")])],
    examples: &["10G 117ms", "1G 53ms", "--time 1s --rtt 53ms", "--time 1s --rate 10G"],
};

fn initial(known: &Known) -> Result<SegmentCount, String> {
    known.count("initial-window").map(SegmentCount::new)
}

fn rounds(known: &Known) -> Result<f64, String> {
    slow_start_rounds(known.rate("rate")?, known.time("rtt")?, known.mss("mss")?, initial(known)?)
        .map(linerate_units::Ratio::get)
        .ok_or_else(|| TOO_SMALL.to_owned())
}

pub(super) static PACING: Calculator = Calculator {
    name: "pacing",
    about: "The rate at which Linux lets a window leave, and its gaps",
    quantities: &[
        Quantity::new("rate", "pacing rate", Kind::Rate, "1.2G", "Pacing rate"),
        RTT,
        WINDOW,
        Quantity::new("gain", "gain", Kind::Factor, "1.2", "1.2 in congestion avoidance, 2 in slow start")
            .default("1.2"),
        Quantity::new("packet", "packet", Kind::Size, "1514", "A full packet with its header").default("1514"),
    ],
    relations: &[Relation {
        formula: entry::PACING,
        solve: &[
            ("rate", |k| rate(pacing_rate(k.size("window")?, k.time("rtt")?, k.number("gain")?), TOO_SMALL)),
            ("window", |k| size(pacing_window(k.rate("rate")?, k.time("rtt")?, k.number("gain")?), TOO_SMALL)),
            ("rtt", |k| time(pacing_round_trip(k.size("window")?, k.rate("rate")?, k.number("gain")?), TOO_LONG)),
        ],
    }],
    derived: &[
        Derived {
            title: "a packet every",
            kind: Kind::Time,
            compute: |k| time(serialisation_time(k.size("packet")?, k.rate("rate")?), TOO_LONG),
        },
        Derived {
            title: "a millisecond's train",
            kind: Kind::Size,
            compute: |k| Ok(Value::Size(k.rate("rate")? * std::time::Duration::from_millis(1))),
        },
    ],
    next: &[|k| k.ask("window", &[("window", "window"), ("rtt", "rtt")])],
    examples: &["--window 6.625MB --rtt 53ms", "--rate 95M --rtt 20ms", "--window 16MiB --rate 1.2G"],
};

pub(super) static WRAP: Calculator = Calculator {
    name: "wrap",
    about: "How long until TCP's sequence numbers come again",
    quantities: &[
        RATE,
        Quantity::new("time", "time until numbers come again", Kind::Time, "120s", "Time until they come again"),
    ],
    relations: &[Relation {
        formula: entry::SEQUENCE_WRAP,
        solve: &[
            ("time", |k| time(sequence_wrap_time(k.rate("rate")?), TOO_LONG)),
            ("rate", |k| rate(sequence_wrap_rate(k.time("time")?), TOO_SMALL)),
        ],
    }],
    derived: &[Derived {
        title: "half of them, where older and newer are confused",
        kind: Kind::Time,
        compute: |k| Ok(Value::Time(k.time("time")? / 2)),
    }],
    next: &[],
    examples: &["10G", "--time 120s"],
};
