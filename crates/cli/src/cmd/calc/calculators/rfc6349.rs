//! The three metrics of RFC 6349.

use linerate_model::formulas::{
    actual_transfer_time, baseline_round_trip, buffer_delay, entry, ideal_transfer_time, loaded_round_trip,
    retransmitted_bytes, sent_bytes, tcp_efficiency, transfer_rate, transfer_time, transfer_time_ratio,
    transfer_volume,
};

use super::{Calculator, Kind, Quantity, TOO_LONG, TOO_SMALL, Value};
use super::{rate, share, size, time};
use crate::cmd::calc::solve::Relation;

pub(super) static RFC6349: Calculator = Calculator {
    name: "rfc6349",
    about: "Transfer time ratio, TCP efficiency and buffer delay (RFC 6349)",
    quantities: &[
        Quantity::new("ratio", "transfer time ratio", Kind::Factor, "1.5", "Transfer time ratio"),
        Quantity::new("efficiency", "TCP efficiency", Kind::Share, "98%", "TCP efficiency"),
        Quantity::new("buffer-delay", "buffer delay", Kind::Excess, "28%", "Buffer delay, in percent of the baseline")
            .or_zero(),
        Quantity::new("actual", "actual time", Kind::Time, "12s", "How long the transfer took"),
        Quantity::new("ideal", "ideal time", Kind::Time, "8s", "How long it would take at the highest rate"),
        Quantity::new("rate", "highest rate of TCP", Kind::Rate, "941M", "Highest rate that TCP can have on the path"),
        Quantity::new("volume", "volume", Kind::Size, "1GB", "What was transferred"),
        Quantity::new("sent", "bytes sent", Kind::Size, "102000", "Bytes sent, retransmissions included"),
        Quantity::new("retransmitted", "bytes retransmitted", Kind::Size, "2000", "Bytes sent again").or_zero(),
        Quantity::new(
            "base-rtt",
            "baseline round-trip time",
            Kind::Time,
            "25ms",
            "Least round-trip time of the idle path",
        ),
        Quantity::new(
            "loaded-rtt",
            "loaded round-trip time",
            Kind::Time,
            "32ms",
            "Mean round-trip time during the transfer",
        ),
    ],
    relations: &[
        Relation {
            formula: entry::TRANSFER_TIME,
            solve: &[
                ("ideal", |k| time(transfer_time(k.size("volume")?, k.rate("rate")?), TOO_LONG)),
                ("volume", |k| Ok(Value::Size(transfer_volume(k.rate("rate")?, k.time("ideal")?)))),
                ("rate", |k| rate(transfer_rate(k.size("volume")?, k.time("ideal")?), TOO_SMALL)),
            ],
        },
        Relation {
            formula: entry::TRANSFER_TIME_RATIO,
            solve: &[
                ("ratio", |k| {
                    let ratio = transfer_time_ratio(k.time("actual")?, k.time("ideal")?);
                    ratio.map(|ratio| Value::Number(ratio.get())).ok_or_else(|| TOO_SMALL.to_owned())
                }),
                ("actual", |k| time(actual_transfer_time(k.ratio("ratio")?, k.time("ideal")?), TOO_LONG)),
                ("ideal", |k| time(ideal_transfer_time(k.time("actual")?, k.ratio("ratio")?), TOO_LONG)),
            ],
        },
        Relation {
            formula: entry::TCP_EFFICIENCY,
            solve: &[
                ("efficiency", |k| {
                    let efficiency = tcp_efficiency(k.size("sent")?, k.size("retransmitted")?);
                    share(efficiency, "more was retransmitted than sent: --sent counts retransmissions too")
                }),
                ("retransmitted", |k| size(retransmitted_bytes(k.ratio("efficiency")?, k.size("sent")?), TOO_SMALL)),
                ("sent", |k| {
                    let sent = sent_bytes(k.ratio("efficiency")?, k.size("retransmitted")?);
                    size(sent, "at an efficiency of 100 % nothing is retransmitted, whatever was sent: give --sent")
                }),
            ],
        },
        Relation {
            formula: entry::BUFFER_DELAY,
            solve: &[
                ("buffer-delay", |k| {
                    let delay = buffer_delay(k.time("loaded-rtt")?, k.time("base-rtt")?);
                    delay.map(Value::Ratio).ok_or_else(|| {
                        "the loaded path was faster than the idle one: the baseline was not its least round-trip time"
                            .to_owned()
                    })
                }),
                ("loaded-rtt", |k| time(loaded_round_trip(k.ratio("buffer-delay")?, k.time("base-rtt")?), TOO_LONG)),
                ("base-rtt", |k| Ok(Value::Time(baseline_round_trip(k.ratio("buffer-delay")?, k.time("loaded-rtt")?)))),
            ],
        },
    ],
    derived: &[],
    next: &[|k| k.ask("transfer", &[("volume", "volume"), ("time", "actual")])],
    examples: &[
        "--actual 12s --ideal 8s",
        "--sent 102000 --retransmitted 2000",
        "--base-rtt 25ms --loaded-rtt 32ms",
        "--volume 1GB --rate 941M --actual 12s --sent 1.02GB --retransmitted 20MB --base-rtt 25ms --loaded-rtt 32ms",
    ],
};
