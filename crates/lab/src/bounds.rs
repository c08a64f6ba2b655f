//! What the formulas expect of a path, before anything is measured.
//!
//! Each bound stands for itself: the lowest of them is what a single long connection can reach at most, and which it is
//! tells what limits the path.

use core::time::Duration;

use linerate_model::formulas::{
    self, Framing, InternetProtocol, bandwidth_delay_product, loss_limited_rate, policed_goodput, queueing_delay,
    serialisation_time, usable_window, window_rate, window_share,
};
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio};

use crate::compile::sysctl;
use crate::description::{Direction, ETHERNET_HEADER, Host, Link, PathDescription};
use crate::sizing;

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From near to far.
    Forward,
    /// From far to near.
    Backward,
}

impl Way {
    pub(crate) const fn of(self, link: &Link) -> &Direction {
        match self {
            Self::Forward => &link.forward,
            Self::Backward => &link.backward,
        }
    }
}

/// What bounds a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
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

/// The slowest link of a direction; where rates change with time, the one that never has a high one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Its number, from 0 at near.
    pub link: usize,
    /// Its rate, Ethernet headers included; the highest that it has at any time, as that is what bounds.
    pub rate: BitRate,
    /// The lowest rate that it has at any time; where it does not change, the same.
    pub lowest_rate: BitRate,
    /// How much its queue holds; `None` for no limit.
    pub buffer: Option<ByteCount>,
    /// The delay that its full queue adds, at the lowest rate; `None` for no limit.
    pub queueing_delay: Option<Duration>,
}

/// What the formulas expect of one connection in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Round trip of a packet that waits nowhere and takes no time to send: all delays.
    pub base_rtt: Duration,
    /// Round trip of a full segment and its acknowledgement that wait nowhere, with the time to send them on each link.
    pub segment_rtt: Duration,
    /// Payload of a full segment over IPv4.
    pub segment: Option<Mss>,
    /// The slowest link; `None` where none has a rate.
    pub bottleneck: Option<Bottleneck>,
    /// What the slowest link carries of TCP's payload.
    pub goodput_ceiling: Option<BitRate>,
    /// What the strictest policer lets pass of it.
    pub policer_ceiling: Option<BitRate>,
    /// Bandwidth-delay product of the slowest link's rate.
    pub bdp: Option<ByteCount>,
    /// The largest window that the receiver offers.
    pub receive_window: ByteCount,
    /// The rate of that window.
    pub receive_window_rate: Option<BitRate>,
    /// The largest send buffer. It holds less payload: Linux counts its own structures too.
    pub send_buffer: ByteCount,
    /// The rate of a window as large as the send buffer, which is never reached: usual are 60 to 80 % of it.
    pub send_buffer_rate: Option<BitRate>,
    /// The share of packets that is lost, duplicated ones not counted; `None` without loss.
    pub loss: Option<Ratio>,
    /// The rate that the sender's congestion control keeps up against it; `None` without loss, and where loss sets no
    /// bound.
    pub loss_rate: Option<BitRate>,
    /// How long slow start takes to fill the slowest link.
    pub slow_start: Option<Duration>,
}

impl Bounds {
    /// The lowest bound and what sets it; `None` where nothing does.
    #[must_use]
    pub fn lowest(&self) -> Option<(Cause, BitRate)> {
        [
            (Cause::Link, self.goodput_ceiling),
            (Cause::Policer, self.policer_ceiling),
            (Cause::ReceiveWindow, self.receive_window_rate),
            (Cause::SendBuffer, self.send_buffer_rate),
            (Cause::Loss, self.loss_rate),
        ]
        .into_iter()
        .filter_map(|(cause, rate)| rate.map(|rate| (cause, rate)))
        .min_by_key(|(_, rate)| *rate)
    }
}

/// The bounds of a path in one direction: for one TCP connection over IPv4 with the hosts' own settings.
#[must_use]
pub fn bounds(path: &PathDescription, way: Way) -> Bounds {
    let (sender, receiver) = ends(path, way);
    let mtu = path_mtu(path);
    let framing = Framing {
        mtu,
        protocol: InternetProtocol::V4,
        timestamps: is_on(sender, "net.ipv4.tcp_timestamps") && is_on(receiver, "net.ipv4.tcp_timestamps"),
        link: ETHERNET_HEADER,
    };
    let (base_rtt, segment) = (path.propagation(), framing.segment());
    let segment_rtt = segment_rtt(path, way, mtu);
    let bottleneck = bottleneck(path, way);
    let receive_window = receive_window(sender, receiver, segment);
    let send_buffer = largest(sender, "net.ipv4.tcp_wmem", sysctl::DEFAULT_TCP_WMEM);
    let loss = loss(path, way);
    let policer = path.links.iter().filter_map(|link| way.of(link).policer).map(|policer| policer.rate).min();
    Bounds {
        base_rtt,
        segment_rtt,
        segment,
        bottleneck,
        goodput_ceiling: bottleneck.and_then(|bottleneck| framing.goodput(bottleneck.rate)),
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
fn ends(path: &PathDescription, way: Way) -> (Option<&Host>, Option<&Host>) {
    match way {
        Way::Forward => (path.hosts.first(), path.hosts.last()),
        Way::Backward => (path.hosts.last(), path.hosts.first()),
    }
}

/// The smallest MTU of the path: what segments come to after path MTU discovery.
fn path_mtu(path: &PathDescription) -> Mtu {
    path.links.iter().map(|link| link.mtu).min().unwrap_or(Mtu::new(1500))
}

/// Whether a setting that is on by default has not been turned off.
fn is_on(host: Option<&Host>, key: &str) -> bool {
    host.and_then(|host| sizing::setting(host, key)) != Some("0")
}

fn largest(host: Option<&Host>, key: &str, default: &str) -> ByteCount {
    host.map_or(ByteCount::ZERO, |host| sizing::maximum(host, key, default))
}

/// The largest window that fits TCP's header without window scaling (RFC 7323 §2.2).
const UNSCALED_WINDOW: ByteCount = ByteCount::new(65_535);

/// What the receiver can offer: the payload's share of its largest buffer, and no more than 64 KiB without scaling.
fn receive_window(sender: Option<&Host>, receiver: Option<&Host>, segment: Option<Mss>) -> ByteCount {
    let buffer = largest(receiver, "net.ipv4.tcp_rmem", sysctl::DEFAULT_TCP_RMEM);
    let window = usable_window(buffer, segment.map(window_share).unwrap_or_default());
    let key = "net.ipv4.tcp_window_scaling";
    if is_on(sender, key) && is_on(receiver, key) { window } else { window.min(UNSCALED_WINDOW) }
}

/// An acknowledgement with timestamps, in its Ethernet frame.
const ACKNOWLEDGEMENT: ByteCount = ByteCount::new(66);

fn segment_rtt(path: &PathDescription, way: Way, mtu: Mtu) -> Duration {
    let full = mtu.byte_count() + ETHERNET_HEADER;
    let sending = |direction: &Direction, size| {
        direction.rate.and_then(|rate| serialisation_time(size, rate)).unwrap_or_default()
    };
    let links = path.links.iter().map(|link| {
        let (there, back) = match way {
            Way::Forward => (&link.forward, &link.backward),
            Way::Backward => (&link.backward, &link.forward),
        };
        sending(there, full) + sending(back, ACKNOWLEDGEMENT)
    });
    path.propagation() + links.sum::<Duration>()
}

fn bottleneck(path: &PathDescription, way: Way) -> Option<Bottleneck> {
    let ranges =
        path.links.iter().enumerate().filter_map(|(index, link)| Some((index, way.of(link).range_of_rates()?)));
    let (index, (lowest_rate, rate)) = ranges.min_by_key(|(_, (_, highest))| *highest)?;
    let (link, direction) = (&path.links[index], way.of(&path.links[index]));
    // A queue that is given as a time holds what the first rate sends in it.
    let first = direction.rate.unwrap_or(rate);
    let buffer = direction.buffer.map(|buffer| buffer.size(first, path.propagation(), link.mtu));
    let delay = buffer.and_then(|buffer| queueing_delay(buffer, lowest_rate));
    Some(Bottleneck { link: index, rate, lowest_rate, buffer, queueing_delay: delay })
}

/// The share of packets that does not arrive intact: on each link lost or damaged, independently of the others.
fn loss(path: &PathDescription, way: Way) -> Option<Ratio> {
    let arrive: f64 = path
        .links
        .iter()
        .map(|link| {
            let direction = way.of(link);
            let lost = direction.loss.map_or(0.0, |loss| loss.mean().get());
            let damaged = direction.corrupt.map_or(0.0, Ratio::get);
            (1.0 - lost) * (1.0 - damaged)
        })
        .product();
    Ratio::new(1.0 - arrive).filter(|loss| loss.get() > 0.0)
}

#[cfg(test)]
mod tests;
