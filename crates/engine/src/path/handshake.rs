//! Round trips by TCP handshakes: every host answers a SYN, if only by a reset.

use core::time::Duration;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::{clock, tcp_info};
use linerate_units::MonotonicTime;

use super::convert;
use super::idle::latency_series;
use super::record::Record;
use crate::course::Halt;

/// Handshakes with a server that has other things to do.
pub(super) const GENTLE: u32 = 3;

/// Handshakes with a host that has nothing else to offer.
const MANY: u32 = 20;

/// Time between them.
const PAUSE: Duration = Duration::from_millis(20);

/// An answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(3);

/// Makes so many handshakes (or many), and notes how long they took. A closed port's reset counts: it comes as fast.
/// Whether any was answered.
pub(super) fn measure(record: &mut Record<'_>, peer: SocketAddr, count: Option<u32>) -> Result<bool, Halt> {
    let mut readings: Vec<(MonotonicTime, Duration)> = Vec::new();
    let mut refused = None;
    for number in 0..count.unwrap_or(MANY) {
        if number > 0 {
            record.wait(PAUSE)?;
        }
        let begun = clock::monotonic_now();
        match one(record, peer) {
            Ok(time) => readings.push((begun, time)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                readings.push((begun, clock::monotonic_now().since(begun)));
            }
            Err(linerate_sys::Error::Cancelled { .. }) => return Err(Halt::Interrupted),
            Err(error) => {
                refused = Some(error.to_string());
                // One that gets no answer at all takes long, and the next would, too.
                break;
            }
        }
    }
    let times: Vec<Duration> = readings.iter().map(|(_, time)| *time).collect();
    record.document.rtt.handshake = convert::distribution(&times);
    if let Some(reason) = refused.filter(|_| times.is_empty()) {
        record.unknown("rtt.handshake", reason);
    }
    let started = record.started;
    latency_series(record, "TCP handshake", &readings, started);
    Ok(!times.is_empty())
}

fn one(record: &mut Record<'_>, peer: SocketAddr) -> linerate_sys::Result<Duration> {
    let target = &record.options.target;
    let options = ConnectOptions {
        bind: target.bind.map(|address| SocketAddr::new(address, 0)),
        device: target.device.clone(),
        timeout: Some(PATIENCE),
        ..ConnectOptions::to(peer)
    };
    let (connection, took) = net::connect_tcp_timed(&options, record.stop.as_ref().map(AsFd::as_fd))?;
    // The kernel's own figure lacks the time until this program is woken; where the SYN was lost it has none.
    let info = tcp_info::read(&connection).ok();
    let time = info.as_ref().and_then(|info| info.rtt).unwrap_or(took);
    record.plain_tcp = info.or(record.plain_tcp.take());
    Ok(time)
}
