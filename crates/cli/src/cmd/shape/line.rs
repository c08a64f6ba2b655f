//! What is asked of a shaper, as words of the command line: they are what is recorded, so that the same can be set up again.

use std::time::Duration;

use clap::{Args, Parser};
use linerate_shape::back_ends::BACK_ENDS;
use linerate_shape::link::{Framing, KEYWORDS, Line, LinkLayer, keyword};
use linerate_shape::policy::{Fairness, Importance, Policy, Rule};
use linerate_units::{BitRate, ByteCount, Mtu};

use super::selection::Selection;
use crate::app;

/// The line and what matters on it.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct LineArguments {
    /// Rate to which what this host sends is held, for example 20M or 220k: a little below the line's own
    #[arg(short, long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<BitRate>,
    /// Rate to which what it receives is held
    #[arg(short, long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<BitRate>,
    /// How to shape, instead of the best that this kernel has
    #[arg(long, value_name = "BACK_END", value_parser = back_end)]
    pub(crate) back_end: Option<String>,
    /// What the line is, in CAKE's words: pppoe-ptm, pppoe-llcsnap, bridged-ptm, docsis, ethernet, …; with
    /// `,ether-vlan` behind it where packets have a VLAN's tag
    #[arg(long, value_name = "KEYWORD", value_parser = layer_name)]
    pub(crate) link_layer: Option<String>,
    /// Bytes that the line adds to each IP packet, instead of the link layer's own
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    pub(crate) overhead: Option<ByteCount>,
    /// How the line cuts packets up: none, atm (cells of 53 bytes) or ptm (65 for 64)
    #[arg(long, value_name = "FRAMING", value_parser = framing)]
    pub(crate) framing: Option<Framing>,
    /// The least that a packet occupies on the line
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    pub(crate) minimum: Option<ByteCount>,
    /// Round trip for which queues are tuned; without it 100ms, as most of the Internet has
    #[arg(long, value_name = "TIME", value_parser = app::duration)]
    pub(crate) rtt: Option<Duration>,
    /// What goes first, besides key strokes, acknowledgements, pings and name lookups: tcp/22, udp/5060, dscp/34,
    /// host/192.0.2.0/24, protocol/47
    #[arg(long, value_name = "WHAT")]
    pub(crate) interactive: Vec<Selection>,
    /// What goes last
    #[arg(long, value_name = "WHAT")]
    pub(crate) bulk: Vec<Selection>,
    /// Believe the codepoints (DSCP) of packets, received ones too
    #[arg(long)]
    pub(crate) trust_marks: bool,
    /// Share equally between flows; without it, between the hosts on this side first
    #[arg(long)]
    pub(crate) per_flow: bool,
    /// This host translates addresses (NAT): tell the hosts behind it apart
    #[arg(long)]
    pub(crate) nat: bool,
    /// The capacity changes, as on LTE or with Starlink: tune queues for flows that refill it. --autorate implies it
    #[arg(long)]
    pub(crate) variable: bool,
    /// Also let this host's packets towards the line be no larger than this, by the MTU of the default route, or of the one
    /// to --verify's host: on slow lines a large packet is what others wait for
    #[arg(long, value_name = "BYTES", value_parser = route_mtu)]
    pub(crate) route_mtu: Option<Mtu>,
}

/// The words of a record.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Recorded {
    /// The interface
    pub(crate) device: String,
    /// The rest.
    #[command(flatten)]
    pub(crate) line: LineArguments,
}

impl Recorded {
    /// The words behind `linerate shape`.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![self.device.clone()];
        self.line.add_words(&mut words);
        words
    }

    /// The same from its words.
    pub(crate) fn from_words(words: &[String]) -> Result<Self, String> {
        Self::try_parse_from(words).map_err(|error| error.to_string())
    }
}

impl LineArguments {
    fn add_words(&self, words: &mut Vec<String>) {
        let mut pair = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        for (name, rate) in [("up", self.up), ("down", self.down)] {
            if let Some(rate) = rate {
                pair(name, bare(rate.bits_per_second()));
            }
        }
        if let Some(back_end) = &self.back_end {
            pair("back-end", back_end.clone());
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
            pair("framing", framing_name(framing).to_owned());
        }
        if let Some(time) = self.rtt {
            pair("rtt", format!("{}us", time.as_micros()));
        }
        if let Some(mtu) = self.route_mtu {
            pair("route-mtu", mtu.get().to_string());
        }
        for selection in &self.interactive {
            pair("interactive", selection.to_string());
        }
        for selection in &self.bulk {
            pair("bulk", selection.to_string());
        }
        let flags = [
            ("trust-marks", self.trust_marks),
            ("per-flow", self.per_flow),
            ("nat", self.nat),
            ("variable", self.variable),
        ];
        words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("--{name}")));
    }

    /// The line, on an interface with this MTU. No packet is larger than the route allows.
    pub(crate) fn line(&self, mtu: Mtu) -> Line {
        Line {
            layer: self.layer(),
            mtu: self.route_mtu.map_or(mtu, |route| route.min(mtu)),
            round_trip: self.rtt.unwrap_or(Line::USUAL_ROUND_TRIP),
            variable: self.variable,
            ..Line::new(self.up, self.down)
        }
    }

    fn layer(&self) -> LinkLayer {
        let layer = self.link_layer.as_deref().and_then(|words| keyword(&words.replace(',', " "))).unwrap_or_default();
        LinkLayer {
            overhead: self.overhead.unwrap_or(layer.overhead),
            minimum: self.minimum.unwrap_or(layer.minimum),
            framing: self.framing.unwrap_or(layer.framing),
        }
    }

    /// What matters: what is asked for comes before the usual rules.
    pub(crate) fn policy(&self) -> Policy {
        let usual = Policy::default();
        let asked = |selections: &[Selection], importance| -> Vec<Rule> {
            let rule = |selection: &Selection| Rule {
                selector: selection.selector.clone(),
                importance,
                reason: format!("asked for: {} {selection}", importance.name()),
            };
            selections.iter().map(rule).collect()
        };
        let mut rules = asked(&self.interactive, Importance::Interactive);
        rules.extend(asked(&self.bulk, Importance::Bulk));
        rules.extend(usual.rules);
        Policy {
            rules,
            trust_marks: self.trust_marks,
            fairness: if self.per_flow { Fairness::Flows } else { Fairness::Hosts },
            translates_addresses: self.nat,
        }
    }
}

/// Whole bits, so that the same rate is the same word.
fn bare(bits: f64) -> String {
    format!("{bits:.0}")
}

fn positive_rate(text: &str) -> Result<BitRate, String> {
    let rate = app::rate(text)?;
    if rate.bits_per_second() < 1000.0 {
        return Err("a line is faster than 1 kbit/s; to leave a direction alone, leave its option out".to_owned());
    }
    Ok(rate)
}

fn route_mtu(text: &str) -> Result<Mtu, String> {
    let bytes: u32 = text.parse().map_err(|_| "an MTU is a number of bytes".to_owned())?;
    if (576..=9000).contains(&bytes) { Ok(Mtu::new(bytes)) } else { Err("576 to 9000 bytes".to_owned()) }
}

fn overhead(text: &str) -> Result<ByteCount, String> {
    let size = app::size(text)?;
    if size.get() > 256 { Err("at most 256 bytes".to_owned()) } else { Ok(size) }
}

fn back_end(text: &str) -> Result<String, String> {
    let names = || BACK_ENDS.iter().map(|one| one.id).collect::<Vec<_>>().join(", ");
    let known = linerate_shape::back_ends::by_id(text).map(|one| one.id.to_owned());
    known.ok_or_else(|| format!("there are {}", names()))
}

fn layer_name(text: &str) -> Result<String, String> {
    let names = || KEYWORDS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let words = text.replace(',', " ");
    keyword(&words).map(|_| words.replace(' ', ",")).ok_or_else(|| format!("there are {}, and ether-vlan", names()))
}

const FRAMINGS: [(&str, Framing); 3] = [("none", Framing::None), ("atm", Framing::Atm), ("ptm", Framing::Ptm)];

fn framing(text: &str) -> Result<Framing, String> {
    let found = FRAMINGS.iter().find(|(name, _)| *name == text);
    found.map(|(_, framing)| *framing).ok_or_else(|| "there are none, atm and ptm".to_owned())
}

fn framing_name(framing: Framing) -> &'static str {
    FRAMINGS.iter().find(|(_, one)| *one == framing).map_or("none", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Recorded {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Recorded::from_words(&words).expect("understood")
    }

    #[test]
    fn words_lead_back() {
        for text in [
            "eth0 --up 220k --down 850k",
            "ppp0 --up 20M --link-layer pppoe-ptm,ether-vlan --overhead 34 --rtt 50ms --trust-marks --nat --per-flow --variable --route-mtu 576",
            "eth0 -d 1G --back-end htb+fq_codel --framing atm --minimum 64 --interactive tcp/22 --interactive dscp/34 \
             --bulk host/192.0.2.0/24 --bulk protocol/47",
        ] {
            let recorded = parsed(text);
            let again = Recorded::from_words(&recorded.words()).expect("its own words");
            assert_eq!((again.device, again.line), (recorded.device, recorded.line), "{text}");
        }
    }

    #[test]
    fn link_layers_add_up() {
        let layer = |text: &str| parsed(text).line.layer();
        let vdsl = layer("eth0 --up 1M --link-layer pppoe-ptm,ether-vlan");
        assert_eq!((vdsl.overhead.get(), vdsl.framing), (34, Framing::Ptm));
        assert_eq!(layer("eth0 --up 1M --link-layer docsis").minimum.get(), 64);
        assert_eq!(layer("eth0 --up 1M --link-layer pppoe-ptm --overhead 8").overhead.get(), 8);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let refused = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            assert!(Recorded::from_words(&words).is_err(), "{text}");
        };
        refused("eth0 --up 0");
        refused("eth0 --up 20Q");
        refused("eth0 --up 1M --back-end wred");
        refused("eth0 --up 1M --link-layer isdn");
        refused("eth0 --up 1M --overhead 300");
        refused("eth0 --up 1M --interactive tcp");
    }

    #[test]
    fn what_is_asked_for_comes_first() {
        let policy = parsed("eth0 --up 1M --bulk tcp/22").line.policy();
        assert_eq!(policy.rules[0].importance, Importance::Bulk);
        assert!(policy.has_own_rules() && policy.own_rules().count() == 1);
    }
}
