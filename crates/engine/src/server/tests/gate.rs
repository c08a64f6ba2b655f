//! Turns of sessions that open UDP streams, in virtual time.

use core::time::Duration;
use std::net::IpAddr;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};
use proptest::prelude::*;

use crate::server::gate::{RequestClaim, SessionNumber, UdpOpening, UdpTurns};

const BLOCK: ByteCount = ByteCount::new(1448);

fn host(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

fn at(milliseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
}

fn opening(session: SessionNumber, client: IpAddr, streams: u64) -> UdpOpening {
    let streams = StreamCount::new(streams);
    UdpOpening { session, client, streams, block_size: BLOCK, sends: false, round_trip: None }
}

#[test]
fn the_length_of_a_turn_follows_the_round_trip_within_bounds() {
    for (round_trip, turn) in
        [(None, 800), (Some(0), 800), (Some(200), 800), (Some(201), 804), (Some(500), 2000), (Some(501), 2000)]
    {
        let mut gate = UdpTurns::default();
        let round_trip = round_trip.map(Duration::from_millis);
        gate.request(UdpOpening { round_trip, ..opening(1, host(1), 1) });
        gate.request(opening(2, host(1), 1));
        gate.advance(at(0));
        assert_eq!(gate.next_deadline(at(0)), Some(at(turn)), "{round_trip:?}");
        assert!(gate.advance(at(turn - 1)).is_empty());
        assert_eq!(gate.advance(at(turn)), [2]);
    }
}

#[test]
fn each_stream_extends_the_turn() {
    let mut gate = UdpTurns::default();
    gate.request(opening(1, host(1), 3));
    gate.request(opening(2, host(1), 1));
    assert_eq!(gate.advance(at(0)), [1]);
    for moment in [400, 800] {
        assert_eq!(gate.claim(host(1), None, at(moment)), RequestClaim::Session(1));
        assert!(gate.advance(at(moment + 799)).is_empty(), "the turn lasts 800 ms from the last stream");
    }
    assert_eq!(gate.advance(at(1600)), [2]);
}

#[test]
fn a_session_that_leaves_frees_its_turn() {
    let mut gate = UdpTurns::default();
    for session in 1..=3 {
        gate.request(opening(session, host(1), 1));
    }
    assert_eq!(gate.advance(at(0)), [1]);
    gate.leave(2);
    gate.leave(1);
    gate.leave(77);
    assert_eq!(gate.advance(at(1)), [3]);
    assert_eq!(gate.claim(host(1), None, at(2)), RequestClaim::Session(3));
    assert!(!gate.is_needed());
    assert_eq!(gate.claim(host(1), None, at(3)), RequestClaim::NoSession);
}

#[test]
fn before_its_turn_no_session_owns_a_request() {
    let mut gate = UdpTurns::default();
    gate.request(opening(1, host(1), 1));
    assert_eq!(gate.claim(host(1), None, at(0)), RequestClaim::NoSession);
    assert_eq!(gate.next_deadline(at(0)), None, "`advance` is due at once, not later");
    assert_eq!(gate.advance(at(0)), [1]);
    assert_eq!(gate.next_deadline(at(0)), None, "no session waits");
}

#[test]
fn among_expired_turns_the_latest_one_is_served_first() {
    let mut gate = UdpTurns::default();
    for session in 1..=3 {
        gate.request(opening(session, host(1), 1));
    }
    for (moment, session) in [(0, 1), (800, 2), (1200, 3)] {
        assert_eq!(gate.advance(at(moment)), [session]);
    }
    for session in [3, 2, 1] {
        assert_eq!(gate.claim(host(1), None, at(10_000)), RequestClaim::Session(session));
    }
}

#[test]
fn repeated_requests_are_distinguished_by_their_size() {
    let mut gate = UdpTurns::default();
    for (session, size) in [(1, 1000), (2, 2000)] {
        gate.request(UdpOpening { block_size: ByteCount::new(size), ..opening(session, host(1), 1) });
    }
    gate.advance(at(0));
    gate.advance(at(800));
    // Session 2 is in turn, but the size is that of session 1.
    assert_eq!(gate.claim(host(1), Some(ByteCount::new(1000)), at(801)), RequestClaim::Session(1));
    assert_eq!(gate.claim(host(1), Some(ByteCount::new(1000)), at(801)), RequestClaim::NoSession);
    assert_eq!(gate.claim(host(1), Some(ByteCount::new(2000)), at(801)), RequestClaim::Session(2));
}

#[test]
fn an_unknown_address_waits_for_a_long_turn_to_end() {
    let mut gate = UdpTurns::default();
    gate.request(UdpOpening { round_trip: Some(Duration::from_millis(400)), ..opening(1, host(1), 1) });
    gate.advance(at(0));
    // The turn of 1.6 s is longer than the second for which the own address precedes.
    assert_eq!(gate.claim(host(9), None, at(1599)), RequestClaim::NotBefore(at(1600)));
    assert_eq!(gate.claim(host(9), None, at(1600)), RequestClaim::Session(1));
}

#[test]
fn a_second_unknown_address_replaces_the_first() {
    let mut gate = UdpTurns::default();
    gate.request(opening(1, host(1), 3));
    gate.advance(at(0));
    assert_eq!(gate.claim(host(8), None, at(1000)), RequestClaim::Session(1));
    assert_eq!(gate.claim(host(9), None, at(1000)), RequestClaim::NotBefore(at(2000)));
    assert_eq!(gate.claim(host(9), None, at(2000)), RequestClaim::Session(1));
    assert_eq!(gate.claim(host(8), None, at(2000)), RequestClaim::NotBefore(at(3000)));
}

proptest! {
    /// Sessions of one host begin in order and never two at once, and each is assigned exactly its streams, in any
    /// order of requests.
    #[test]
    fn each_session_gets_exactly_its_streams(
        sessions in proptest::collection::vec((1_u8..4, 1_u64..4), 1..12),
        steps in proptest::collection::vec((0_u64..120, 1_u8..4), 1..80),
    ) {
        let mut gate = UdpTurns::default();
        let numbered = || (1_u64..).zip(&sessions);
        for (number, (client, streams)) in numbered() {
            gate.request(opening(number, host(*client), *streams));
        }
        let mut assigned = vec![0_u64; sessions.len() + 1];
        let mut begun: Vec<SessionNumber> = Vec::new();
        let mut now = 0;
        for (wait, client) in steps {
            now += wait;
            let new = gate.advance(at(now));
            for number in &new {
                let client = |number: u64| sessions[usize::try_from(number).expect("small") - 1].0;
                let earlier = begun.iter().filter(|other| client(**other) == client(*number));
                prop_assert!(earlier.clone().all(|other| other < number), "out of order");
                let same_host = new.iter().filter(|other| client(**other) == client(*number)).count();
                prop_assert_eq!(same_host, 1, "two turns at once");
            }
            begun.extend(new);
            if let RequestClaim::Session(number) = gate.claim(host(client), None, at(now)) {
                let index = usize::try_from(number).expect("small");
                assigned[index] += 1;
                prop_assert!(begun.contains(&number), "no turn has begun");
                prop_assert!(assigned[index] <= sessions[index - 1].1, "too many streams");
            }
        }
        let open = numbered().any(|(number, (_, streams))| {
            assigned[usize::try_from(number).expect("small")] < *streams
        });
        prop_assert_eq!(gate.is_needed(), open);
    }
}
