//! Request for a shaper as command-line arguments, which are recorded so that the same can be set up again.

use std::str::FromStr;
use std::time::Duration;

use linerate_model::direction::Direction;
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::{KernelCapabilities, check_request};
use linerate_shape::link::{AccessLink, KEYWORDS, LinkFraming, LinkLayer, parse_keywords};
use linerate_shape::policy::{
    DualQueueOptions, FairnessUnit, QdiscOptions, QueueOptions, ReceivedMarks, TrafficImportance, TrafficPolicy,
    TrafficRule,
};
use linerate_shape::traffic_classes::TrafficClasses;
use linerate_shape::verify::PerDirection;
use linerate_units::{BitRate, ByteCount, Mtu, display, parse};

use super::class_file::{ClassFile, ClassOption};
use super::error::ShapeError;
use super::selection::TrafficSelection;

/// The line and what matters on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineRequest {
    /// Rate to which what this host sends is held, for example 20M or 220k: a little below the line's own
    pub up: Option<BitRate>,
    /// Rate to which what it receives is held
    pub down: Option<BitRate>,
    /// Shaper to use, instead of the best that this kernel has
    pub back_end: Option<BackEndId>,
    /// Link-layer overhead preset (CAKE keywords): pppoe-ptm, pppoe-llcsnap, bridged-ptm, docsis, ethernet, …; with
    /// `,ether-vlan` behind it where packets have a VLAN's tag
    pub link_layer: Option<String>,
    /// Bytes that the line adds to each IP packet, instead of the link layer's own
    pub overhead: Option<ByteCount>,
    /// Framing of packets on the link: none, atm (cells of 53 bytes) or ptm (65 for 64)
    pub framing: Option<LinkFraming>,
    /// The least that a packet occupies on the line
    pub minimum: Option<ByteCount>,
    /// Round trip for which queues are tuned, per direction; without it 100ms, as most of the Internet has
    pub rtt: PerDirection<Option<Duration>>,
    /// Traffic that goes first, in addition to key strokes, acknowledgements, pings and name lookups: tcp/22, udp/5060,
    /// dscp/34, host/192.0.2.0/24, protocol/47
    pub interactive: Vec<TrafficSelection>,
    /// Traffic that goes last
    pub bulk: Vec<TrafficSelection>,
    /// Believe the codepoints (DSCP) of packets, received ones too
    pub trust_marks: bool,
    /// Share equally between flows; without it, between the hosts on this side first
    pub per_flow: bool,
    /// True when this host translates addresses (NAT), so that the hosts behind it are distinguished by conntrack; `None`
    /// to take what the host does
    pub nat: Option<bool>,
    /// The capacity changes, as on LTE or with Starlink: tune queues for flows that refill it. --autorate implies it
    pub variable: bool,
    /// Also let this host's packets towards the line be no larger than this, by the MTU of the default route, or of the one
    /// to --verify's host: on slow lines a large packet is what others wait for
    pub route_mtu: Option<Mtu>,
    /// Classes with rates of their own, for addresses, marks or codepoints
    pub classes: Vec<ClassOption>,
    /// File of such classes
    pub class_file: Option<ClassFile>,
    /// Scale guaranteed rates of classes that add up to more than the link's
    pub oversubscribe: bool,
    /// A class for each host, so that hosts share equally without CAKE, too
    pub per_host: bool,
    /// Clear the codepoints (DSCP) of received packets
    pub wash: bool,
    /// Restore the codepoints of received packets from their connections' marks
    pub restore_dscp: bool,
    /// Store the codepoints of sent packets in their connections' marks
    pub store_dscp: bool,
    /// Drop acknowledgements that a later one makes redundant
    pub ack_filter: bool,
    /// Mark packets instead of dropping them (ECN), per direction
    pub ecn: PerDirection<Option<bool>>,
    /// Delay at which the queues aim, per direction
    pub target: PerDirection<Option<Duration>>,
    /// Options of dualpi2, per direction
    pub dual: PerDirection<DualQueueOptions>,
    /// Options of other queueing disciplines, per direction
    pub qdisc: PerDirection<QdiscOptions>,
}

/// The words of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedShaper {
    /// The interface
    pub device: String,
    /// The rest.
    pub line: LineRequest,
}

impl RecordedShaper {
    /// The words behind `linerate shape`.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec![self.device.clone()];
        self.line.add_arguments(&mut words);
        words
    }

    /// Refuses what is wrong with the request on any kernel, before one is probed.
    pub fn check(&self) -> Result<(), ShapeError> {
        let refused = |reason: String| ShapeError::impossible(format!("cannot shape {}: {reason}", self.device));
        let (device, capabilities) = (DeviceProperties::ethernet(&self.device), KernelCapabilities::all_features());
        let (line, policy) = (self.line.link(device.mtu), self.line.policy().map_err(refused)?);
        let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
        let checked = check_request(&inputs, self.line.back_end);
        checked.map_err(|refusal| refused(refusal.message()).with_advice(refusal.way_out))
    }

    /// The same from its words, of which one may name a file of classes.
    pub fn from_arguments(words: &[String]) -> Result<Self, String> {
        Self::from_arguments_with(words, None)
    }

    /// As [`from_arguments`](Self::from_arguments), with the text that the file of classes had when it was recorded.
    pub(crate) fn from_arguments_with(words: &[String], class_file: Option<&str>) -> Result<Self, String> {
        let mut words = words.iter().map(String::as_str);
        let device = words.next().ok_or("there is no interface")?.to_owned();
        let mut line = LineRequest::default();
        while let Some(word) = words.next() {
            if let ("--classes", Some(text)) = (word, class_file) {
                line.class_file = Some(ClassFile::parse(words.next().unwrap_or_default().into(), text)?);
            } else if !line.set_flag(word) {
                line.set(word, words.next().ok_or_else(|| format!("'{word}' has no value"))?)?;
            }
        }
        Ok(Self { device, line })
    }
}

impl LineRequest {
    /// Sets what an option without a value means; `false` for every other word.
    fn set_flag(&mut self, word: &str) -> bool {
        if let "--nat" | "--no-nat" = word {
            self.nat = Some(word == "--nat");
            return true;
        }
        let flag = match word {
            "--trust-marks" => &mut self.trust_marks,
            "--per-flow" => &mut self.per_flow,
            "--variable" => &mut self.variable,
            "--oversubscribe" => &mut self.oversubscribe,
            "--per-host" => &mut self.per_host,
            "--wash" => &mut self.wash,
            "--restore-dscp" => &mut self.restore_dscp,
            "--store-dscp" => &mut self.store_dscp,
            "--ack-filter" => &mut self.ack_filter,
            _ => return false,
        };
        *flag = true;
        true
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--up" => self.up = Some(positive_rate(value)?),
            "--down" => self.down = Some(positive_rate(value)?),
            "--back-end" => self.back_end = Some(back_end(value)?),
            "--link-layer" => self.link_layer = Some(layer_name(value)?),
            "--overhead" => self.overhead = Some(overhead(value)?),
            "--minimum" => self.minimum = Some(overhead(value)?),
            "--framing" => self.framing = Some(framing(value)?),
            "--rtt" => merge(&mut self.rtt, round_trip(value)?),
            "--route-mtu" => self.route_mtu = Some(route_mtu(value)?),
            "--interactive" => self.interactive.push(value.parse()?),
            "--bulk" => self.bulk.push(value.parse()?),
            "--ecn" => merge(&mut self.ecn, ecn(value)?),
            "--target" => merge(&mut self.target, queue_target(value)?),
            "--dualpi2" => merge_dual(&mut self.dual, dual_queue(value)?),
            "--qdisc-options" => merge_qdisc(&mut self.qdisc, qdisc_options(value)?),
            "--class" => self.classes.push(value.parse()?),
            "--classes" => self.class_file = Some(ClassFile::read(value)?),
            _ => return Err(format!("'{option}' is no option of a shaper")),
        }
        Ok(())
    }

    fn add_arguments(&self, words: &mut Vec<String>) {
        self.add_link_arguments(words);
        self.add_traffic_arguments(words);
        let flags = [
            ("trust-marks", self.trust_marks),
            ("per-flow", self.per_flow),
            ("nat", self.nat == Some(true)),
            ("no-nat", self.nat == Some(false)),
            ("variable", self.variable),
            ("oversubscribe", self.oversubscribe),
            ("per-host", self.per_host),
            ("wash", self.wash),
            ("restore-dscp", self.restore_dscp),
            ("store-dscp", self.store_dscp),
            ("ack-filter", self.ack_filter),
        ];
        words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("--{name}")));
    }

    /// Adds the options of the link: its rates, its frames and its round trips.
    fn add_link_arguments(&self, words: &mut Vec<String>) {
        let mut pair = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        for (name, rate) in [("up", self.up), ("down", self.down)] {
            if let Some(rate) = rate {
                pair(name, display::rate_argument(rate));
            }
        }
        if let Some(back_end) = self.back_end {
            pair("back-end", back_end.name().to_owned());
        }
        if let Some(name) = &self.link_layer {
            pair("link-layer", name.clone());
        }
        for (name, size) in [("overhead", self.overhead), ("minimum", self.minimum)] {
            if let Some(size) = size {
                pair(name, size.get().to_string());
            }
        }
        if let Some(framing) = self.framing {
            pair("framing", framing.name().to_owned());
        }
        match (self.rtt.up, self.rtt.down) {
            (Some(up), Some(down)) if up == down => pair("rtt", format!("{}us", up.as_micros())),
            (up, down) => {
                for (name, time) in [("up", up), ("down", down)] {
                    if let Some(time) = time {
                        pair("rtt", format!("{name}={}us", time.as_micros()));
                    }
                }
            }
        }
        if let Some(mtu) = self.route_mtu {
            pair("route-mtu", mtu.get().to_string());
        }
    }

    /// Adds the options of its traffic: priorities, queues per direction, and classes.
    fn add_traffic_arguments(&self, words: &mut Vec<String>) {
        let mut pair = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        for selection in &self.interactive {
            pair("interactive", selection.to_string());
        }
        for selection in &self.bulk {
            pair("bulk", selection.to_string());
        }
        for direction in Direction::BOTH {
            if let Some(is_on) = self.ecn.of(direction) {
                pair("ecn", format!("{}={}", direction.name(), if *is_on { "on" } else { "off" }));
            }
            if let Some(target) = self.target.of(direction) {
                pair("target", format!("{}={}us", direction.name(), target.as_micros()));
            }
            let dual = self.dual.of(direction);
            if !dual.is_default() {
                pair("dualpi2", format!("{}:{dual}", direction.name()));
            }
            let qdisc = self.qdisc.of(direction);
            if !qdisc.is_default() {
                pair("qdisc-options", format!("{}:{qdisc}", direction.name()));
            }
        }
        for class in &self.classes {
            pair("class", class.to_string());
        }
        if let Some(file) = &self.class_file {
            pair("classes", file.path().to_string_lossy().into_owned());
        }
    }

    /// The line, on an interface with this MTU. No packet is larger than the route allows.
    pub(crate) fn link(&self, mtu: Mtu) -> AccessLink {
        AccessLink {
            layer: self.layer(),
            mtu: self.route_mtu.map_or(mtu, |route| route.min(mtu)),
            round_trip: PerDirection {
                up: self.rtt.up.unwrap_or(AccessLink::USUAL_ROUND_TRIP),
                down: self.rtt.down.unwrap_or(AccessLink::USUAL_ROUND_TRIP),
            },
            variable: self.variable,
            ..AccessLink::new(self.up, self.down)
        }
    }

    fn layer(&self) -> LinkLayer {
        let keywords = self.link_layer.as_deref().and_then(|words| parse_keywords(&words.replace(',', " ")));
        let layer = keywords.unwrap_or(LinkLayer::NO_OVERHEAD);
        LinkLayer {
            overhead: self.overhead.unwrap_or(layer.overhead),
            minimum: self.minimum.unwrap_or(layer.minimum),
            framing: self.framing.unwrap_or(layer.framing),
        }
    }

    /// Traffic policy: requested rules come before the usual ones.
    pub(crate) fn policy(&self) -> Result<TrafficPolicy, String> {
        let usual = TrafficPolicy::default();
        let asked = |selections: &[TrafficSelection], importance| -> Vec<TrafficRule> {
            let rule = |selection: &TrafficSelection| TrafficRule {
                selector: selection.selector.clone(),
                importance,
                reason: format!("asked for: {} {selection}", importance.name()),
            };
            selections.iter().map(rule).collect()
        };
        let mut rules = asked(&self.interactive, TrafficImportance::Interactive);
        rules.extend(asked(&self.bulk, TrafficImportance::Bulk));
        rules.extend(usual.rules);
        Ok(TrafficPolicy {
            rules,
            trust_marks: self.trust_marks,
            fairness: if self.per_flow { FairnessUnit::Flows } else { FairnessUnit::Hosts },
            translates_addresses: self.nat,
            divides_hosts: self.per_host,
            classes: self.traffic_classes()?,
            queues: QueueOptions {
                ecn: self.ecn,
                target: self.target,
                dual: self.dual,
                qdisc: self.qdisc,
                filters_acknowledgements: self.ack_filter,
            },
            received_marks: match (self.wash, self.restore_dscp) {
                (_, true) => ReceivedMarks::Restored,
                (true, _) => ReceivedMarks::Washed,
                _ => ReceivedMarks::Untouched,
            },
            stores_codepoints: self.store_dscp,
        })
    }

    /// Classes of the file, and then those of the options.
    fn traffic_classes(&self) -> Result<TrafficClasses, String> {
        let mut classes = self.class_file.as_ref().map(|file| file.classes().clone()).unwrap_or_default();
        for class in &self.classes {
            classes.add(class.class().clone()).map_err(|reason| format!("--class {class}: {reason}"))?;
        }
        classes.oversubscribes = self.oversubscribe;
        Ok(classes)
    }
}

/// Reads a rate of 1 kbit/s to 1 Tbit/s, the range in which `tc` computes its bursts.
pub fn positive_rate(text: &str) -> Result<BitRate, String> {
    let rate = parse::rate(text).map_err(|error| error.to_string())?;
    match rate.bits_per_second() {
        ..1e3 => Err("a line carries at least 1 kbit/s; to leave a direction alone, leave its option out".to_owned()),
        1e3..=1e12 => Ok(rate),
        _ => Err("a line carries at most 1 Tbit/s".to_owned()),
    }
}

/// Reads an MTU of 576 to 9000 bytes.
pub fn route_mtu(text: &str) -> Result<Mtu, String> {
    let bytes: u32 = text.parse().map_err(|_| "an MTU is a number of bytes".to_owned())?;
    if (576..=9000).contains(&bytes) { Ok(Mtu::new(bytes)) } else { Err("576 to 9000 bytes".to_owned()) }
}

/// Reads a size of at most 256 bytes.
pub fn overhead(text: &str) -> Result<ByteCount, String> {
    let size = parse::size(text).map_err(|error| error.to_string())?;
    if size.get() > 256 { Err("at most 256 bytes".to_owned()) } else { Ok(size) }
}

/// Reads the name of a back end.
pub fn back_end(text: &str) -> Result<BackEndId, String> {
    BackEndId::from_name(text).ok_or_else(|| format!("there are {}", BackEndId::names()))
}

/// Reads the keywords of a link layer.
pub fn layer_name(text: &str) -> Result<String, String> {
    let names = || KEYWORDS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let words = text.replace(',', " ");
    parse_keywords(&words)
        .map(|_| words.replace(' ', ","))
        .ok_or_else(|| format!("there are {}, and ether-vlan", names()))
}

/// Reads `on`, `off`, or `up=` or `down=` before them.
pub fn ecn(text: &str) -> Result<PerDirection<Option<bool>>, String> {
    per_direction(text, |value| match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("unknown value '{value}' (expected on or off, or up=on, down=off)")),
    })
}

/// Reads a time of 100 µs to 1 s, or `up=` or `down=` before it.
pub fn queue_target(text: &str) -> Result<PerDirection<Option<Duration>>, String> {
    per_direction(text, |value| {
        let time = parse::time(value).map_err(|error| error.to_string())?;
        let range = Duration::from_micros(100)..=Duration::from_secs(1);
        if range.contains(&time) { Ok(time) } else { Err("a target is 100us to 1s".to_owned()) }
    })
}

/// Reads a time, or `up=` or `down=` before it.
pub fn round_trip(text: &str) -> Result<PerDirection<Option<Duration>>, String> {
    per_direction(text, |value| parse::time(value).map_err(|error| error.to_string()))
}

/// Reads options of `dualpi2`, such as `coupling=2,step=1ms`, or `up:` or `down:` before them.
pub fn dual_queue(text: &str) -> Result<PerDirection<DualQueueOptions>, String> {
    options_per_direction(text)
}

/// Reads options of queueing disciplines, such as `limit=1000,quantum=300`, or `up:` or `down:` before them.
pub fn qdisc_options(text: &str) -> Result<PerDirection<QdiscOptions>, String> {
    options_per_direction(text)
}

fn options_per_direction<T: Copy + Default + FromStr<Err = String>>(text: &str) -> Result<PerDirection<T>, String> {
    let mut options = PerDirection::default();
    match text.split_once(':') {
        None => {
            let both = text.parse()?;
            options = PerDirection { up: both, down: both };
        }
        Some(("up", text)) => options.up = text.parse()?,
        Some(("down", text)) => options.down = text.parse()?,
        Some((other, _)) => return Err(format!("unknown direction '{other}' (expected up or down)")),
    }
    Ok(options)
}

/// Adds later options of queueing disciplines: each counts where it has a value.
pub fn merge_qdisc(sum: &mut PerDirection<QdiscOptions>, later: PerDirection<QdiscOptions>) {
    *sum = PerDirection { up: sum.up.with(later.up), down: sum.down.with(later.down) };
}

/// Adds later options of `dualpi2`: each counts where it has a value.
pub fn merge_dual(sum: &mut PerDirection<DualQueueOptions>, later: PerDirection<DualQueueOptions>) {
    *sum = PerDirection { up: sum.up.with(later.up), down: sum.down.with(later.down) };
}

fn per_direction<T: Copy>(
    text: &str,
    value: impl Fn(&str) -> Result<T, String>,
) -> Result<PerDirection<Option<T>>, String> {
    Ok(match text.split_once('=') {
        None => {
            let both = Some(value(text)?);
            PerDirection { up: both, down: both }
        }
        Some(("up", text)) => PerDirection { up: Some(value(text)?), down: None },
        Some(("down", text)) => PerDirection { up: None, down: Some(value(text)?) },
        Some((other, _)) => return Err(format!("unknown direction '{other}' (expected up or down)")),
    })
}

/// Adds a later option: it counts where it has a value.
pub fn merge<T: Copy>(sum: &mut PerDirection<Option<T>>, later: PerDirection<Option<T>>) {
    *sum = PerDirection { up: later.up.or(sum.up), down: later.down.or(sum.down) };
}

/// Reads the name of a framing.
pub fn framing(text: &str) -> Result<LinkFraming, String> {
    let found = LinkFraming::ALL.into_iter().find(|framing| framing.name() == text);
    found.ok_or_else(|| "there are none, atm and ptm".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RecordedShaper {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        RecordedShaper::from_arguments(&words).expect("understood")
    }

    #[test]
    fn words_lead_back() {
        for text in [
            "eth0 --up 220k --down 850k",
            "eth0 --up 1k --down 1T",
            "ppp0 --up 20M --link-layer pppoe-ptm,ether-vlan --overhead 34 --rtt 50ms --trust-marks --nat --per-flow --variable --route-mtu 576",
            "eth0 --down 1G --back-end htb+fq_codel --framing atm --minimum 64 --interactive tcp/22 --interactive dscp/34 \
             --bulk host/192.0.2.0/24 --bulk mark/0x10 --bulk protocol/47 --no-nat",
            "eth0 --up 1M --per-host --wash --ack-filter --ecn up=off --target down=8ms",
            "eth0 --up 1M --restore-dscp --ecn on --target 5ms",
            "eth0 --up 1M --back-end htb+dualpi2 --dualpi2 coupling=2,step=1ms --dualpi2 down:alpha=0.16,drop=enqueue",
            "eth0 --up 1M --rtt up=30ms --rtt down=80ms --qdisc-options up:tins=diffserv3,ack-filter=aggressive \
             --qdisc-options down:memory=4M,mode=egress,split-gso=off",
            "eth0 --up 1M --rtt 20ms --qdisc-options limit=1000,flows=64,quantum=300,interval=50ms,ce-threshold=1ms",
            "eth0 --up 1M --class 192.0.2.7+2001:db8::/64=400k:1M,100k --class mark/0x10=1M --oversubscribe",
        ] {
            let recorded = parsed(text);
            let again = RecordedShaper::from_arguments(&recorded.arguments()).expect("its own words");
            assert_eq!((again.device, again.line), (recorded.device, recorded.line), "{text}");
        }
    }

    #[test]
    fn rates_are_recorded_as_they_are_typed() {
        for text in
            ["eth0 --up 20M --down 1.5G", "eth0 --up 220k --down 1T", "eth0 --down 999.999k", "eth0 --up 1.001M"]
        {
            assert_eq!(parsed(text).arguments().join(" "), text);
        }
    }

    #[test]
    fn link_layers_add_up() {
        let layer = |text: &str| parsed(text).line.layer();
        let vdsl = layer("eth0 --up 1M --link-layer pppoe-ptm,ether-vlan");
        assert_eq!((vdsl.overhead.get(), vdsl.framing), (34, LinkFraming::Ptm));
        assert_eq!(layer("eth0 --up 1M --link-layer docsis").minimum.get(), 64);
        assert_eq!(layer("eth0 --up 1M --link-layer pppoe-ptm --overhead 8").overhead.get(), 8);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let refused = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            assert!(RecordedShaper::from_arguments(&words).is_err(), "{text}");
        };
        refused("eth0 --up 0");
        refused("eth0 --up 999");
        refused("eth0 --up 10000T");
        refused("eth0 --up 18446744073709551616");
        refused("eth0 --up 20Q");
        refused("eth0 --up 1M --back-end wred");
        refused("eth0 --up 1M --link-layer isdn");
        refused("eth0 --up 1M --overhead 300");
        refused("eth0 --up 1M --interactive tcp");
        refused("eth0 --up 1M --ecn maybe");
        refused("eth0 --up 1M --target side=5ms");
        refused("eth0 --up 1M --target 2s");
        refused("eth0 --up 1M --rtt side=5ms");
        refused("eth0 --up 1M --qdisc-options side:limit=2");
        refused("eth0 --up 1M --qdisc-options limit=0");
        refused("eth0 --up 1M --qdisc-options target=5ms");
        refused("eth0 --up 1M --dualpi2 side:coupling=2");
        refused("eth0 --up 1M --dualpi2 coupling=0");
        refused("eth0 --up 1M --class 192.0.2.7");
        refused("eth0 --up 1M --classes /does/not/exist");
    }

    #[test]
    fn what_is_asked_for_comes_first() {
        let policy = parsed("eth0 --up 1M --bulk tcp/22").line.policy().expect("no classes");
        assert_eq!(policy.rules[0].importance, TrafficImportance::Bulk);
        assert!(policy.has_own_rules() && policy.own_rules().count() == 1);
    }
}
