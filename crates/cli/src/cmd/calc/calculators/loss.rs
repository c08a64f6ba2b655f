//! What loss leaves of a rate, and which loss explains one.

use linerate_model::formulas::{
    bbr_goodput, bbr_rate, bbr_round_trip, bbr_window, cubic_loss, cubic_rate, cubic_round_trip, entry, loss_for_rate,
    loss_limited_rate, mathis_loss, mathis_rate, mathis_round_trip, padhye_loss, padhye_rate, padhye_round_trip,
    round_trip_for_rate,
};
use linerate_units::Ratio;

use super::{Calculator, Kind, Known, LOSS as PROBABILITY, Quantity, RATE, RTT, SEGMENT, TOO_LONG, Value, WINDOW};
use super::{count, explaining, rate, share, time};
use crate::cmd::calc::solve::{Derived, Relation};

const NO_BOUND: &str = "the figures are too small to set a bound: check the units";

/// How long it takes, on average, until a packet is lost.
const BETWEEN_LOSSES: Derived = Derived {
    title: "a loss every",
    kind: Kind::Time,
    compute: |k| {
        let bits = f64::from(k.mss("mss")?.get()) * 8.0 / k.ratio("loss")?.get();
        let seconds = bits / k.rate("rate")?.bits_per_second();
        time(std::time::Duration::try_from_secs_f64(seconds).ok(), TOO_LONG)
    },
};

/// The mean window that the rate means.
const MEAN_WINDOW: Derived = Derived {
    title: "mean window",
    kind: Kind::Count("segments"),
    compute: |k| {
        let window = k.rate("rate")? * k.time("rtt")?;
        count(window.get().checked_div(k.size("mss")?.get()), NO_BOUND)
    },
};

pub(super) static LOSS: Calculator = Calculator {
    name: "loss",
    about: "The loss that explains a rate, or the rate that a loss leaves",
    quantities: &[
        RATE,
        RTT,
        PROBABILITY,
        SEGMENT,
        Quantity::new(
            "congestion",
            "congestion control",
            Kind::Choice(&["reno", "cubic"]),
            "cubic",
            "Congestion control",
        )
        .default("reno"),
    ],
    relations: &[Relation {
        formula: entry::LOSS_RESPONSE,
        solve: &[
            ("loss", |k| {
                explaining(loss_for_rate(k.choice("congestion")?, k.mss("mss")?, k.time("rtt")?, k.rate("rate")?))
            }),
            ("rate", |k| {
                let loss = k.ratio("loss")?;
                rate(loss_limited_rate(k.choice("congestion")?, k.mss("mss")?, k.time("rtt")?, loss), NO_BOUND)
            }),
            ("rtt", |k| {
                let (loss, rate) = (k.ratio("loss")?, k.rate("rate")?);
                time(round_trip_for_rate(k.choice("congestion")?, k.mss("mss")?, loss, rate), TOO_LONG)
            }),
        ],
    }],
    derived: &[BETWEEN_LOSSES, MEAN_WINDOW],
    next: &[
        |k| other_law(k, "mathis", &["--constant", "1"]),
        |k| other_law(k, "cubic", &[]),
        |k| other_law(k, "padhye", &[]),
        |k| k.ask("bbr", &[("rate", "rate"), ("rtt", "rtt")]),
    ],
    examples: &["--rate 256M --rtt 53ms --mss 8960", "0.01% 117ms --congestion cubic", "780M 53ms --mss 8960"],
};

/// The same question by another law: what was computed here is computed there.
fn other_law(known: &Known, calculator: &str, more: &[&str]) -> Result<Vec<String>, String> {
    use crate::cmd::calc::solve::Origin;

    let given: Vec<(&str, &str)> = ["rate", "rtt", "loss", "mss"]
        .into_iter()
        .filter(|name| !matches!(known.get(name), Some((_, Origin::Computed))))
        .map(|name| (name, name))
        .collect();
    let mut words = known.ask(calculator, &given)?;
    words.extend(more.iter().map(|word| (*word).to_owned()));
    Ok(words)
}

pub(super) static MATHIS: Calculator = Calculator {
    name: "mathis",
    about: "Reno's rate under random loss (Mathis et al.)",
    quantities: &[
        RATE,
        RTT,
        PROBABILITY,
        SEGMENT,
        Quantity::new(
            "constant",
            "constant",
            Kind::Factor,
            "1.2247",
            "1.2247 on Linux, 0.866 with delayed acknowledgements counted once, 1 in many slides",
        )
        .default("1.2247448713915890"),
    ],
    relations: &[Relation {
        formula: entry::MATHIS,
        solve: &[
            ("rate", |k| {
                let (constant, loss) = (k.number("constant")?, k.ratio("loss")?);
                rate(mathis_rate(k.mss("mss")?, k.time("rtt")?, loss, constant), NO_BOUND)
            }),
            ("loss", |k| {
                let (constant, rate) = (k.number("constant")?, k.rate("rate")?);
                explaining(mathis_loss(k.mss("mss")?, k.time("rtt")?, rate, constant))
            }),
            ("rtt", |k| {
                let (constant, rate) = (k.number("constant")?, k.rate("rate")?);
                time(mathis_round_trip(k.mss("mss")?, k.ratio("loss")?, rate, constant), TOO_LONG)
            }),
        ],
    }],
    derived: &[BETWEEN_LOSSES, MEAN_WINDOW],
    next: &[
        |k| other_law(k, "padhye", &[]),
        |k| other_law(k, "cubic", &[]),
        |k| k.ask("bbr", &[("rate", "rate"), ("rtt", "rtt")]),
    ],
    examples: &["0.1% 20.2ms", "256M 53ms --mss 8960 --constant 1", "--loss 1/36000 --rate 256M --mss 8960"],
};

pub(super) static PADHYE: Calculator = Calculator {
    name: "padhye",
    about: "Reno's rate under loss, timeouts included (Padhye et al.)",
    quantities: &[
        RATE,
        RTT,
        PROBABILITY,
        SEGMENT,
        Quantity::new(
            "timeout",
            "retransmission timeout",
            Kind::Time,
            "200ms",
            "Retransmission timeout; Linux has at least 200 ms",
        )
        .default("200ms"),
        Quantity::new(
            "segments-per-ack",
            "segments per acknowledgement",
            Kind::Factor,
            "1",
            "Segments that an acknowledgement counts for: 1 on Linux",
        )
        .default("1"),
    ],
    relations: &[Relation {
        formula: entry::PADHYE,
        solve: &[
            ("rate", |k| {
                let (timeout, each) = (k.time("timeout")?, k.number("segments-per-ack")?);
                rate(padhye_rate(k.mss("mss")?, k.time("rtt")?, k.ratio("loss")?, timeout, each), NO_BOUND)
            }),
            ("loss", |k| {
                let (timeout, each) = (k.time("timeout")?, k.number("segments-per-ack")?);
                let loss = padhye_loss(k.mss("mss")?, k.time("rtt")?, k.rate("rate")?, timeout, each);
                share(loss, "no loss explains this rate: even if everything were lost, the formula leaves more")
            }),
            ("rtt", |k| {
                let (timeout, each) = (k.time("timeout")?, k.number("segments-per-ack")?);
                let round_trip = padhye_round_trip(k.mss("mss")?, k.ratio("loss")?, k.rate("rate")?, timeout, each);
                time(round_trip, "no round-trip time gives this rate: the timeouts alone leave less")
            }),
        ],
    }],
    derived: &[BETWEEN_LOSSES, MEAN_WINDOW],
    next: &[|k| other_law(k, "mathis", &[]), |k| other_law(k, "cubic", &[])],
    examples: &["0.1% 20.2ms", "20M 20.2ms", "5% 50ms --timeout 250ms"],
};

pub(super) static CUBIC: Calculator = Calculator {
    name: "cubic",
    about: "CUBIC's rate under random loss (RFC 9438)",
    quantities: &[RATE, RTT, PROBABILITY, SEGMENT],
    relations: &[Relation {
        formula: entry::CUBIC,
        solve: &[
            ("rate", |k| rate(cubic_rate(k.mss("mss")?, k.time("rtt")?, k.ratio("loss")?), NO_BOUND)),
            ("loss", |k| explaining(cubic_loss(k.mss("mss")?, k.time("rtt")?, k.rate("rate")?))),
            ("rtt", |k| time(cubic_round_trip(k.mss("mss")?, k.ratio("loss")?, k.rate("rate")?), TOO_LONG)),
        ],
    }],
    derived: &[BETWEEN_LOSSES, MEAN_WINDOW],
    next: &[|k| other_law(k, "mathis", &[]), |k| k.ask("bbr", &[("rate", "rate"), ("rtt", "rtt")])],
    examples: &["0.01% 117ms", "100M 53ms", "0.01% --rate 20M"],
};

pub(super) static BBR: Calculator = Calculator {
    name: "bbr",
    about: "The window that BBR needs, and what loss leaves of its rate",
    quantities: &[
        RATE,
        RTT,
        WINDOW,
        Quantity::new("loss", "loss", Kind::Loss, "0.1%", "Probability that a packet is lost").default("0").or_zero(),
    ],
    relations: &[Relation {
        formula: entry::BBR,
        solve: &[
            ("window", |k| Ok(Value::Size(bbr_window(k.rate("rate")?, k.time("rtt")?)))),
            ("rate", |k| rate(bbr_rate(k.size("window")?, k.time("rtt")?), NO_BOUND)),
            ("rtt", |k| time(bbr_round_trip(k.size("window")?, k.rate("rate")?), TOO_LONG)),
        ],
    }],
    derived: &[Derived {
        title: "delivered",
        kind: Kind::Rate,
        compute: |k| {
            let loss: Ratio = k.ratio("loss")?;
            rate(bbr_goodput(k.rate("rate")?, loss), "no bound is known from a loss of 20 % on")
        },
    }],
    next: &[
        |k| k.ask("buffer", &[("window", "window")]),
        |k| {
            let mut words = k.ask("memory", &[("rate", "rate"), ("rtt", "rtt")])?;
            words.extend(["--congestion", "bbr"].map(str::to_owned));
            Ok(words)
        },
    ],
    examples: &["300M 20ms", "300M 20ms --loss 0.1%", "--window 6MiB --rtt 117ms"],
};
