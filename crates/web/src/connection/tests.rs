use core::future::poll_fn;
use core::mem::MaybeUninit;
use std::io::{IoSlice, Read as _, Write as _};

use hyper::rt::ReadBuf as HyperBuffer;

use super::*;
use crate::test_support::Loopback;

/// Time of the last progress.
fn progress(connection: &Connection) -> u64 {
    connection.progress.load(Ordering::Relaxed)
}

/// Reads once, at most `most` bytes.
fn read(loopback: &Loopback, io: &mut ConnectionIo, most: usize) -> Vec<u8> {
    let mut bytes = vec![MaybeUninit::uninit(); most];
    let mut buffer = HyperBuffer::uninit(&mut bytes);
    loopback.block_on(poll_fn(|context| Pin::new(&mut *io).poll_read(context, buffer.unfilled()))).expect("readable");
    buffer.filled().to_vec()
}

fn write(loopback: &Loopback, io: &mut ConnectionIo, bytes: &[u8]) -> usize {
    loopback.block_on(poll_fn(|context| Pin::new(&mut *io).poll_write(context, bytes))).expect("writable")
}

#[test]
fn bytes_without_a_request_are_no_progress() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let mut io = ConnectionIo::new(Arc::clone(&connection));
    let begun = progress(&connection);
    client.write_all(b"G").expect("sent");
    assert_eq!(read(&loopback, &mut io, 100), b"G");
    assert_eq!(progress(&connection), begun, "one byte at a time holds no connection");
    connection.begin_request();
    let requested = progress(&connection);
    assert!(requested > begun);
    client.write_all(b"E").expect("sent");
    assert_eq!(read(&loopback, &mut io, 100), b"E");
    let received = progress(&connection);
    assert!(received > requested, "the body of a request is progress");
    assert_eq!(write(&loopback, &mut io, b"answer"), 6);
    assert!(progress(&connection) > received, "so is its answer");
}

#[test]
fn idle_time_is_that_since_the_last_progress() {
    let loopback = Loopback::new();
    let before = clock::monotonic_now();
    let (connection, _client) = loopback.connect(1);
    let after = clock::monotonic_now();
    let second = Duration::from_secs(1);
    assert!(connection.idle_time(before + second) <= second && connection.idle_time(after + second) >= second);
    assert_eq!(connection.idle_time(before), Duration::ZERO, "a time before it is none");
}

#[test]
fn a_connection_is_busy_while_any_of_its_requests_is_answered() {
    let loopback = Loopback::new();
    let (connection, _client) = loopback.connect(1);
    connection.begin_request();
    connection.begin_request();
    connection.end_request();
    assert!(connection.is_busy());
    connection.end_request();
    assert!(!connection.is_busy());
}

#[test]
fn the_end_of_a_connection_is_known_to_those_who_wait_later() {
    let loopback = Loopback::new();
    let (connection, _client) = loopback.connect(1);
    assert!(!loopback.is_ended(&connection));
    connection.end();
    assert!(loopback.is_ended(&connection));
}

#[test]
fn the_buffer_grows_for_clients_that_send_much() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let mut io = ConnectionIo::new(connection);
    let sent: Vec<u8> = (0..=255).cycle().take(3 * READ_SIZE / 16).collect();
    client.write_all(&sent).expect("sent");
    let mut received = read(&loopback, &mut io, READ_SIZE);
    assert_eq!(received.len(), READ_SIZE / 16, "the first read fills a small buffer");
    assert_eq!(io.buffer.len(), READ_SIZE);
    while received.len() < sent.len() {
        received.extend(read(&loopback, &mut io, READ_SIZE));
    }
    assert_eq!(received, sent);
    drop(client);
    assert_eq!(read(&loopback, &mut io, READ_SIZE), b"", "the end of the client's bytes");
}

#[test]
fn a_read_takes_no_more_than_is_asked_for() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let mut io = ConnectionIo::new(connection);
    client.write_all(b"abcdef").expect("sent");
    assert_eq!(read(&loopback, &mut io, 4), b"abcd");
    assert_eq!(read(&loopback, &mut io, 4), b"ef");
}

#[test]
fn parts_are_written_in_order_and_the_end_is_seen() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    let mut io = ConnectionIo::new(connection);
    assert!(io.is_write_vectored());
    let slices = [IoSlice::new(b"head "), IoSlice::new(b"body ")];
    let written = poll_fn(|context| Pin::new(&mut io).poll_write_vectored(context, &slices));
    assert_eq!(loopback.block_on(written).expect("writable"), 10);
    assert_eq!(write(&loopback, &mut io, b"end"), 3);
    loopback.block_on(poll_fn(|context| Pin::new(&mut io).poll_shutdown(context))).expect("it never fails");
    let mut received = String::new();
    client.read_to_string(&mut received).expect("an end");
    assert_eq!(received, "head body end");
}

#[test]
fn one_write_leaves_others_their_turn() {
    let loopback = Loopback::new();
    let (connection, _client) = loopback.connect(1);
    let mut io = ConnectionIo::new(connection);
    assert!((1..=MAX_WRITE).contains(&write(&loopback, &mut io, &vec![0; 4 * MAX_WRITE])));
}

#[test]
fn what_a_refused_client_sends_is_discarded_until_it_closes() {
    let loopback = Loopback::new();
    let (connection, mut client) = loopback.connect(1);
    client.write_all(&[7; 10_000]).expect("sent");
    connection.write_now(b"busy");
    client.shutdown(std::net::Shutdown::Write).expect("connected");
    loopback.block_on(connection.discard_until_end());
    drop(connection);
    let mut received = String::new();
    client.read_to_string(&mut received).expect("no reset, as nothing was unread");
    assert_eq!(received, "busy");
}

#[cfg(feature = "responsiveness")]
#[test]
fn queues_hold_a_few_milliseconds_of_the_latest_rate() {
    let loopback = Loopback::new();
    let (connection, _client) = loopback.connect(1);
    let interval = Duration::from_millis(100);
    assert_eq!(connection.quantum(), usize::MAX, "the rate is unknown");
    for (moved, quantum) in [
        // 1 Gbit/s: 5 ms are 625 kB.
        (12_500_000, MAX_QUANTUM),
        // 10 Mbit/s: 6250 bytes, two quanta of them.
        (125_000, 3125),
        // 1 Mbit/s: less than the smallest queue of 4 KiB.
        (12_500, 2048),
        // Nothing: the rate before is still the best known.
        (0, 2048),
    ] {
        connection.written.fetch_add(moved, Ordering::Relaxed);
        connection.adjust_send_buffer(interval);
        assert_eq!(connection.quantum(), quantum, "{moved}");
    }
}
