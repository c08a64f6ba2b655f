//! How much is in flight, and what it carries.

use linerate_model::formulas::{
    bandwidth_delay_product, entry, little_in_flight, little_rate, little_round_trip, round_trip_of_product,
    transfer_rate, transfer_time, transfer_volume, window_for_rate, window_rate,
};
use linerate_units::SegmentCount;

use super::{
    Calculator, Kind, Known, Quantity, RATE, RTT, SEGMENT, TOO_LONG, TOO_SMALL, Value, WINDOW, count, rate, time,
};
use crate::cmd::calc::solve::{Derived, Relation};

pub(super) static BDP: Calculator = Calculator {
    name: "bdp",
    about: "Bandwidth-delay product: bytes in flight on a full path",
    quantities: &[
        RATE,
        RTT,
        Quantity::new("bdp", "bandwidth-delay product", Kind::Size, "146.25MB", "Bandwidth-delay product"),
        SEGMENT,
    ],
    relations: &[Relation {
        formula: entry::BANDWIDTH_DELAY_PRODUCT,
        solve: &[
            ("bdp", |k| Ok(Value::Size(bandwidth_delay_product(k.rate("rate")?, k.time("rtt")?)))),
            ("rate", |k| rate(window_rate(k.size("bdp")?, k.time("rtt")?), TOO_SMALL)),
            ("rtt", |k| time(round_trip_of_product(k.size("bdp")?, k.rate("rate")?), TOO_LONG)),
        ],
    }],
    derived: &[
        Derived { title: "in full segments", kind: Kind::Count("segments"), compute: |k| segments(k, "bdp") },
        Derived { title: "two products", kind: Kind::Size, compute: |k| Ok(Value::Size(k.size("bdp")? * 2)) },
        Derived { title: "three products", kind: Kind::Size, compute: |k| Ok(Value::Size(k.size("bdp")? * 3)) },
    ],
    next: &[
        |k| k.ask("buffer", &[("window", "bdp"), ("mss", "mss")]),
        |k| k.ask("slow-start", &[("rate", "rate"), ("rtt", "rtt")]),
        |k| k.ask("scale", &[("window", "bdp")]),
        |k| k.ask("wrap", &[("rate", "rate")]),
    ],
    examples: &["10G 117ms", "--bdp 146.25MB --rtt 117ms", "--bdp 10683760B --rate 10G --rtt 117ms"],
};

fn segments(known: &Known, name: &str) -> Result<Value, String> {
    count(known.size(name)?.get().checked_div(known.size("mss")?.get()), TOO_SMALL)
}

pub(super) static WINDOW_LIMIT: Calculator = Calculator {
    name: "window",
    about: "The rate that a window allows, and the window that a rate needs",
    quantities: &[RATE, RTT, WINDOW],
    relations: &[Relation {
        formula: entry::WINDOW_RATE,
        solve: &[
            ("rate", |k| rate(window_rate(k.size("window")?, k.time("rtt")?), TOO_SMALL)),
            ("window", |k| Ok(Value::Size(window_for_rate(k.rate("rate")?, k.time("rtt")?)))),
            ("rtt", |k| time(round_trip_of_product(k.size("window")?, k.rate("rate")?), TOO_LONG)),
        ],
    }],
    derived: &[],
    next: &[
        |k| k.ask("buffer", &[("window", "window")]),
        |k| k.ask("scale", &[("window", "window")]),
        |k| k.ask("pacing", &[("window", "window"), ("rtt", "rtt")]),
    ],
    examples: &["16MiB 53ms", "1G 53ms", "--window 64KiB --rate 100M", "--rate 2473M --window 16MB --rtt 53ms"],
};

pub(super) static LITTLE: Calculator = Calculator {
    name: "little",
    about: "Rate, bytes in flight and round-trip time: two give the third",
    quantities: &[
        RATE,
        RTT,
        Quantity::new("in-flight", "in flight", Kind::Size, "2.48MB", "Bytes in flight"),
        Quantity::new(
            "segments",
            "segments in flight",
            Kind::Count("segments"),
            "10",
            "The same in segments (cwnd, unacked)",
        ),
        SEGMENT,
    ],
    relations: &[
        Relation {
            formula: entry::LITTLE,
            solve: &[
                ("in-flight", |k| {
                    Ok(Value::Size(SegmentCount::new(k.count("segments")?) * k.mss("mss")?.byte_count()))
                }),
                ("segments", |k| segments(k, "in-flight")),
            ],
        },
        Relation {
            formula: entry::LITTLE,
            solve: &[
                ("rate", |k| rate(little_rate(k.size("in-flight")?, k.time("rtt")?), TOO_SMALL)),
                ("in-flight", |k| Ok(Value::Size(little_in_flight(k.rate("rate")?, k.time("rtt")?)))),
                ("rtt", |k| time(little_round_trip(k.size("in-flight")?, k.rate("rate")?), TOO_LONG)),
            ],
        },
    ],
    derived: &[],
    next: &[
        |k| k.ask("pacing", &[("window", "in-flight"), ("rtt", "rtt")]),
        |k| k.ask("memory", &[("segments", "segments"), ("mss", "mss")]),
    ],
    examples: &["--in-flight 2.48MB --rate 17.9MB/s", "--segments 40 --rtt 53ms", "100M 20ms"],
};

pub(super) static TRANSFER: Calculator = Calculator {
    name: "transfer",
    about: "How long a transfer takes, or which rate it had",
    quantities: &[RATE, Quantity::new("volume", "volume", Kind::Size, "1GiB", "What is transferred"), TIME],
    relations: &[Relation {
        formula: entry::TRANSFER_TIME,
        solve: &[
            ("time", |k| time(transfer_time(k.size("volume")?, k.rate("rate")?), TOO_LONG)),
            ("rate", |k| rate(transfer_rate(k.size("volume")?, k.time("time")?), TOO_SMALL)),
            ("volume", |k| Ok(Value::Size(transfer_volume(k.rate("rate")?, k.time("time")?)))),
        ],
    }],
    derived: &[],
    next: &[|k| k.ask("ethernet", &[("goodput", "rate")]), |k| k.ask("wrap", &[("rate", "rate")])],
    examples: &["101GiB 60s", "941Mbit/s 1GB", "100M --time 10s"],
};

const TIME: Quantity = Quantity::new("time", "transfer time", Kind::Time, "60s", "How long it takes");
