//! Invalid datagrams, and those of other senders.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::support::process::assert_some_within;

use super::Target;
use super::wire::{self, Client, TCP, UDP, datagram, state, udp_socket, with};

#[test]
fn datagrams_larger_than_agreed() {
    // CVE-2025-54351: iperf3 indexes past its buffer. CVE-2026-102253, with length 0, is refused earlier.
    let target = Target::start(&[]);
    for extra in ["0", "1"] {
        let parameters = with(&with(UDP, "len", "16"), "skip_rx_copy", extra);
        let (mut client, socket) = Client::running_udp(target.port, &parameters);
        for number in 1..=20 {
            socket.send(&datagram(number, 65_507)).expect("sent");
            // Until the server reads, its receive buffer holds three of them.
            wire::wait_until_read(target.id(), target.port);
        }
        let results = udp_results(&target, &mut client);
        assert_eq!((results.packets, results.errors, results.bytes), (20, 0, 20 * 65_507));
        target.serves_at_once();
    }
    target.must_be_unharmed();
}

struct UdpResults {
    packets: u64,
    errors: u64,
    bytes: u64,
}

/// Ends a test with one UDP stream, once the server has read its datagrams.
fn udp_results(target: &Target, client: &mut Client) -> UdpResults {
    wire::wait_until_read(target.id(), target.port);
    client.end();
    client.control.send_document(wire::CLIENT_RESULTS);
    let results: serde_json::Value = serde_json::from_str(&client.control.document()).expect("JSON");
    client.expect(state::DISPLAY_RESULTS);
    client.control.send([state::IPERF_DONE]);
    let field = |key: &str| results["streams"][0][key].as_u64().unwrap_or_else(|| panic!("{key} in {results}"));
    UdpResults { packets: field("packets"), errors: field("errors"), bytes: field("bytes") }
}

#[test]
fn invalid_datagram_numbers() {
    let target = Target::start(&[]);
    for (what, numbers, packets) in [
        ("number 0", &[0, 0, 1, 2, 0][..], 2),
        ("backwards", &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 10),
        ("the last number", &[1, 2, u32::MAX, 3], 3),
        ("a jump of 2^31", &[1, 2, (1 << 31) + 2, 3], 3),
        ("duplicates", &[1, 2, 3, 3, 3, 4, 1, 1], 4),
    ] {
        let (mut client, socket) = Client::running_udp(target.port, UDP);
        for number in numbers {
            socket.send(&datagram(*number, 1000)).expect("sent");
        }
        let results = udp_results(&target, &mut client);
        assert_eq!((results.packets, results.errors), (packets, 0), "{what}");
    }
    let (mut client, socket) = Client::running_udp(target.port, UDP);
    for length in 0..12 {
        socket.send(&datagram(7, 12)[..length]).expect("sent");
    }
    let results = udp_results(&target, &mut client);
    assert_eq!((results.packets, results.errors, results.bytes), (0, 0, 0), "too short for a header");
    target.must_be_unharmed();
}

#[test]
fn ends_and_numbers_of_64_bits() {
    let target = Target::start(&[]);
    let most = "9223372036854775807";
    for key in ["num", "blockcount"] {
        let parameters = with(&with(UDP, "udp_counters_64bit", "1"), key, most);
        let (mut client, socket) = Client::running_udp(target.port, &parameters);
        for number in [1 << 62, (1 << 62) + 1, u64::MAX, u64::MAX - 1, 0, 1 << 63, (1 << 63) + 1] {
            let mut bytes = datagram(0, 1000);
            bytes[8..16].copy_from_slice(&u64::to_be_bytes(number));
            socket.send(&bytes).expect("sent");
        }
        udp_results(&target, &mut client);
        drop(client);
        Client::ended(target.port, &with(&with(TCP, "len", "1048576"), key, most));
        target.serves_at_once();
    }
    target.must_be_unharmed();
}

#[test]
fn only_the_client_can_claim_its_udp_stream() {
    let target = Target::start(&[]);
    let mut client = Client::accepted(target.port, UDP);
    let stranger = udp_socket(target.port, Ipv4Addr::new(127, 0, 0, 2));
    let garbage = udp_socket(target.port, Ipv4Addr::LOCALHOST);
    for length in [0, 1, 2, 3, 4, 5, 8, 11, 12, 16, 999, 1001, 60_000] {
        garbage.send(&vec![0; length]).expect("sent");
        garbage.send(&vec![0xa5; length]).expect("sent");
    }
    garbage.send(&datagram(1, 1000)).expect("sent");
    // The client's own request follows at once: after a second of silence, the stranger may have its stream.
    stranger.send(&wire::UDP_REQUEST).expect("sent");
    let own = wire::udp_stream(target.port, Ipv4Addr::LOCALHOST);
    client.expect_start();
    for other in [&stranger, &garbage] {
        other.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        assert!(other.recv(&mut [0; 64]).is_err(), "no other sender gets a reply");
        let _ = other.send(&datagram(1_000_000, 1000));
    }
    for number in 1..=10 {
        own.send(&datagram(number, 1000)).expect("sent");
    }
    let results = udp_results(&target, &mut client);
    assert_eq!((results.packets, results.errors, results.bytes), (10, 0, 10_000));
    target.must_be_unharmed();
}

#[test]
fn a_request_from_another_address_is_served_when_the_clients_own_is_silent() {
    // A host behind a translator with several addresses; a stock client sends its request once.
    let target = Target::start(&[]);
    let mut client = Client::accepted(target.port, &with(UDP, "parallel", "2"));
    let start = Instant::now();
    let _first = wire::udp_stream(target.port, Ipv4Addr::new(127, 0, 0, 2));
    let waited = start.elapsed();
    assert!(waited > Duration::from_millis(900), "{waited:?}");
    let start = Instant::now();
    let _second = wire::udp_stream(target.port, Ipv4Addr::new(127, 0, 0, 2));
    assert!(start.elapsed() < waited, "its address is known by now: {:?}", start.elapsed());
    client.expect_start();
    drop(client);
    // A reply to another address needs a request from there.
    for direction in ["reverse", "bidirectional"] {
        let _client = Client::accepted(target.port, &with(UDP, direction, "true"));
        let stranger = udp_socket(target.port, Ipv4Addr::new(127, 0, 0, 2));
        for _ in 0..3 {
            let _ = stranger.send(&wire::UDP_REQUEST);
            stranger.set_read_timeout(Some(Duration::from_millis(600))).expect("a time-out");
            assert!(stranger.recv(&mut [0; 64]).is_err(), "a forged request is answered: {direction}");
        }
    }
    target.must_be_unharmed();
}

#[test]
fn clients_that_wait_for_udp_streams_delay_others_a_little() {
    let target = Target::start(&[]);
    // 800 ms, then 400 ms: a busy client must not lose its turn to the next one.
    assert_some_within(Duration::from_millis(1500), || {
        let silent: Vec<Client> = (0..2).map(|_| Client::accepted(target.port, UDP)).collect();
        let start = Instant::now();
        let mut honest = Client::accepted(target.port, UDP);
        let _stream = wire::udp_stream(target.port, Ipv4Addr::LOCALHOST);
        honest.expect_start();
        let served = start.elapsed();
        drop((honest, silent));
        assert!(target.is_idle());
        served
    });
    target.must_be_unharmed();
}
