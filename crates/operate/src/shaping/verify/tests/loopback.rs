//! A measurement against a server in this process, over the loopback device.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_engine::probe::ProbeTarget;
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::event::TestEvent;
use linerate_model::load::PhaseKind;
use linerate_model::report::ServerOutput;
use linerate_units::Port;

use super::super::VerifyEvent;
use super::super::measurement::{LoadMeasurer, MeasurementPlan, PathMeasurer, StopReason, WatchdogRenewal};
use super::fake::FakeShaper;

struct SilentObserver;

impl ServerObserver for SilentObserver {
    fn idle(&self, _: u64) {}

    fn session(&self, _: u64) -> Box<dyn SessionObserver> {
        Box::new(Self)
    }

    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

impl SessionObserver for SilentObserver {
    fn event(&mut self, _: &TestEvent) {}

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, _: &linerate_engine::Error) {}
}

fn order() -> MeasurementPlan {
    let second = Duration::from_secs(1);
    MeasurementPlan { loads: vec![PhaseKind::Up], idle: second, time: second, other_family: true }
}

#[test]
fn a_measurement_against_a_server() {
    let server = Server::bind(ServerOptions { port: None, ..ServerOptions::default() }).expect("a free port");
    let port = Port::new(server.address().port()).expect("bound");
    std::thread::spawn(move || server.run(None, &SilentObserver));
    let mut shaped = FakeShaper { stands: true, ..FakeShaper::new(9.5, 47.5) };
    let mut bench = LoadMeasurer::new(ProbeTarget::new("localhost", port), None);
    let mut passes = 0;
    let measured = bench
        .measure(&mut shaped, &order(), &mut |event| passes += u32::from(matches!(event, VerifyEvent::OtherFamily(_))))
        .expect("measured");
    assert_eq!(measured.error, None);
    // The fake shaper has no counters, which is noted.
    assert!(measured.notes.iter().any(|note| note.contains("counters")), "{:?}", measured.notes);
    assert!(shaped.log.contains(&"renew"));
    let [first, rest @ ..] = measured.families.as_slice() else { panic!("{measured:?}") };
    assert!(rest.len() <= 1 && rest.len() <= passes as usize && !rest.contains(first));
    let measurement = &measured.measurement;
    assert!(measurement.goodput(Direction::Up).is_some_and(|rate| !rate.is_zero()));
    for family in &measured.families {
        for kind in [PhaseKind::Idle, PhaseKind::Up] {
            let reading =
                measurement.class_delays(kind, LatencyClass::UdpBestEffort, *family).expect("loopback loses nothing");
            assert!(reading.one_way.is_some() && !reading.round_trips.is_empty(), "{family:?} {kind:?}");
        }
        assert!(measurement.uplift(PhaseKind::Up, LatencyClass::TcpInfo, *family).is_some(), "{family:?}");
    }
    let phase = measurement.phase(PhaseKind::Up).expect("measured");
    assert_eq!(phase.traffic.up, None, "on loopback the interface counts everything twice");
    // Programs beside this one use the loopback device too.
    let goodput = measurement.goodput(Direction::Up).expect("loaded");
    let a_tenth = goodput * Duration::from_millis(20);
    assert!(phase.tree.up.is_none_or(|tree| tree.bytes < a_tenth), "nothing is shaped there: {:?}", phase.tree.up);
    assert!(phase.processor.is_some());
}

#[test]
fn the_watchdog_of_a_removed_shaper_is_renewed() {
    let mut shaped = FakeShaper::new(9.5, 47.5);
    assert!(!shaped.stands);
    let mut renewal = WatchdogRenewal::default();
    renewal.tick(&mut shaped);
    renewal.tick(&mut shaped);
    assert_eq!(shaped.log, ["renew"], "once in three seconds");
}

#[test]
fn without_a_server() {
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("one");
    let port = Port::new(closed.port()).expect("bound");
    let mut shaped = FakeShaper::new(9.5, 47.5);
    let measured =
        LoadMeasurer::new(ProbeTarget::new("127.0.0.1", port), None).measure(&mut shaped, &order(), &mut |_| {});
    match measured {
        Ok(measured) => assert!(measured.error.is_some() && measured.families == [AddressFamily::Ipv4], "{measured:?}"),
        Err(StopReason::Interrupted) => panic!("not interrupted"),
        Err(StopReason::Failed(error)) => panic!("{error:?}"),
    }
}
