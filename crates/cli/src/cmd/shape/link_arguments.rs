//! The command line's part of a shaper's request: the access link and what matters on it.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_operate::shaping::class_file::{ClassFile, ClassOption};
use linerate_operate::shaping::line::{LineRequest, back_end, framing, layer_name, overhead, positive_rate, route_mtu};
use linerate_operate::shaping::selection::TrafficSelection;
use linerate_shape::back_ends::BackEndId;
use linerate_shape::link::Framing;
use linerate_units::{BitRate, ByteCount, Mtu};

use crate::{completion, values};

/// Access link and policy.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct LinkArguments {
    /// Uplink rate to shape to, for example 20M or 220k: slightly below the link's own
    #[arg(short, long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<BitRate>,
    /// Downlink rate to shape to
    #[arg(short, long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<BitRate>,
    /// Back end instead of the best one that this kernel supports
    #[arg(long, value_name = "BACK_END", value_parser = back_end, add = ArgValueCompleter::new(completion::back_ends))]
    pub(crate) back_end: Option<BackEndId>,
    /// Link-layer overhead preset (CAKE keywords: pppoe-ptm, pppoe-llcsnap, bridged-ptm, docsis, ethernet, …); append
    /// `,ether-vlan` for packets with a VLAN tag
    #[arg(long, value_name = "KEYWORD", value_parser = layer_name)]
    pub(crate) link_layer: Option<String>,
    /// Overhead per IP packet in bytes, instead of the preset's
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    pub(crate) overhead: Option<ByteCount>,
    /// Link-layer framing: none, atm (cells of 53 bytes) or ptm (65 bytes for 64)
    #[arg(long, value_name = "FRAMING", value_parser = framing)]
    pub(crate) framing: Option<Framing>,
    /// Minimum packet size on the link (MPU)
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    pub(crate) minimum: Option<ByteCount>,
    /// Round trip for which queues are tuned [default: 100ms, typical of the Internet]
    #[arg(long, value_name = "TIME", value_parser = values::delay)]
    pub(crate) rtt: Option<Duration>,
    /// Prioritise this traffic, in addition to key strokes, acknowledgements, new connections, pings and DNS: tcp/22,
    /// udp/5060, dscp/34, host/192.0.2.0/24, protocol/47
    #[arg(long, value_name = "WHAT")]
    pub(crate) interactive: Vec<TrafficSelection>,
    /// Send this traffic last
    #[arg(long, value_name = "WHAT")]
    pub(crate) bulk: Vec<TrafficSelection>,
    /// Trust the DSCP of packets, including received ones
    #[arg(long)]
    pub(crate) trust_marks: bool,
    /// Share equally between flows instead of between local hosts first
    #[arg(long)]
    pub(crate) per_flow: bool,
    /// This host does NAT: distinguish the hosts behind it [default: as the host's rules masquerade]
    #[arg(long, overrides_with = "no_nat")]
    pub(crate) nat: bool,
    /// Do not distinguish hosts behind NAT, whatever the host's rules are
    #[arg(long, overrides_with = "nat")]
    pub(crate) no_nat: bool,
    /// Variable capacity, as on LTE or Starlink: tune queues for flows that refill it. Implied by --autorate
    #[arg(long)]
    pub(crate) variable: bool,
    /// Also set this MTU on the default route, or on the route to --verify's host, to reduce serialisation delay on
    /// slow links
    #[arg(long, value_name = "BYTES", value_parser = route_mtu)]
    pub(crate) route_mtu: Option<Mtu>,
    /// Class with a rate of its own for a device, such as 192.0.2.7=10M, 2001:db8::/56=20M:50M (guaranteed and ceiling),
    /// mark/0x10=5M,1M (down, up) or dscp/34=2M; several selectors are joined by +
    #[arg(long, value_name = "MATCH=RATE")]
    pub(crate) class: Vec<ClassOption>,
    /// File of such classes and groups of them: match,name,group,down,up
    #[arg(long, value_name = "FILE", value_parser = ClassFile::read, value_hint = clap::ValueHint::FilePath)]
    pub(crate) classes: Option<ClassFile>,
    /// Scale the guaranteed rates of classes that add up to more than the link's; their ceilings stay
    #[arg(long)]
    pub(crate) oversubscribe: bool,
}

impl LinkArguments {
    /// The same as a request.
    pub(crate) fn request(&self) -> LineRequest {
        LineRequest {
            up: self.up,
            down: self.down,
            back_end: self.back_end,
            link_layer: self.link_layer.clone(),
            overhead: self.overhead,
            framing: self.framing,
            minimum: self.minimum,
            rtt: self.rtt,
            interactive: self.interactive.clone(),
            bulk: self.bulk.clone(),
            trust_marks: self.trust_marks,
            per_flow: self.per_flow,
            nat: (self.nat || self.no_nat).then_some(self.nat),
            variable: self.variable,
            route_mtu: self.route_mtu,
            classes: self.class.clone(),
            class_file: self.classes.clone(),
            oversubscribe: self.oversubscribe,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use linerate_operate::shaping::line::RecordedShaper;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Typed {
        device: String,
        #[command(flatten)]
        line: LinkArguments,
    }

    fn typed(words: &[String]) -> RecordedShaper {
        let typed = Typed::try_parse_from(words).expect("understood");
        RecordedShaper { device: typed.device, line: typed.line.request() }
    }

    #[test]
    fn the_command_line_and_the_record_agree() {
        for text in [
            "eth0 --up 220k --down 850k",
            "ppp0 --up 20M --link-layer pppoe-ptm,ether-vlan --overhead 34 --rtt 50ms --trust-marks --nat --per-flow --variable --route-mtu 576",
            "eth0 -d 1G --back-end htb+fq_codel --framing atm --minimum 64 --interactive tcp/22 --interactive dscp/34 \
             --bulk host/192.0.2.0/24 --bulk protocol/47 --no-nat",
            "eth0 --up 1M --class 192.0.2.7+2001:db8::/64=400k:1M,100k --class mark/0x10=1M --oversubscribe",
        ] {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let recorded = typed(&words);
            assert_eq!(typed(&recorded.arguments()), recorded, "{text}");
            assert_eq!(RecordedShaper::from_arguments(&recorded.arguments()), Ok(recorded), "{text}");
        }
    }
}
