//! One TCP connection of this host with itself: throughput of kernel and processors without a network.

use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use linerate_model::baseline::{LoopbackThroughput, TimedTransfer};
use linerate_sys::{Error, Result};
use linerate_units::ByteCount;

use super::TransferTimer;

/// Bytes of one write (iperf3's default).
const BLOCK: usize = 128 << 10;
/// Timeout without progress: loopback is broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends for this time, from one thread to another.
pub(super) fn measure(time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> Result<LoopbackThroughput> {
    let failed = |cause| Error::System { operation: "sending over the loopback device".to_owned(), cause, hint: None };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let sending = TcpStream::connect(address).map_err(failed)?;
    let (receiving, _) = listener.accept().map_err(failed)?;
    for stream in [&sending, &receiving] {
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    }
    let (sent, received) = std::thread::scope(|scope| {
        let receiver = scope.spawn(move || receive(receiving));
        let sent = send(sending, time, stop);
        (sent, receiver.join())
    });
    let received = received.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(LoopbackThroughput { sent: sent.map_err(failed)?, received: received.map_err(failed)? })
}

fn send(mut stream: TcpStream, time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> std::io::Result<TimedTransfer> {
    let block = vec![0x5a; BLOCK];
    let watch = TransferTimer::start();
    let mut sent = 0_u64;
    while watch.elapsed() < time && !stop() {
        match stream.write(&block) {
            Ok(length) => sent += length as u64,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(watch.passage(ByteCount::new(sent)))
}

/// Receives until the sender closes.
fn receive(mut stream: TcpStream) -> std::io::Result<TimedTransfer> {
    let mut block = vec![0; BLOCK];
    let watch = TransferTimer::start();
    let mut received = 0_u64;
    loop {
        match stream.read(&mut block) {
            Ok(0) => return Ok(watch.passage(ByteCount::new(received))),
            Ok(length) => received += length as u64,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_sent_arrives() {
        let loopback = measure(Duration::from_millis(50), &|| false).expect("every host has one");
        assert_eq!(loopback.sent.bytes, loopback.received.bytes);
        assert!(loopback.sent.time >= Duration::from_millis(50) && !loopback.sent.bytes.is_zero());
        let none = measure(Duration::from_secs(3600), &|| true).expect("stopped at once");
        assert!(none.sent.bytes.is_zero());
    }
}
