//! Options of the queueing disciplines, as `--qdisc-options` has them.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use core::time::Duration;

use linerate_model::socket::FirewallMark;
use linerate_units::parse;

/// Options of queueing disciplines; `None` leaves what follows from the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscOptions {
    /// Length of a queue: packets, with `bfifo` bytes.
    pub limit: Option<u32>,
    /// Number of queues between which flows are divided.
    pub flows: Option<u32>,
    /// Bytes that a flow may send in a turn.
    pub quantum: Option<u32>,
    /// Seconds between changes of SFQ's hash.
    pub perturb: Option<u32>,
    /// Time in which a standing queue has to drain once (`CoDel`).
    pub interval: Option<Duration>,
    /// Delay above which packets with ECT are marked.
    pub ce_threshold: Option<Duration>,
    /// Memory of all queues together, in bytes.
    pub memory: Option<u32>,
    /// Tins of CAKE.
    pub tins: Option<CakeTins>,
    /// Filter of acknowledgements of CAKE.
    pub acknowledgements: Option<AcknowledgementFilter>,
    /// True when CAKE splits aggregated packets (GSO).
    pub splits_aggregates: Option<bool>,
    /// True when CAKE also counts dropped packets, which have used the link already.
    pub counts_dropped: Option<bool>,
    /// Bits of the firewall mark that CAKE takes for the number of a tin, where they are not 0.
    pub mark_mask: Option<FirewallMark>,
}

/// Division of packets by their codepoints in CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeTins {
    /// One tin for all packets.
    BestEffort,
    /// Eight tins by the precedence of RFC 791.
    Precedence,
    /// Bulk, best effort and voice.
    Diffserv3,
    /// Bulk, best effort, video and voice.
    Diffserv4,
    /// Eight tins by codepoints.
    Diffserv8,
}

/// Filter of redundant acknowledgements in CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgementFilter {
    /// None is dropped.
    Off,
    /// Redundant ones are dropped.
    On,
    /// More are dropped, also some that carry information.
    Aggressive,
}

const TINS: [(CakeTins, &str); 5] = [
    (CakeTins::BestEffort, "besteffort"),
    (CakeTins::Precedence, "precedence"),
    (CakeTins::Diffserv3, "diffserv3"),
    (CakeTins::Diffserv4, "diffserv4"),
    (CakeTins::Diffserv8, "diffserv8"),
];
const FILTERS: [(AcknowledgementFilter, &str); 3] = [
    (AcknowledgementFilter::Off, "off"),
    (AcknowledgementFilter::On, "on"),
    (AcknowledgementFilter::Aggressive, "aggressive"),
];
const SPLITS: [(bool, &str); 2] = [(true, "on"), (false, "off")];
const MODES: [(bool, &str); 2] = [(true, "ingress"), (false, "egress")];

/// Names of the options that each kind of queueing discipline knows.
const KNOWN: [(&str, &[&str]); 6] = [
    ("cake", &["memory", "tins", "ack-filter", "split-gso", "mode", "fwmark"]),
    ("cake_mq", &["memory", "tins", "ack-filter", "split-gso", "mode", "fwmark"]),
    ("fq_codel", &["limit", "flows", "quantum", "interval", "ce-threshold", "memory"]),
    ("fq_pie", &["limit", "flows", "quantum", "memory"]),
    ("sfq", &["limit", "quantum", "perturb"]),
    ("bfifo", &["limit"]),
];

/// Names of the options that a kind of queueing discipline knows.
#[must_use]
pub fn known_options(kind: &str) -> &'static [&'static str] {
    KNOWN.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, names)| names)
}

impl CakeTins {
    /// Keyword of `tc`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        name(&TINS, self)
    }
}

impl AcknowledgementFilter {
    /// Keyword of `tc`.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Off => "no-ack-filter",
            Self::On => "ack-filter",
            Self::Aggressive => "ack-filter-aggressive",
        }
    }
}

impl QdiscOptions {
    /// True without any option.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These options, and those of `later` where it has a value.
    #[must_use]
    pub fn with(self, later: Self) -> Self {
        Self {
            limit: later.limit.or(self.limit),
            flows: later.flows.or(self.flows),
            quantum: later.quantum.or(self.quantum),
            perturb: later.perturb.or(self.perturb),
            interval: later.interval.or(self.interval),
            ce_threshold: later.ce_threshold.or(self.ce_threshold),
            memory: later.memory.or(self.memory),
            tins: later.tins.or(self.tins),
            acknowledgements: later.acknowledgements.or(self.acknowledgements),
            splits_aggregates: later.splits_aggregates.or(self.splits_aggregates),
            counts_dropped: later.counts_dropped.or(self.counts_dropped),
            mark_mask: later.mark_mask.or(self.mark_mask),
        }
    }

    /// Name and value of each given option.
    fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let micros = |time: Option<Duration>| time.map(|time| format!("{}us", time.as_micros()));
        let pairs = [
            ("limit", number(self.limit)),
            ("flows", number(self.flows)),
            ("quantum", number(self.quantum)),
            ("perturb", number(self.perturb)),
            ("interval", micros(self.interval)),
            ("ce-threshold", micros(self.ce_threshold)),
            ("memory", number(self.memory)),
            ("tins", self.tins.map(|tins| tins.keyword().to_owned())),
            ("ack-filter", self.acknowledgements.map(|filter| name(&FILTERS, filter).to_owned())),
            ("split-gso", self.splits_aggregates.map(|splits| name(&SPLITS, splits).to_owned())),
            ("mode", self.counts_dropped.map(|counts| name(&MODES, counts).to_owned())),
            ("fwmark", self.mark_mask.map(|mask| mask.to_string())),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Names of the given options.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.pairs().map(|(name, _)| name)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "limit" => self.limit = Some(number(value, 1..=100_000_000)?),
            "flows" => self.flows = Some(number(value, 1..=65_536)?),
            "quantum" => self.quantum = Some(number(value, 256..=1_048_576)?),
            "perturb" => self.perturb = Some(number(value, 0..=86_400)?),
            "interval" => self.interval = Some(time(value, Duration::from_millis(1)..=Duration::from_secs(10))?),
            "ce-threshold" => {
                self.ce_threshold = Some(time(value, Duration::from_micros(10)..=Duration::from_secs(1))?);
            }
            "memory" => self.memory = Some(memory(value)?),
            "tins" => self.tins = Some(choice(value, &TINS)?),
            "ack-filter" => self.acknowledgements = Some(choice(value, &FILTERS)?),
            "split-gso" => self.splits_aggregates = Some(choice(value, &SPLITS)?),
            "mode" => self.counts_dropped = Some(choice(value, &MODES)?),
            "fwmark" => self.mark_mask = Some(FirewallMark::parse(value)?),
            _ => {
                return Err(
                    "expected limit, flows, quantum, perturb, interval, ce-threshold, memory, tins, ack-filter, split-gso, \
                     mode or fwmark"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

fn name<T: Copy + PartialEq>(choices: &[(T, &'static str)], value: T) -> &'static str {
    choices.iter().find(|(one, _)| *one == value).map_or("", |(_, name)| name)
}

fn choice<T: Copy>(text: &str, choices: &[(T, &str)]) -> Result<T, String> {
    let found = choices.iter().find(|(_, name)| *name == text).map(|(value, _)| *value);
    let names = || choices.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("expected one of {}", names()))
}

fn number(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected {} to {}", range.start(), range.end()))
}

/// Size of 16 kB to 2 GB; the kernel takes at most 2 GiB.
fn memory(text: &str) -> Result<u32, String> {
    let size = parse::size(text).map_err(|error| error.to_string())?.get();
    let size = u32::try_from(size).ok().filter(|size| (16_000..=2_000_000_000).contains(size));
    size.ok_or_else(|| "expected 16K to 2G".to_owned())
}

fn time(text: &str, range: RangeInclusive<Duration>) -> Result<Duration, String> {
    let time = parse::time(text).map_err(|error| error.to_string())?;
    let ends = || format!("expected {}us to {}s", range.start().as_micros(), range.end().as_secs());
    if range.contains(&time) {
        Ok(Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    } else {
        Err(ends())
    }
}

impl FromStr for QdiscOptions {
    type Err = String;

    /// Reads `limit=1000,quantum=300`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        super::for_each_pair(text, |name, value| options.set(name, value))?;
        Ok(options)
    }
}

impl fmt::Display for QdiscOptions {
    /// Writes what [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.pairs().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&pairs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: &str = "limit=1000,flows=64,quantum=300,perturb=10,interval=100ms,ce-threshold=2ms,memory=4M,tins=diffserv8,\
                       ack-filter=aggressive,split-gso=off,mode=ingress,fwmark=0xf0";

    #[test]
    fn options_lead_back() {
        let options: QdiscOptions = ALL.parse().expect("valid");
        assert_eq!(options.to_string().parse(), Ok(options));
        assert_eq!(options.names().count(), 12, "each is written");
        assert_eq!(options.memory, Some(4_000_000));
        let other: QdiscOptions = "limit=2000,tins=besteffort".parse().expect("valid");
        let both = options.with(other);
        assert_eq!((both.limit, both.tins, both.flows), (Some(2000), Some(CakeTins::BestEffort), Some(64)));
        assert!(QdiscOptions::default().is_default() && QdiscOptions::default().to_string().is_empty());
    }

    #[test]
    fn each_option_is_known_to_a_kind() {
        let options: QdiscOptions = ALL.parse().expect("valid");
        for name in options.names() {
            assert!(KNOWN.iter().any(|(_, known)| known.contains(&name)), "{name}");
        }
        assert!(KNOWN.iter().flat_map(|(_, known)| *known).all(|name| options.names().any(|one| one == *name)));
        assert_eq!(known_options("tbf"), [""; 0]);
    }

    #[test]
    fn other_values_are_refused_with_the_range() {
        for (text, reason) in [
            ("", "NAME=VALUE"),
            ("limit", "NAME=VALUE"),
            ("limit=0", "1 to 100000000"),
            ("flows=65537", "1 to 65536"),
            ("quantum=255", "256 to 1048576"),
            ("interval=11s", "1000us to 10s"),
            ("ce-threshold=1us", "10us to 1s"),
            ("memory=1K", "16K to 2G"),
            ("tins=diffserv5", "besteffort, precedence, diffserv3, diffserv4, diffserv8"),
            ("ack-filter=yes", "off, on, aggressive"),
            ("mode=both", "ingress, egress"),
            ("fwmark=0", "1 to 4294967295"),
            ("fwmark=0x", "1 to 4294967295"),
            ("target=5ms", "expected limit, flows"),
        ] {
            let error = text.parse::<QdiscOptions>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=,.0-9-]{0,40}") {
            if let Ok(options) = text.parse::<QdiscOptions>() {
                prop_assert_eq!(options.to_string().parse(), Ok(options));
            }
        }
    }
}
