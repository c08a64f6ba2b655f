//! Bounds that the formulas predict for a path, before anything is measured.
//!
//! Each bound applies by itself: the lowest one is the most that a single long connection can reach, and it determines
//! what limits the path.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::formulas::{
    self, InternetProtocol, SegmentFraming, bandwidth_delay_product, loss_limited_rate, policed_goodput,
    queueing_delay, usable_window, window_rate, window_share,
};
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio};

use crate::compile::sysctl;
use crate::description::{HostDescription, LinkLayer, PathDescription};
use crate::sizing;

/// Limiting factor of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundCause {
    /// The rate of the slowest link.
    Link,
    /// A policer.
    Policer,
    /// The receive buffer.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// Random loss.
    Loss,
}

/// The slowest link of a direction; where rates change with time, the one whose highest rate is the lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BottleneckLink {
    /// Index of the link, from 0 at near.
    pub link: usize,
    /// Rate, link layer included: the highest that it has at any time, which sets the bound.
    pub rate: BitRate,
    /// Lowest rate at any time; where it does not change, the same.
    pub lowest_rate: BitRate,
    /// Capacity of its queue; `None` for no limit.
    pub buffer: Option<ByteCount>,
    /// The delay that its full queue adds, at the lowest rate; `None` for no limit.
    pub queueing_delay: Option<Duration>,
}

/// Predicted bounds of one connection in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct PathBounds {
    /// Round trip of a packet without queueing and serialisation: all delays.
    pub base_rtt: Duration,
    /// Round trip of a full segment and its acknowledgement without queueing, with their serialisation on each link.
    pub segment_rtt: Duration,
    /// Payload of a full segment over IPv4.
    pub segment: Option<Mss>,
    /// The slowest link; `None` where none has a rate.
    pub bottleneck: Option<BottleneckLink>,
    /// TCP payload rate of the slowest link, or of the sender's own queueing discipline where that has a lower rate.
    pub goodput_ceiling: Option<BitRate>,
    /// TCP payload rate that the strictest policer passes.
    pub policer_ceiling: Option<BitRate>,
    /// Bandwidth-delay product of the slowest link's rate.
    pub bdp: Option<ByteCount>,
    /// Largest window that the receiver offers.
    pub receive_window: ByteCount,
    /// Rate of that window.
    pub receive_window_rate: Option<BitRate>,
    /// Largest send buffer. It holds less payload: Linux counts its own structures, too.
    pub send_buffer: ByteCount,
    /// Rate of a window as large as the send buffer, which is never reached: usual are 60 to 80 % of it.
    pub send_buffer_rate: Option<BitRate>,
    /// Share of lost packets, duplicated ones not counted; `None` without loss.
    pub loss: Option<Ratio>,
    /// Rate that the sender's congestion control sustains under that loss; `None` without loss, and where loss sets no
    /// bound.
    pub loss_rate: Option<BitRate>,
    /// Time that slow start takes to fill the slowest link.
    pub slow_start: Option<Duration>,
}

impl PathBounds {
    /// The lowest bound and its cause; `None` where there is none.
    #[must_use]
    pub fn lowest(&self) -> Option<(BoundCause, BitRate)> {
        [
            (BoundCause::Link, self.goodput_ceiling),
            (BoundCause::Policer, self.policer_ceiling),
            (BoundCause::ReceiveWindow, self.receive_window_rate),
            (BoundCause::SendBuffer, self.send_buffer_rate),
            (BoundCause::Loss, self.loss_rate),
        ]
        .into_iter()
        .filter_map(|(cause, rate)| rate.map(|rate| (cause, rate)))
        .min_by_key(|(_, rate)| *rate)
    }
}

/// Bounds of a path in one direction: for one TCP connection over IPv4 with the hosts' own settings.
#[must_use]
pub fn bounds(path: &PathDescription, way: Direction) -> PathBounds {
    let (sender, receiver) = ends(path, way);
    let mtu = path_mtu(path);
    let bottleneck = bottleneck(path, way);
    let layer =
        bottleneck.map_or(LinkLayer::VIRTUAL_ETHERNET, |bottleneck| path.links[bottleneck.link].direction(way).layer);
    let framing = SegmentFraming {
        mtu,
        protocol: InternetProtocol::V4,
        timestamps: is_on(sender, "net.ipv4.tcp_timestamps") && is_on(receiver, "net.ipv4.tcp_timestamps"),
        link: layer.counted(mtu.byte_count()) - mtu.byte_count(),
    };
    let own_queue = SegmentFraming { link: SegmentFraming::ETHERNET_HEADER, ..framing };
    let (base_rtt, segment) = (path.propagation(), framing.segment());
    let segment_rtt = segment_rtt(path, way, mtu);
    let receive_window = receive_window(sender, receiver, segment);
    let send_buffer = largest_buffer(sender, "net.ipv4.tcp_wmem", sysctl::DEFAULT_TCP_WMEM);
    let loss = loss(path, way);
    let policer = path.links.iter().filter_map(|link| link.direction(way).policer).map(|policer| policer.rate).min();
    PathBounds {
        base_rtt,
        segment_rtt,
        segment,
        bottleneck,
        goodput_ceiling: [
            bottleneck.and_then(|bottleneck| framing.goodput(layer.counted_rate(bottleneck.rate))),
            sender.and_then(|sender| sender.queueing_rate).and_then(|rate| own_queue.goodput(rate)),
        ]
        .into_iter()
        .flatten()
        .min(),
        policer_ceiling: policer
            .zip(segment)
            .and_then(|(rate, segment)| policed_goodput(rate, segment.byte_count(), mtu)),
        bdp: bottleneck.map(|bottleneck| bandwidth_delay_product(bottleneck.rate, base_rtt)),
        receive_window,
        receive_window_rate: window_rate(receive_window, segment_rtt),
        send_buffer,
        send_buffer_rate: window_rate(send_buffer, segment_rtt),
        loss,
        loss_rate: loss.zip(segment).zip(sender).and_then(|((loss, segment), sender)| {
            loss_limited_rate(&sender.congestion_control, segment, segment_rtt, loss)
        }),
        slow_start: bottleneck
            .zip(segment)
            .and_then(|(bottleneck, segment)| formulas::slow_start_time(bottleneck.rate, base_rtt, segment)),
    }
}

/// The sending and the receiving host.
fn ends(path: &PathDescription, way: Direction) -> (Option<&HostDescription>, Option<&HostDescription>) {
    match way {
        Direction::Up => (path.hosts.first(), path.hosts.last()),
        Direction::Down => (path.hosts.last(), path.hosts.first()),
    }
}

/// The smallest MTU of the path: the segment limit after path MTU discovery.
fn path_mtu(path: &PathDescription) -> Mtu {
    path.links.iter().map(|link| link.mtu).min().unwrap_or(Mtu::new(1500))
}

/// True when a setting that is on by default has not been turned off.
fn is_on(host: Option<&HostDescription>, key: &str) -> bool {
    host.and_then(|host| sizing::setting(host, key)) != Some("0")
}

fn largest_buffer(host: Option<&HostDescription>, key: &str, default: &str) -> ByteCount {
    host.map_or(ByteCount::ZERO, |host| sizing::maximum(host, key, default))
}

/// The largest window that fits TCP's header without window scaling (RFC 7323 §2.2).
const UNSCALED_WINDOW: ByteCount = ByteCount::new(65_535);

/// Largest window of the receiver: the payload's share of its largest buffer, and at most 64 KiB without scaling.
fn receive_window(
    sender: Option<&HostDescription>,
    receiver: Option<&HostDescription>,
    segment: Option<Mss>,
) -> ByteCount {
    let buffer = largest_buffer(receiver, "net.ipv4.tcp_rmem", sysctl::DEFAULT_TCP_RMEM);
    let window = usable_window(buffer, segment.map(window_share).unwrap_or_default());
    let key = "net.ipv4.tcp_window_scaling";
    if is_on(sender, key) && is_on(receiver, key) { window } else { window.min(UNSCALED_WINDOW) }
}

/// IP size of an acknowledgement with timestamps.
const ACKNOWLEDGEMENT: ByteCount = ByteCount::new(52);

fn segment_rtt(path: &PathDescription, way: Direction, mtu: Mtu) -> Duration {
    let links = path.links.iter().map(|link| {
        let (there, back) = match way {
            Direction::Up => (&link.forward, &link.backward),
            Direction::Down => (&link.backward, &link.forward),
        };
        there.serialisation(mtu.byte_count()) + back.serialisation(ACKNOWLEDGEMENT)
    });
    path.propagation() + links.sum::<Duration>()
}

fn bottleneck(path: &PathDescription, way: Direction) -> Option<BottleneckLink> {
    let ranges =
        path.links.iter().enumerate().filter_map(|(index, link)| Some((index, link.direction(way).rate_range()?)));
    // By the share of full packets too: 8 Mbit/s of ATM carry less than 7.5 of Ethernet.
    let packets = |index: usize, rate: BitRate| {
        let (layer, mtu) = (path.links[index].direction(way).layer, path.links[index].mtu.byte_count());
        layer.counted_rate(rate) * (mtu / layer.counted(mtu)).map_or(1.0, Ratio::get)
    };
    let (index, (lowest_rate, rate)) = ranges.min_by_key(|(index, (_, highest))| packets(*index, *highest))?;
    let (link, direction) = (&path.links[index], path.links[index].direction(way));
    // A queue that is given as a time holds the bytes that the first rate sends in it.
    let buffer = direction.buffer_size(path.propagation(), link.mtu);
    let delay = buffer.and_then(|buffer| queueing_delay(buffer, direction.layer.counted_rate(lowest_rate)));
    Some(BottleneckLink { link: index, rate, lowest_rate, buffer, queueing_delay: delay })
}

/// Share of packets that do not arrive intact: on each link lost or damaged, independently of the others.
fn loss(path: &PathDescription, way: Direction) -> Option<Ratio> {
    let arrive: f64 = path
        .links
        .iter()
        .map(|link| {
            let direction = link.direction(way);
            let lost = direction.loss.map_or(0.0, |loss| loss.mean().get());
            let damaged = direction.corrupt.map_or(0.0, Ratio::get);
            (1.0 - lost) * (1.0 - damaged)
        })
        .product();
    Ratio::new(1.0 - arrive).filter(|loss| loss.get() > 0.0)
}

#[cfg(test)]
mod tests;
