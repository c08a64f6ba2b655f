//! Hops over loopback.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::route::HopReplies;

use super::{HopOptions, measure};
use crate::path::test_support::{options, recorded};
use crate::path::{PathEvent, PathOptions};

fn over_loopback(address: &str, only_hops: bool) -> (crate::path::PathOutcome, Vec<PathEvent>) {
    let route = HopOptions { flows: 2, rounds: Some(4), interval: Duration::from_millis(20), ..HopOptions::default() };
    let options = PathOptions { route: Box::new(route), only_hops, path_mtu: false, ..options() };
    let peer: SocketAddr = address.parse().expect("an address");
    let (result, outcome, events) = recorded(&options, |record| measure(record, peer, None));
    result.expect("measured");
    (outcome, events)
}

#[test]
fn this_host_is_one_hop_away() {
    for address in ["127.0.0.1:1", "[::1]:1"] {
        let (outcome, _) = over_loopback(address, false);
        let document = &outcome.document;
        let [hop] = &document.hops[..] else { panic!("{:?}", document.hops) };
        let route = document.route.as_ref().expect("measured");
        assert_eq!(
            (hop.distance, hop.address.as_deref()),
            (1, address.parse::<SocketAddr>().ok().map(|one| one.ip().to_string()).as_deref())
        );
        assert!(route.is_reached && route.changes.is_empty(), "{route:?}");
        assert_eq!((route.flows, route.rounds, route.loss_from), (2, 4, None));
        // Loopback answers all, or limits its answers: it never loses.
        assert!(matches!(hop.replies, Some(HopReplies::Complete | HopReplies::Limited)), "{hop:?}");
        assert!(hop.sent >= hop.answered && hop.sent == Some(4), "{hop:?}");
        assert_eq!(hop.addresses.len(), 1);
    }
}

#[test]
fn each_round_is_published_where_nothing_else_is_measured() {
    let (outcome, events) = over_loopback("127.0.0.1:1", true);
    let snapshots: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            PathEvent::Hops(snapshot) => Some(snapshot),
            _ => None,
        })
        .collect();
    assert_eq!(snapshots.len(), 4);
    let last = snapshots[3];
    assert_eq!(last.rounds.len(), last.hops.len());
    // The probe of the last round is not sent before its snapshot.
    assert!(last.rounds[0].iter().all(|result| result.round < 3), "{:?}", last.rounds);
    let first = last.rounds[0].first().expect("loopback answers at once");
    assert!(first.round == 0 && first.round_trip.is_some_and(|time| !time.is_zero()), "{first:?}");
    assert_eq!(outcome.series.len(), 1);
    assert!(outcome.series[0].name.starts_with("hop 1 127.0.0.1"), "{}", outcome.series[0].name);
}
