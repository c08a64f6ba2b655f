//! Load-generating connections: endless downloads and uploads, and the samples of their sockets.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::Method;
use hyper::client::conn::http2::SendRequest;
use linerate_engine::load::http::HttpLoadSamples;
use linerate_engine::probe::messages::LoadSample;
use linerate_model::direction::Direction;
use linerate_sys::{clock, options, tcp_info};
use linerate_units::{ByteCount, MonotonicTime};
use tokio::sync::mpsc::UnboundedSender;

use super::client::{HttpTarget, RequestBody, next};
use super::config::ServerObjects;
use super::probe::TestEvent;
use crate::connection::Connection;
use crate::sampling::known_sum;

/// Shortest upload that a server may end.
const MIN_UPLOAD: Duration = Duration::from_secs(1);

/// A connection of the load.
pub(super) struct LoadConnection {
    pub(super) direction: Direction,
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) socket: Arc<Connection>,
    received: Arc<AtomicU64>,
    /// Bytes acknowledged before the load.
    base: ByteCount,
}

impl Drop for LoadConnection {
    /// Ends the load at once: unsent bytes are discarded, and the server learns that they are not read.
    fn drop(&mut self) {
        let _ = options::set_close_by_reset(&*self.socket);
        self.socket.end();
    }
}

/// Opens a connection, announces it, and loads it until it is dropped, or fails.
pub(super) async fn generate(
    target: HttpTarget,
    objects: Arc<ServerObjects>,
    direction: Direction,
    events: UnboundedSender<TestEvent>,
) {
    let failed = match target.open().await {
        Err(reason) => reason,
        Ok(opened) => {
            let received = Arc::new(AtomicU64::new(0));
            let base = tcp_info::read(&*opened.socket).ok().and_then(|info| info.bytes_acknowledged);
            let (mut sender, socket) = (opened.sender.clone(), Arc::clone(&opened.socket));
            let connection = LoadConnection {
                direction,
                sender: opened.sender,
                socket: opened.socket,
                received: Arc::clone(&received),
                base: base.unwrap_or(ByteCount::ZERO),
            };
            if events.send(TestEvent::Opened(connection)).is_err() {
                return;
            }
            match direction {
                Direction::Down => download(&target, &mut sender, &objects.large, &received).await,
                Direction::Up => upload(&target, &mut sender, &objects.upload, &socket).await,
            }
        }
    };
    // The receiver is gone when the phase has ended.
    let _ = events.send(TestEvent::Broken(failed));
}

/// Downloads again and again; returns the reason of the end.
async fn download(
    target: &HttpTarget,
    sender: &mut SendRequest<RequestBody>,
    path: &str,
    received: &AtomicU64,
) -> String {
    loop {
        let mut body = match target.request(sender, Method::GET, path, RequestBody::Empty).await {
            Ok(response) => response.into_body(),
            Err(reason) => return reason,
        };
        let before = received.load(Ordering::Relaxed);
        loop {
            match next(&mut body).await {
                Ok(Some(data)) => received.fetch_add(data.len() as u64, Ordering::Relaxed),
                Ok(None) => break,
                Err(reason) => return format!("GET https://{}{path}: {reason}", target.authority),
            };
        }
        if received.load(Ordering::Relaxed) == before {
            return format!("https://{}{path} is empty: it must have 8 GB or more", target.authority);
        }
    }
}

/// Uploads without end, again where the server ends it in order; returns the reason of the end.
async fn upload(
    target: &HttpTarget,
    sender: &mut SendRequest<RequestBody>,
    path: &str,
    socket: &Arc<Connection>,
) -> String {
    loop {
        let begun = clock::monotonic_now();
        let body = RequestBody::Endless(Arc::clone(socket));
        match target.request(sender, Method::POST, path, body).await {
            // The answer may come first; the upload goes on while the body of the answer is awaited.
            Ok(response) => {
                let mut body = response.into_body();
                while let Ok(Some(_)) = next(&mut body).await {}
            }
            Err(reason) => return reason,
        }
        if clock::monotonic_now().since(begun) < MIN_UPLOAD {
            return format!("POST https://{}{path}: the server ended the upload at once", target.authority);
        }
    }
}

/// Sum of the load in one direction.
pub(super) struct LoadMeter {
    direction: Direction,
    started: MonotonicTime,
    payload: Vec<(Duration, ByteCount)>,
    samples: Vec<LoadSample>,
}

impl LoadMeter {
    pub(super) fn new(direction: Direction) -> Self {
        let started = clock::monotonic_now();
        Self { direction, started, payload: vec![(Duration::ZERO, ByteCount::ZERO)], samples: Vec::new() }
    }

    /// Samples the connections of this direction; a sender adapts its buffers to the rate of the last `interval`.
    pub(super) fn sample(&mut self, connections: &[LoadConnection], interval: Duration) {
        let time = clock::monotonic_now().since(self.started);
        let own = connections.iter().filter(|connection| connection.direction == self.direction);
        if self.direction == Direction::Down {
            let bytes = own.map(|connection| connection.received.load(Ordering::Relaxed)).sum();
            self.payload.push((time, ByteCount::new(bytes)));
            return;
        }
        let mut bytes = ByteCount::ZERO;
        let mut infos = Vec::new();
        for connection in own {
            connection.socket.adjust_send_buffer(interval);
            let Ok(info) = tcp_info::read(&*connection.socket) else { continue };
            bytes += info.bytes_acknowledged.unwrap_or(connection.base) - connection.base;
            infos.push(info);
        }
        self.payload.push((time, bytes));
        let rtts: Vec<Duration> = infos.iter().filter_map(|info| info.rtt).collect();
        let count = u32::try_from(rtts.len()).unwrap_or(u32::MAX);
        self.samples.push(LoadSample {
            time,
            rtt: rtts.iter().sum::<Duration>().checked_div(count),
            congestion_window: known_sum(infos.iter().map(|info| info.congestion_window)),
            bytes_acknowledged: Some(bytes),
            retransmits: known_sum(infos.iter().map(|info| info.retransmits)),
            delivery_rate: None,
            not_sent: known_sum(infos.iter().map(|info| info.not_sent)),
            busy: None,
            receive_window_limited: None,
            send_buffer_limited: None,
        });
    }

    /// Payload so far.
    pub(super) fn payload(&self) -> ByteCount {
        self.payload.last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes)
    }

    pub(super) const fn direction(&self) -> Direction {
        self.direction
    }

    pub(super) fn finish(self) -> HttpLoadSamples {
        HttpLoadSamples {
            direction: self.direction,
            started: self.started,
            payload: self.payload,
            samples: self.samples,
        }
    }
}
