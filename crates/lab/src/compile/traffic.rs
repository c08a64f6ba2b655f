//! Other traffic: the linerate processes that generate it.

use linerate_units::{BitRate, ByteCount, PacketCount};

use super::address;
use crate::description::{
    DATAGRAM_PAYLOAD, MAX_BURST_DATAGRAMS, PathDescription, TrafficDescription, TrafficKind, TrafficProtocol,
};
use crate::plan;

/// The port of the first flow's server; the others follow. Those of the measurement are below.
pub const FIRST_TRAFFIC_PORT: u16 = 5301;

/// The largest block of TCP.
const MAX_TCP_BLOCK: f64 = 1_048_576.0;

/// The processes of all traffic.
pub(super) fn traffic(path: &PathDescription) -> Vec<plan::TrafficPlan> {
    path.traffic.iter().zip(FIRST_TRAFFIC_PORT..).map(|(traffic, port)| processes(path, traffic, port)).collect()
}

fn processes(path: &PathDescription, traffic: &TrafficDescription, port: u16) -> plan::TrafficPlan {
    let port = port.to_string();
    let mut server = vec!["serve".to_owned(), "--port".to_owned(), port.clone()];
    if let TrafficKind::SlowReader { rate } = traffic.kind {
        server.extend(["--read-rate".to_owned(), rate.whole_bits_per_second().to_string()]);
    }
    plan::TrafficPlan {
        client: traffic.from.clone(),
        client_arguments: client(path, traffic, &port),
        server: traffic.to.clone(),
        server_arguments: server,
        start_milliseconds: u64::try_from(traffic.start.as_millis()).unwrap_or(u64::MAX),
    }
}

fn client(path: &PathDescription, traffic: &TrafficDescription, port: &str) -> Vec<String> {
    let to = path.hosts.iter().position(|host| host.name == traffic.to).unwrap_or_default();
    let (address, _) = address::main_address(to);
    // Zero is unlimited: the lab ends it.
    let seconds = traffic.duration.map_or(0, |duration| duration.as_secs());
    let mut words: Vec<String> = ["iperf3", "-c"].map(str::to_owned).into();
    words.extend([address.to_string(), "-p".to_owned(), port.to_owned(), "-t".to_owned(), seconds.to_string()]);
    words.extend(["-P".to_owned(), traffic.streams.to_string()]);
    if traffic.protocol == TrafficProtocol::Udp {
        words.push("-u".to_owned());
    }
    if let Some(name) = &traffic.congestion_control {
        words.extend(["-C".to_owned(), name.clone()]);
    }
    words.extend(rate_arguments(traffic));
    words
}

/// Options that set the flow's rate.
fn rate_arguments(traffic: &TrafficDescription) -> Vec<String> {
    // iperf3's options are for each stream.
    let each = |rate: BitRate| rate * (1.0 / traffic.streams.as_f64().max(1.0));
    let number = |rate: BitRate| rate.whole_bits_per_second().max(1).to_string();
    let words = |words: &[(&str, String)]| {
        words.iter().flat_map(|(option, value)| [(*option).to_owned(), value.clone()]).collect()
    };
    match (traffic.kind, traffic.protocol) {
        (TrafficKind::Bulk | TrafficKind::SlowReader { .. }, _) => Vec::new(),
        (TrafficKind::Paced { rate }, TrafficProtocol::Tcp) => words(&[("--fq-rate", number(each(rate)))]),
        (TrafficKind::Paced { rate }, TrafficProtocol::Udp) => words(&[("-b", number(each(rate)))]),
        (TrafficKind::ApplicationPaced { rate }, _) => {
            words(&[("-b", number(each(rate))), ("-l", block(each(rate)).get().to_string())])
        }
        (TrafficKind::OnOff { rate, on, off }, protocol) => {
            let burst = (each(rate) * on).as_f64();
            let (datagram, most) = (DATAGRAM_PAYLOAD.as_f64(), PacketCount::new(MAX_BURST_DATAGRAMS).as_f64());
            let block = match protocol {
                TrafficProtocol::Udp => datagram,
                TrafficProtocol::Tcp => (burst / most).ceil().clamp(datagram, MAX_TCP_BLOCK),
            };
            let blocks = (burst / block).round().clamp(1.0, most);
            // Bytes of a period, over the period: the pacer's clock. The socket spreads each burst at the rate.
            let mean = BitRate::from_bits_per_second(blocks * block * 8.0 / (on + off).as_secs_f64());
            words(&[
                ("-b", format!("{}/{blocks}", number(mean))),
                ("-l", format!("{block}")),
                ("--fq-rate", number(each(rate))),
            ])
        }
    }
}

/// Block that an application writes in a hundredth of a second, from 1 KiB to iperf3's usual 128 KiB.
fn block(rate: BitRate) -> ByteCount {
    ByteCount::from_f64((rate.bytes_per_second() / 100.0).clamp(1024.0, 131_072.0))
}
