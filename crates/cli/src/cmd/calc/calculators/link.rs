//! What a link carries, and what stands in front of it.

use linerate_model::formulas::{
    buffer_of_delay, entry, frames_in, mtu_for_segment, policed_time, policed_volume, policer_burst, policer_rate,
    queueing_delay, rate_of_frames, serialisation_time, size_in_time,
};
use linerate_units::PacketCount;

use super::{Calculator, Kind, Quantity, RATE, TOO_LONG, TOO_SMALL, Value};
use super::{count, framing, rate, share, size, time};
use crate::cmd::calc::solve::{Derived, Relation};

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
const FULL: &str = "the headers fill the packet: the MTU is too small";

const LINK_RATE: Quantity = Quantity::new("rate", "rate of the link", Kind::Rate, "1G", "Rate of the link");
const MTU: Quantity = Quantity::new("mtu", "MTU", Kind::Size, "1500", "Largest IP packet").default("1500");
const PROTOCOL: Quantity =
    Quantity::new("ip", "IP version", Kind::Choice(&["4", "6"]), "4", "Version of the Internet Protocol").default("4");
const TIMESTAMPS: Quantity = Quantity::new(
    "timestamps",
    "TCP timestamps",
    Kind::Choice(&["yes", "no"]),
    "yes",
    "TCP's timestamps option: Linux uses it",
)
.default("yes");
const FRAMING: Quantity = Quantity::new(
    "framing",
    "framing",
    Kind::Size,
    "38",
    "Bytes around each packet: 38 on an Ethernet cable, 14 as tc and netem count, 42 with a VLAN tag",
)
.default("38")
.or_zero();

pub(super) static ETHERNET: Calculator = Calculator {
    name: "ethernet",
    about: "What TCP carries at most on a link, and which link it takes",
    quantities: &[
        LINK_RATE,
        Quantity::new("goodput", "highest goodput of TCP", Kind::Rate, "941M", "Payload of TCP"),
        MTU,
        PROTOCOL,
        TIMESTAMPS,
        FRAMING,
    ],
    relations: &[Relation {
        formula: entry::GOODPUT_SHARE,
        solve: &[
            ("goodput", |k| rate(framing(k)?.goodput(k.rate("rate")?), FULL)),
            ("rate", |k| rate(framing(k)?.link_rate(k.rate("goodput")?), FULL)),
        ],
    }],
    derived: &[
        Derived { title: "goodput share", kind: Kind::Share, compute: |k| share(framing(k)?.goodput_share(), FULL) },
        Derived {
            title: "segment",
            kind: Kind::Size,
            compute: |k| size(framing(k)?.segment().map(linerate_units::Mss::byte_count), FULL),
        },
        Derived {
            title: "full frames",
            kind: Kind::Count("frames/s"),
            compute: |k| {
                let framing = framing(k)?;
                count(Some(frames_in(SECOND, k.rate("rate")?, framing.mtu, framing.link).get()), FULL)
            },
        },
    ],
    next: &[
        |k| k.ask("serialisation", &[("size", "mtu"), ("rate", "rate")]),
        |k| k.ask("frames", &[("rate", "rate"), ("mtu", "mtu"), ("framing", "framing")]),
    ],
    examples: &["1G", "10G --mtu 9000", "100M --timestamps no", "--goodput 941M"],
};

pub(super) static FRAMES: Calculator = Calculator {
    name: "frames",
    about: "How many full frames a link carries each second",
    quantities: &[
        LINK_RATE,
        Quantity::new("frames", "full frames", Kind::Count("frames/s"), "81274", "Full frames each second"),
        MTU,
        FRAMING,
    ],
    relations: &[Relation {
        formula: entry::FRAME_RATE,
        solve: &[
            ("frames", |k| {
                count(Some(frames_in(SECOND, k.rate("rate")?, k.mtu("mtu")?, k.size("framing")?).get()), TOO_SMALL)
            }),
            ("rate", |k| {
                let frames = PacketCount::new(k.count("frames")?);
                rate(rate_of_frames(frames, SECOND, k.mtu("mtu")?, k.size("framing")?), TOO_SMALL)
            }),
        ],
    }],
    derived: &[Derived {
        title: "time for each",
        kind: Kind::Time,
        compute: |k| time(serialisation_time(k.size("mtu")? + k.size("framing")?, k.rate("rate")?), TOO_LONG),
    }],
    next: &[|k| k.ask("ethernet", &[("rate", "rate"), ("mtu", "mtu"), ("framing", "framing")])],
    examples: &["10G", "10G --mtu 46", "--frames 1M"],
};

pub(super) static MSS: Calculator = Calculator {
    name: "mss",
    about: "The payload of a full segment, and the MTU that carries one",
    quantities: &[
        Quantity::new("mtu", "MTU", Kind::Size, "1500", "Largest IP packet"),
        Quantity::new("mss", "segment", Kind::Size, "1448", "Payload of a full segment"),
        PROTOCOL,
        TIMESTAMPS,
    ],
    relations: &[Relation {
        formula: entry::SEGMENT_SIZE,
        solve: &[
            ("mss", |k| size(framing(k)?.segment().map(linerate_units::Mss::byte_count), FULL)),
            ("mtu", |k| {
                let protocol = if k.choice("ip")? == "6" {
                    linerate_model::formulas::InternetProtocol::V6
                } else {
                    linerate_model::formulas::InternetProtocol::V4
                };
                let mtu = mtu_for_segment(k.mss("mss")?, protocol, k.choice("timestamps")? == "yes");
                Ok(Value::Size(mtu.byte_count()))
            }),
        ],
    }],
    derived: &[],
    next: &[],
    examples: &["1500", "--mss 8948", "1500 --ip 6 --timestamps no"],
};

pub(super) static SERIALISATION: Calculator = Calculator {
    name: "serialisation",
    about: "How long a packet takes to leave on a link",
    quantities: &[
        LINK_RATE,
        Quantity::new("size", "packet", Kind::Size, "1500", "Size of the packet"),
        Quantity::new("time", "serialisation time", Kind::Time, "54.5ms", "How long it takes"),
    ],
    relations: &[Relation {
        formula: entry::SERIALISATION,
        solve: &[
            ("time", |k| time(serialisation_time(k.size("size")?, k.rate("rate")?), TOO_LONG)),
            ("size", |k| Ok(Value::Size(size_in_time(k.time("time")?, k.rate("rate")?)))),
            ("rate", |k| Ok(Value::Rate(k.size("size")? / k.time("time")?))),
        ],
    }],
    derived: &[],
    next: &[],
    examples: &["220k 1500", "--time 5ms --rate 220k", "1G 9000"],
};

pub(super) static QUEUE: Calculator = Calculator {
    name: "queue",
    about: "The delay of a full buffer, and the buffer that a delay means",
    quantities: &[
        RATE,
        Quantity::new("buffer", "buffer", Kind::Size, "1.5MB", "Buffer in front of the link"),
        Quantity::new("delay", "queueing delay", Kind::Time, "40ms", "Delay that a full buffer adds"),
        Quantity::new("packets", "packets", Kind::Count("packets"), "1000", "The buffer in full packets"),
        Quantity::new("packet", "packet", Kind::Size, "1514", "A full packet with its header").default("1514"),
    ],
    relations: &[
        Relation {
            formula: entry::QUEUEING_DELAY,
            solve: &[
                ("buffer", |k| Ok(Value::Size(PacketCount::new(k.count("packets")?) * k.size("packet")?))),
                ("packets", |k| count(k.size("buffer")?.get().checked_div(k.size("packet")?.get()), TOO_SMALL)),
            ],
        },
        Relation {
            formula: entry::QUEUEING_DELAY,
            solve: &[
                ("delay", |k| time(queueing_delay(k.size("buffer")?, k.rate("rate")?), TOO_LONG)),
                ("buffer", |k| Ok(Value::Size(buffer_of_delay(k.time("delay")?, k.rate("rate")?)))),
                ("rate", |k| Ok(Value::Rate(k.size("buffer")? / k.time("delay")?))),
            ],
        },
    ],
    derived: &[],
    next: &[|k| k.ask("serialisation", &[("size", "packet"), ("rate", "rate")])],
    examples: &["300M 1.5MB", "240k --packets 45", "300M --delay 40ms", "--buffer 1MiB --delay 2s"],
};

pub(super) static POLICER: Calculator = Calculator {
    name: "policer",
    about: "What a policer lets pass, and what its rate and burst are",
    quantities: &[
        RATE,
        Quantity::new("burst", "burst", Kind::Size, "200kB", "Size of its bucket").or_zero(),
        Quantity::new("time", "time", Kind::Time, "10s", "How long it is looked at"),
        Quantity::new("volume", "most that passes", Kind::Size, "125.2MB", "What passes in that time"),
    ],
    relations: &[Relation {
        formula: entry::POLICER,
        solve: &[
            ("volume", |k| Ok(Value::Size(policed_volume(k.rate("rate")?, k.size("burst")?, k.time("time")?)))),
            ("rate", |k| {
                let found = policer_rate(k.size("volume")?, k.size("burst")?, k.time("time")?);
                rate(found, "less passed than the bucket holds: its rate cannot be told from that")
            }),
            ("burst", |k| {
                let found = policer_burst(k.rate("rate")?, k.size("volume")?, k.time("time")?);
                size(found, "its rate alone lets more pass in that time: the policer is not what limited")
            }),
            ("time", |k| time(policed_time(k.rate("rate")?, k.size("burst")?, k.size("volume")?), TOO_LONG)),
        ],
    }],
    derived: &[
        Derived { title: "pace at (95 %)", kind: Kind::Rate, compute: |k| Ok(Value::Rate(k.rate("rate")? * 0.95)) },
        Derived {
            title: "the burst is what the rate gives in",
            kind: Kind::Time,
            compute: |k| time(k.size("burst")? / k.rate("rate")?, TOO_LONG),
        },
    ],
    next: &[|k| k.ask("transfer", &[("volume", "volume"), ("time", "time")])],
    examples: &["100M 200kB 10s", "--volume 125.2MB --burst 200kB --time 10s", "100M --volume 125.2MB --time 10s"],
};
