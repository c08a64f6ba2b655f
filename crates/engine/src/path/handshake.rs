//! Round trips by TCP handshakes: every host answers a SYN, if only with a reset.

use core::time::Duration;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::{clock, tcp_info};
use linerate_units::MonotonicTime;

use super::convert;
use super::idle::latency_series;
use super::record::PathRecord;
use crate::phases::AbortReason;

/// Handshakes with a server that has other tasks.
pub(super) const SERVER_HANDSHAKES: u32 = 3;

/// Handshakes with a host without any service.
const DEFAULT_HANDSHAKES: u32 = 20;

/// Pause between them.
const PAUSE: Duration = Duration::from_millis(20);

/// Timeout of a handshake.
const PATIENCE: Duration = Duration::from_secs(3);

/// Makes `count` handshakes (20 by default) and records their duration; returns `true` if any was answered. A closed
/// port's reset counts: it arrives as fast.
pub(super) fn measure(record: &mut PathRecord<'_>, peer: SocketAddr, count: Option<u32>) -> Result<bool, AbortReason> {
    let mut readings: Vec<(MonotonicTime, Duration)> = Vec::new();
    let mut refused = None;
    for number in 0..count.unwrap_or(DEFAULT_HANDSHAKES) {
        if number > 0 {
            record.wait(PAUSE)?;
        }
        let begun = clock::monotonic_now();
        match one(record, peer) {
            Ok(time) => readings.push((begun, time)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                readings.push((begun, clock::monotonic_now().since(begun)));
            }
            Err(linerate_sys::Error::Cancelled { .. }) => return Err(AbortReason::Interrupted),
            Err(error) => {
                refused = Some(error.to_string());
                // A handshake without any answer takes long, and so would the next.
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

fn one(record: &mut PathRecord<'_>, peer: SocketAddr) -> linerate_sys::Result<Duration> {
    let target = &record.options.target;
    let options = ConnectOptions {
        bind: target.bind.map(|address| SocketAddr::new(address, 0)),
        device: target.device.clone(),
        timeout: Some(PATIENCE),
        ..ConnectOptions::to(peer)
    };
    let (connection, took) = net::connect_tcp_timed(&options, record.stop.as_ref().map(AsFd::as_fd))?;
    // The kernel's own figure excludes the time until this program is woken; after a lost SYN it is missing.
    let info = tcp_info::read(&connection).ok();
    let time = info.as_ref().and_then(|info| info.rtt).unwrap_or(took);
    record.plain_tcp = info.or(record.plain_tcp.take());
    Ok(time)
}
