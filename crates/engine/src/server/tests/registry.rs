//! State that the acceptor shares with its sessions.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use linerate_sys::poll::{self, PollInterest};
use linerate_units::{ByteCount, MonotonicTime, StreamCount};
use linerate_wire::cookie::Cookie;

use crate::resources::{ClientNetwork, SESSION_MEMORY, ServerResources, SessionDisplacer};
use crate::server::gate::UdpOpening;
use crate::server::inbox::{SessionInbox, SessionMessage};
use crate::server::registry::{RequestOwner, SessionRegistry, StreamOwner};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn at(milliseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
}

fn registry() -> SessionRegistry {
    SessionRegistry::new(None, ServerResources::new(SESSION_MEMORY)).expect("a waker")
}

fn cookie(number: u8) -> Cookie {
    Cookie::random([number; 36])
}

/// Registers sessions with these numbers, all at the same time.
fn enter(registry: &SessionRegistry, numbers: impl IntoIterator<Item = u64>) -> Vec<Arc<SessionInbox>> {
    let enter = |number| {
        let inbox = SessionInbox::new(Ipv4Addr::LOCALHOST.into(), None).expect("a waker");
        registry.enter(number, Arc::clone(&inbox), Ipv4Addr::LOCALHOST.into(), at(0));
        inbox
    };
    numbers.into_iter().map(enter).collect()
}

/// The session for a stream from the address of all sessions.
fn session_for_stream(registry: &SessionRegistry, number: u8) -> Option<Arc<SessionInbox>> {
    match registry.session_for_stream(&cookie(number), Ipv4Addr::LOCALHOST.into()) {
        StreamOwner::Session(inbox) => Some(inbox),
        StreamOwner::Stranger | StreamOwner::NoSession => None,
    }
}

fn is_awake(inbox: &SessionInbox) -> bool {
    poll::wait_for(inbox, PollInterest::READ, Some(core::time::Duration::ZERO)).expect("polls")
}

fn is_displaced(inbox: &SessionInbox) -> bool {
    matches!(inbox.take(), Some(SessionMessage::Displaced))
}

#[test]
fn messages_are_taken_in_their_order_and_keep_the_inbox_readable() {
    let inbox = SessionInbox::new(Ipv4Addr::LOCALHOST.into(), None).expect("a waker");
    assert!(!is_awake(&inbox) && inbox.take().is_none());
    for text in ["first", "second", "third"] {
        inbox.deliver(SessionMessage::Terminate(text.to_owned()));
    }
    for (text, more) in [("first", true), ("second", true), ("third", false)] {
        assert!(is_awake(&inbox));
        let taken = inbox.take();
        assert!(matches!(&taken, Some(SessionMessage::Terminate(found)) if found == text), "{taken:?}");
        assert_eq!(is_awake(&inbox), more, "{text}");
    }
    assert!(inbox.take().is_none());
}

#[test]
fn a_cookie_leads_to_its_session_for_as_many_streams_as_expected() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=2);
    assert!(session_for_stream(&registry, 1).is_none(), "nothing is expected yet");
    assert!(registry.expect_streams(cookie(1), &inboxes[0], StreamCount::new(2)));
    assert!(registry.expect_streams(cookie(2), &inboxes[1], StreamCount::new(1)));
    assert!(!registry.expect_streams(cookie(1), &inboxes[1], StreamCount::new(1)), "the cookie is in use");
    for number in [1, 2, 1] {
        let found = session_for_stream(&registry, number).expect("expected");
        assert!(Arc::ptr_eq(&found, &inboxes[usize::from(number) - 1]));
    }
    for number in [1, 2, 3] {
        assert!(session_for_stream(&registry, number).is_none(), "no more is expected");
    }
    assert!(registry.expect_streams(cookie(1), &inboxes[1], StreamCount::new(1)), "the cookie is free again");
}

#[test]
fn a_stream_from_another_network_does_not_belong_to_the_session_of_its_cookie() {
    let registry = registry();
    for (network, client, neighbour, stranger) in [
        (1, "192.0.2.1", "192.0.2.1", "192.0.2.2"),
        (2, "2001:db8::1", "2001:db8::2:2", "2001:db8:0:1::1"),
        (3, "192.0.2.1", "192.0.2.1", "2001:db8::1"),
    ] {
        let [client, neighbour, stranger]: [IpAddr; 3] =
            [client, neighbour, stranger].map(|address| address.parse().expect("an address"));
        let inbox = SessionInbox::new(client, None).expect("a waker");
        assert!(registry.expect_streams(cookie(network), &inbox, StreamCount::new(1)));
        assert!(matches!(registry.session_for_stream(&cookie(network), stranger), StreamOwner::Stranger));
        assert_eq!(inbox.strangers(), 1);
        assert!(matches!(registry.session_for_stream(&cookie(network), neighbour), StreamOwner::Session(_)));
        assert!(matches!(registry.session_for_stream(&cookie(network), neighbour), StreamOwner::NoSession));
    }
}

#[test]
fn single_connections_are_expected_one_by_one() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=2);
    assert!(registry.expect_another(cookie(1), &inboxes[0]));
    assert!(registry.expect_another(cookie(1), &inboxes[0]));
    assert!(!registry.expect_another(cookie(1), &inboxes[1]), "another session's cookie");
    assert!(session_for_stream(&registry, 1).is_some());
    assert!(session_for_stream(&registry, 1).is_some());
    assert!(session_for_stream(&registry, 1).is_none());
    assert!(registry.expect_another(cookie(1), &inboxes[1]));
}

#[test]
fn a_session_that_leaves_takes_its_expectations_with_it() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=2);
    assert!(registry.expect_streams(cookie(1), &inboxes[0], StreamCount::new(2)));
    // Another session with the same cookie may leave without any effect on the first one.
    registry.leave(2, &cookie(1));
    assert_eq!(registry.sessions(), 1);
    assert!(session_for_stream(&registry, 1).is_some());
    registry.leave(1, &cookie(1));
    assert_eq!(registry.sessions(), 0);
    assert!(session_for_stream(&registry, 1).is_none());
    registry.leave(1, &cookie(1));
    assert_eq!(registry.sessions(), 0, "leaving twice changes nothing");
}

#[test]
fn leaving_wakes_the_acceptor() {
    let registry = registry();
    enter(&registry, [1]);
    assert!(!registry.waker.drain());
    registry.leave(1, &cookie(1));
    assert!(registry.waker.drain());
}

#[test]
fn the_longest_silent_session_is_displaced_after_a_second() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=3);
    registry.mark_parameters_received(1);
    assert!(!registry.displace_silent(at(999)));
    assert!(registry.displace_silent(at(1000)));
    assert_eq!(registry.sessions(), 2, "its slot is free before it has ended");
    assert!(is_displaced(&inboxes[1]), "session 1 has sent its parameters, 2 has waited longest");
    assert!(registry.displace_silent(at(1000)));
    assert!(is_displaced(&inboxes[2]));
    assert!(!registry.displace_silent(at(60_000)), "the remaining one is not silent");
    assert!(inboxes[0].take().is_none());
    registry.leave(2, &cookie(2));
    assert_eq!(registry.sessions(), 1);
    registry.leave(3, &cookie(3));
    assert_eq!(registry.sessions(), 1);
}

#[test]
fn more_than_64_silent_sessions_are_displaced_at_once() {
    let registry = registry();
    enter(&registry, 1..=64);
    assert!(!registry.displace_silent(at(0)));
    enter(&registry, [65]);
    assert!(registry.displace_silent(at(0)));
    assert!(!registry.displace_silent(at(0)), "64 are left");
}

#[test]
fn the_number_of_displaced_sessions_that_still_run_is_limited() {
    let registry = registry();
    let _inboxes = enter(&registry, 1..=300);
    let displaced = (0..300).filter(|_| registry.displace_silent(at(2000))).count();
    assert_eq!(displaced, 256);
    registry.leave(1, &cookie(1));
    assert!(registry.displace_silent(at(2000)));
    assert!(!registry.displace_silent(at(2000)));
    assert_eq!(registry.sessions(), 300 - 257);
}

#[test]
fn concurrent_tests_are_counted_at_their_maximum() {
    let registry = registry();
    enter(&registry, 1..=4);
    registry.test_begins(1, StreamCount::new(1));
    registry.test_begins(2, StreamCount::new(128));
    assert_eq!(registry.running(), (2, 129));
    registry.test_begins(3, StreamCount::new(1));
    assert_eq!(registry.test_ends(2), 2, "1 and 3");
    registry.test_begins(4, StreamCount::new(1));
    assert_eq!(registry.test_ends(3), 2, "1 and 4, or 1 and 2");
    assert_eq!(registry.test_ends(4), 2, "1 and 3");
    assert_eq!(registry.test_ends(1), 2, "never more than two others at once");
    assert_eq!(registry.test_ends(1), 0, "it has ended already");
    assert_eq!(registry.running(), (0, 0));
}

#[test]
fn a_session_that_leaves_during_its_test_ends_it() {
    let registry = registry();
    enter(&registry, 1..=2);
    registry.test_begins(1, StreamCount::new(2));
    registry.leave(1, &cookie(1));
    assert_eq!(registry.running(), (0, 0));
    registry.test_begins(2, StreamCount::new(2));
    assert_eq!(registry.test_ends(2), 0, "it ran alone");
}

#[test]
fn turns_are_granted_to_the_inboxes_of_their_sessions() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=2);
    assert!(!registry.needs_udp());
    for session in [1, 2] {
        registry.request_turn(UdpOpening {
            session,
            client: CLIENT,
            streams: StreamCount::new(1),
            block_size: ByteCount::new(1000),
            sends: false,
            round_trip: None,
        });
    }
    assert!(registry.needs_udp() && registry.waker.drain());
    assert_eq!(registry.advance_turns(at(0)), Some(at(800)));
    assert!(matches!(inboxes[0].take(), Some(SessionMessage::Turn)));
    assert!(inboxes[1].take().is_none());
    let owner = registry.session_for_request(CLIENT, None, at(1));
    assert!(matches!(&owner, RequestOwner::Session(inbox) if Arc::ptr_eq(inbox, &inboxes[0])), "{owner:?}");
    assert_eq!(registry.advance_turns(at(1)), None);
    assert!(matches!(inboxes[1].take(), Some(SessionMessage::Turn)));
    let stranger = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let owner = registry.session_for_request(stranger, None, at(2));
    assert!(matches!(owner, RequestOwner::NotBefore(time) if time == at(1001)), "{owner:?}");
    registry.leave(2, &cookie(2));
    assert!(!registry.needs_udp());
    assert!(matches!(registry.session_for_request(CLIENT, None, at(3)), RequestOwner::NoSession));
}

#[test]
fn termination_reaches_each_session() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=3);
    registry.leave(2, &cookie(2));
    registry.terminate("SIGTERM(15)");
    for (inbox, expected) in inboxes.iter().zip([true, false, true]) {
        let taken = inbox.take();
        let terminated = matches!(&taken, Some(SessionMessage::Terminate(signal)) if signal == "SIGTERM(15)");
        assert_eq!(terminated, expected, "{taken:?}");
    }
}

#[test]
fn the_probe_session_that_is_idle_longest_gives_way_after_five_minutes() {
    let registry = registry();
    let inboxes = enter(&registry, 1..=4);
    for (session, seconds) in [(2, 10), (3, 5), (4, 10)] {
        registry.mark_active(session, at(seconds * 1000));
    }
    registry.mark_active(3, at(20_000));
    assert!(!registry.displace_idle(at(309_999)));
    assert!(registry.displace_idle(at(310_000)) && is_displaced(&inboxes[1]));
    assert!(registry.displace_idle(at(310_000)) && is_displaced(&inboxes[3]));
    assert!(!registry.displace_idle(at(319_999)));
    assert!(registry.displace_idle(at(320_000)) && is_displaced(&inboxes[2]));
    assert!(!registry.displace_idle(at(1_000_000)), "a test is never idle");
    assert!(inboxes[0].take().is_none());
}

#[test]
fn the_network_with_the_most_sessions_gives_way_to_others() {
    let registry = registry();
    let mut next = 0;
    let mut enter = |client: &str, count: usize| {
        let entered = (0..count).map(|_| {
            next += 1;
            let inbox = SessionInbox::new(Ipv4Addr::LOCALHOST.into(), None).expect("a waker");
            registry.enter(next, Arc::clone(&inbox), client.parse().expect("an address"), at(0));
            registry.mark_parameters_received(next);
            inbox
        });
        entered.collect::<Vec<_>>()
    };
    let many = enter("192.0.2.1", 4);
    let few = enter("2001:db8::1", 1);
    let same_network = enter("2001:db8::ffff:2", 1);
    let wants = |client: &str| registry.displace_for(client.parse().expect("an address"));
    assert!(!wants("192.0.2.1"), "it has the most itself");
    assert!(wants("2001:db8::3"));
    assert!(is_displaced(&many[3]));
    assert!(!wants("2001:db8::4"), "three and two: with the new one three and three");
    assert!(wants("2001:db8:0:1::1"), "another /64 has none");
    assert!(is_displaced(&many[2]));
    assert!(wants("198.51.100.1"), "two and two: the youngest session gives way");
    assert!(is_displaced(&same_network[0]));
    assert!(wants("198.51.100.1"));
    assert!(is_displaced(&many[1]));
    assert!(!wants("198.51.100.1"), "one and one");
    assert!(few[0].take().is_none() && many[0].take().is_none());
    assert_eq!(registry.sessions(), 2);
}

#[test]
fn many_networks_of_one_site_do_not_keep_others_away() {
    let registry = registry();
    let inboxes: Vec<_> = (1..=5)
        .map(|number| {
            let inbox = SessionInbox::new(Ipv4Addr::LOCALHOST.into(), None).expect("a waker");
            let client = format!("2001:db8:7:{number}::1").parse().expect("an address");
            registry.enter(number, Arc::clone(&inbox), client, at(0));
            inbox
        })
        .collect();
    let wants = |client: &str| registry.displace_for(client.parse().expect("an address"));
    assert!(!wants("2001:db8:7:9::1"), "the same /48, and each /64 has one");
    assert!(wants("2001:db8:8::1") && is_displaced(&inboxes[4]));
    let by_network = registry.sessions_by_network();
    assert_eq!((by_network.len(), by_network.values().sum::<usize>()), (4, 4));
}

#[test]
fn who_holds_the_most_memory_gives_way_to_those_who_ask_for_less() {
    let registry = registry();
    let mut leases = Vec::new();
    let mut enter = |number: u64, client: &str, kibibytes: u64| {
        let inbox = SessionInbox::new(Ipv4Addr::LOCALHOST.into(), None).expect("a waker");
        let account = registry.enter(number, Arc::clone(&inbox), client.parse().expect("an address"), at(0));
        leases.push(account.lease(ByteCount::from_kibibytes(kibibytes)).expect("memory"));
        assert_eq!(account.held(), ByteCount::from_kibibytes(kibibytes));
        inbox
    };
    let small = enter(1, "192.0.2.1", 100);
    let large = enter(2, "192.0.2.2", 500);
    let medium = enter(3, "192.0.2.2", 200);
    let wants = |client: &str, kibibytes| {
        let network = ClientNetwork::of(client.parse().expect("an address"));
        registry.displace_for_memory(network, ByteCount::from_kibibytes(kibibytes))
    };
    assert!(!wants("192.0.2.2", 1), "it holds the most itself");
    assert!(!wants("192.0.2.3", 700), "as much as another holds");
    assert!(wants("192.0.2.3", 300) && is_displaced(&large));
    assert!(wants("192.0.2.4", 250), "its memory is being returned");
    assert!(medium.take().is_none());
    assert!(!wants("192.0.2.4", 251), "no network holds more than that");
    assert!(wants("192.0.2.1", 50), "it is being returned");
    registry.leave(2, &cookie(2));
    assert!(wants("192.0.2.1", 50) && is_displaced(&medium));
    assert!(small.take().is_none());
}
