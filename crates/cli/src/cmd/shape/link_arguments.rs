//! The command line's part of a shaper's request: the access link and what matters on it.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_operate::shaping::class_file::{ClassFile, ClassOption};
use linerate_operate::shaping::error::ShapeError;
use linerate_operate::shaping::line::{
    LineRequest, back_end, dual_queue, ecn, framing, layer_name, merge, merge_dual, merge_qdisc, overhead,
    positive_rate, qdisc_options, queue_target, round_trip, route_mtu,
};
use linerate_operate::shaping::selection::TrafficSelection;
use linerate_shape::back_ends::BackEndId;
use linerate_shape::link::LinkFraming;
use linerate_shape::policy::{DualQueueOptions, QdiscOptions};
use linerate_shape::verify::PerDirection;
use linerate_units::{BitRate, ByteCount, Mtu};

use crate::completion;

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
    pub(crate) framing: Option<LinkFraming>,
    /// Minimum packet size on the link (MPU)
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    pub(crate) minimum: Option<ByteCount>,
    /// Round trip for which queues are tuned, or up=30ms, down=80ms [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    pub(crate) rtt: Vec<PerDirection<Option<Duration>>>,
    /// Prioritise this traffic, in addition to key strokes, acknowledgements, new connections, pings and DNS: tcp/22,
    /// udp/5060, dscp/34, mark/0x10, host/192.0.2.0/24, protocol/47
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
    /// Class with a rate of its own for a device, such as 192.0.2.7=10M, 192.0.2.0/24=20M:50M (guaranteed and ceiling),
    /// mark/0x10=5M,1M (down, up) or dscp/34=2M; several selectors are joined by +
    #[arg(long, value_name = "MATCH=RATE")]
    pub(crate) class: Vec<ClassOption>,
    /// File of such classes and groups of them: match,name,group,down,up
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) classes: Option<String>,
    /// Scale the guaranteed rates of classes that add up to more than the link's; their ceilings stay
    #[arg(long)]
    pub(crate) oversubscribe: bool,
    /// Share equally between hosts without CAKE, too: a class for each of 64 hash values of their addresses
    #[arg(long, conflicts_with = "per_flow")]
    pub(crate) per_host: bool,
    /// Clear the DSCP of received packets
    #[arg(long, conflicts_with = "trust_marks")]
    pub(crate) wash: bool,
    /// Restore the DSCP of received packets from bits 26 to 31 of their connection's mark, where bit 24 is set
    #[arg(long, conflicts_with = "wash")]
    pub(crate) restore_dscp: bool,
    /// Store the DSCP of sent packets in the mark of their connection, for --restore-dscp (a table of nftables)
    #[arg(long)]
    pub(crate) store_dscp: bool,
    /// Drop acknowledgements that later ones make redundant, for links that are much slower up (CAKE)
    #[arg(long)]
    pub(crate) ack_filter: bool,
    /// Mark packets instead of dropping them: on or off, or up=on, down=off
    #[arg(long, value_name = "ON_OFF", value_parser = ecn)]
    pub(crate) ecn: Vec<PerDirection<Option<bool>>>,
    /// Delay at which queues aim: a time such as 5ms, or up=15ms, down=5ms
    #[arg(long, value_name = "TIME", value_parser = queue_target)]
    pub(crate) target: Vec<PerDirection<Option<Duration>>>,
    /// Options of htb+dualpi2, such as coupling=2,step=1ms or down:alpha=0.16,beta=3.2,tupdate=16ms
    #[arg(long, value_name = "OPTIONS", value_parser = dual_queue)]
    pub(crate) dualpi2: Vec<PerDirection<DualQueueOptions>>,
    /// Queue options, such as tins=diffserv3 (cake) or up:limit=1000,quantum=300 (htb+*)
    #[arg(long, value_name = "OPTIONS", value_parser = qdisc_options)]
    pub(crate) qdisc_options: Vec<PerDirection<QdiscOptions>>,
}

impl LinkArguments {
    /// The same as a request, with the classes of the file.
    pub(crate) fn request(&self) -> Result<LineRequest, ShapeError> {
        let class_file = self.classes.as_deref().map(ClassFile::read).transpose().map_err(ShapeError::impossible)?;
        let (mut ecn, mut target) = (PerDirection::default(), PerDirection::default());
        self.ecn.iter().for_each(|one| merge(&mut ecn, *one));
        self.target.iter().for_each(|one| merge(&mut target, *one));
        let (mut dual, mut rtt, mut qdisc) =
            (PerDirection::default(), PerDirection::default(), PerDirection::default());
        self.rtt.iter().for_each(|one| merge(&mut rtt, *one));
        self.qdisc_options.iter().for_each(|one| merge_qdisc(&mut qdisc, *one));
        self.dualpi2.iter().for_each(|one| merge_dual(&mut dual, *one));
        Ok(LineRequest {
            up: self.up,
            down: self.down,
            back_end: self.back_end,
            link_layer: self.link_layer.clone(),
            overhead: self.overhead,
            framing: self.framing,
            minimum: self.minimum,
            rtt,
            interactive: self.interactive.clone(),
            bulk: self.bulk.clone(),
            trust_marks: self.trust_marks,
            per_flow: self.per_flow,
            nat: (self.nat || self.no_nat).then_some(self.nat),
            variable: self.variable,
            route_mtu: self.route_mtu,
            classes: self.class.clone(),
            class_file,
            oversubscribe: self.oversubscribe,
            per_host: self.per_host,
            wash: self.wash,
            restore_dscp: self.restore_dscp,
            store_dscp: self.store_dscp,
            ack_filter: self.ack_filter,
            ecn,
            target,
            dual,
            qdisc,
        })
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
        RecordedShaper { device: typed.device, line: typed.line.request().expect("no file") }
    }

    #[test]
    fn the_command_line_and_the_record_agree() {
        for text in [
            "eth0 --up 220k --down 850k",
            "ppp0 --up 20M --link-layer pppoe-ptm,ether-vlan --overhead 34 --rtt 50ms --trust-marks --nat --per-flow --variable --route-mtu 576",
            "eth0 -d 1G --back-end htb+fq_codel --framing atm --minimum 64 --interactive tcp/22 --interactive dscp/34 \
             --bulk host/192.0.2.0/24 --bulk mark/0x10 --bulk protocol/47 --no-nat",
            "eth0 --up 1M --per-host --wash --ack-filter --ecn up=off --target down=8ms",
            "eth0 --up 1M --restore-dscp --store-dscp --ecn on --target 5ms",
            "eth0 --up 1M --back-end htb+dualpi2 --dualpi2 coupling=2,step=1ms --dualpi2 down:alpha=0.16,drop=enqueue",
            "eth0 --up 1M --rtt up=30ms --rtt down=80ms --qdisc-options up:tins=diffserv3,ack-filter=aggressive",
            "eth0 --up 1M --rtt 20ms --qdisc-options limit=1000,flows=64 --qdisc-options down:quantum=300,memory=4M",
            "eth0 --up 1M --class 192.0.2.7+2001:db8::/64=400k:1M,100k --class mark/0x10=1M --oversubscribe",
        ] {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let recorded = typed(&words);
            assert_eq!(typed(&recorded.arguments()), recorded, "{text}");
            assert_eq!(RecordedShaper::from_arguments(&recorded.arguments()), Ok(recorded), "{text}");
        }
    }
}
