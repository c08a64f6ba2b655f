//! Other traffic on the path.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, StreamCount};
use toml::Spanned;

use super::error::DescriptionProblem;
use super::quantity::NamedQuantity;
use super::raw::{RawQuantity, RawTraffic};
use super::types::{HostDescription, TrafficDescription, TrafficKind, TrafficProtocol};
use super::{hosts, unknown};

const TRAFFIC_KINDS: [&str; 5] = ["bulk", "paced", "on-off", "slow-reader", "application-paced"];

/// Maximum number of datagrams of a burst in iperf3.
pub(crate) const MAX_BURST_DATAGRAMS: u64 = 1000;

/// Payload of a datagram of on-off traffic, which fits every MTU from 1500 on.
pub(crate) const DATAGRAM_PAYLOAD: ByteCount = ByteCount::new(1440);

/// Maximum number of streams in iperf3.
const MAX_STREAMS: i64 = 128;

pub(super) fn traffic(raw: &RawTraffic, hosts: &[HostDescription]) -> Result<TrafficDescription, DescriptionProblem> {
    let protocol = protocol(raw.protocol.as_ref())?;
    let kind = kind(raw)?;
    check_protocol(raw, kind, protocol, hosts)?;
    let time = |what, text: &Option<Spanned<RawQuantity>>| {
        text.as_ref().map(|text| NamedQuantity { what, text }.time()).transpose()
    };
    let traffic = TrafficDescription {
        kind,
        from: host(&raw.from, hosts)?,
        to: host(&raw.to, hosts)?,
        protocol,
        streams: streams(raw.streams.as_ref())?,
        congestion_control: raw.congestion_control.as_ref().map(hosts::congestion_control).transpose()?,
        start: time("the start", &raw.start)?.unwrap_or_default(),
        duration: duration(raw.duration.as_ref())?,
    };
    if traffic.from == traffic.to {
        let message = format!("the traffic goes from '{}' to itself", traffic.from);
        return Err(DescriptionProblem::new(raw.to.span(), message, "name another host"));
    }
    Ok(traffic)
}

fn host(name: &Spanned<String>, hosts: &[HostDescription]) -> Result<String, DescriptionProblem> {
    match hosts.iter().find(|host| host.name == *name.get_ref()) {
        Some(host) => Ok(host.name.clone()),
        None => Err(unknown(name, "host", hosts.iter().map(|host| host.name.as_str()))),
    }
}

fn protocol(text: Option<&Spanned<String>>) -> Result<TrafficProtocol, DescriptionProblem> {
    match text {
        None => Ok(TrafficProtocol::Tcp),
        Some(text) => match text.get_ref().as_str() {
            "tcp" => Ok(TrafficProtocol::Tcp),
            "udp" => Ok(TrafficProtocol::Udp),
            _ => Err(unknown(text, "protocol", ["tcp", "udp"].into_iter())),
        },
    }
}

fn kind(raw: &RawTraffic) -> Result<TrafficKind, DescriptionProblem> {
    let kind = raw.kind.get_ref().as_str();
    if kind != "on-off"
        && let Some(text) = raw.on.as_ref().or(raw.off.as_ref())
    {
        let message = format!("traffic of the kind '{kind}' does not pause");
        return Err(DescriptionProblem::new(text.span(), message, "write kind = \"on-off\", or remove 'on' and 'off'"));
    }
    match kind {
        "bulk" => match &raw.rate {
            None => Ok(TrafficKind::Bulk),
            Some(text) => Err(DescriptionProblem::new(
                text.span(),
                "bulk traffic has no rate: it takes the whole path",
                "write kind = \"paced\" or \"application-paced\", or remove the rate",
            )),
        },
        "paced" => rate(raw).map(|rate| TrafficKind::Paced { rate }),
        "slow-reader" => rate(raw).map(|rate| TrafficKind::SlowReader { rate }),
        "application-paced" => rate(raw).map(|rate| TrafficKind::ApplicationPaced { rate }),
        "on-off" => Ok(TrafficKind::OnOff {
            rate: rate(raw)?,
            on: phase(raw, raw.on.as_ref(), "on")?,
            off: phase(raw, raw.off.as_ref(), "off")?,
        }),
        _ => Err(unknown(&raw.kind, "kind of traffic", TRAFFIC_KINDS.into_iter())),
    }
}

fn rate(raw: &RawTraffic) -> Result<BitRate, DescriptionProblem> {
    let Some(text) = &raw.rate else {
        let message = format!("traffic of the kind '{}' needs a rate", raw.kind.get_ref());
        return Err(DescriptionProblem::new(raw.kind.span(), message, "add a rate, such as rate = \"5 Mbit/s\""));
    };
    NamedQuantity { what: "the rate", text }.rate()
}

fn phase(
    raw: &RawTraffic,
    text: Option<&Spanned<RawQuantity>>,
    which: &'static str,
) -> Result<Duration, DescriptionProblem> {
    let Some(text) = text else {
        let message = format!("on-off traffic has no duration '{which}'");
        return Err(DescriptionProblem::new(raw.kind.span(), message, format!("add {which} = \"1 s\"")));
    };
    NamedQuantity { what: which, text }.positive_time()
}

fn streams(count: Option<&Spanned<i64>>) -> Result<StreamCount, DescriptionProblem> {
    let Some(count) = count else { return Ok(StreamCount::new(1)) };
    match u64::try_from(*count.get_ref()) {
        Ok(number) if (1..=MAX_STREAMS).contains(count.get_ref()) => Ok(StreamCount::new(number)),
        _ => {
            let message = format!("{} streams are not possible", count.get_ref());
            Err(DescriptionProblem::new(count.span(), message, format!("write a number from 1 to {MAX_STREAMS}")))
        }
    }
}

/// Duration in whole seconds, the resolution of the senders.
fn duration(text: Option<&Spanned<RawQuantity>>) -> Result<Option<Duration>, DescriptionProblem> {
    let Some(text) = text else { return Ok(None) };
    let duration = NamedQuantity { what: "the duration", text }.positive_time()?;
    if duration.subsec_nanos() != 0 {
        return Err(DescriptionProblem::new(
            text.span(),
            "the duration is not in whole seconds",
            "write \"1 s\", \"2 s\", …",
        ));
    }
    Ok(Some(duration))
}

/// UDP has neither windows nor congestion control; and only fair queueing paces its sockets.
fn check_protocol(
    raw: &RawTraffic,
    kind: TrafficKind,
    protocol: TrafficProtocol,
    hosts: &[HostDescription],
) -> Result<(), DescriptionProblem> {
    if protocol == TrafficProtocol::Tcp {
        return Ok(());
    }
    if !matches!(kind, TrafficKind::Paced { .. } | TrafficKind::OnOff { .. }) {
        let message = format!("traffic of the kind '{}' is TCP", raw.kind.get_ref());
        return Err(DescriptionProblem::new(raw.kind.span(), message, "write kind = \"paced\" or \"on-off\" for UDP"));
    }
    if let Some(text) = &raw.congestion_control {
        return Err(DescriptionProblem::new(
            text.span(),
            "UDP has no congestion control",
            "remove it, or write protocol = \"tcp\"",
        ));
    }
    let sender = hosts.iter().find(|host| host.name == *raw.from.get_ref());
    if matches!(kind, TrafficKind::OnOff { .. }) && sender.is_some_and(|host| host.queueing.as_deref() != Some("fq")) {
        return Err(DescriptionProblem::new(
            raw.kind.span(),
            format!("'{}' cannot send bursts of UDP at a rate: only fair queueing paces them", raw.from.get_ref()),
            format!("add queueing = \"fq\" to [host.{}], or use TCP", raw.from.get_ref()),
        ));
    }
    check_burst(raw, kind)
}

/// Checks that a UDP sender's burst has at most iperf3's number of datagrams.
fn check_burst(raw: &RawTraffic, kind: TrafficKind) -> Result<(), DescriptionProblem> {
    let (TrafficKind::OnOff { rate, on, .. }, Some(text)) = (kind, &raw.on) else { return Ok(()) };
    let streams = streams(raw.streams.as_ref())?;
    if (rate * on).get() <= MAX_BURST_DATAGRAMS * DATAGRAM_PAYLOAD.get() * streams.get() {
        return Ok(());
    }
    let message = format!(
        "at {rate} a stream sends more than {MAX_BURST_DATAGRAMS} datagrams of {DATAGRAM_PAYLOAD} in that time"
    );
    Err(DescriptionProblem::new(text.span(), message, "write a shorter 'on', a lower rate or more streams"))
}
