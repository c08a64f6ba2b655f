//! A measurement against a server in this process, over the loopback device.

use std::time::Duration;

use linerate_engine::probe::Target;
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::event::Event;
use linerate_model::latency_under_load::Class;
use linerate_model::report::ServerOutput;
use linerate_model::schema::load::PhaseKind;
use linerate_shape::verify::Family;
use linerate_units::Port;

use super::super::VerifyEvent;
use super::super::bench::{Bench, Loads, Order, Stopped};
use super::fake::FakeShaped;

struct Silent;

impl ServerObserver for Silent {
    fn idle(&self, _: u64) {}

    fn session(&self, _: u64) -> Box<dyn SessionObserver> {
        Box::new(Self)
    }

    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

impl SessionObserver for Silent {
    fn event(&mut self, _: &Event) {}

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, _: &linerate_engine::Error) {}
}

fn order() -> Order {
    let second = Duration::from_secs(1);
    Order { loads: vec![PhaseKind::Up], idle: second, time: second, other_family: true }
}

#[test]
fn what_a_server_lets_measure() {
    let server = Server::bind(ServerOptions { port: None, ..ServerOptions::default() }).expect("a free port");
    let port = Port::new(server.address().port()).expect("bound");
    std::thread::spawn(move || server.run(None, &Silent));
    let mut shaped = FakeShaped { stands: true, ..FakeShaped::new(9.5, 47.5) };
    let mut bench = Loads::new(Target::new("localhost", port), None);
    let mut passes = 0;
    let measured = bench
        .measure(&mut shaped, &order(), &mut |event| passes += u32::from(matches!(event, VerifyEvent::OtherFamily(_))))
        .expect("measured");
    assert_eq!(measured.error, None);
    // What the fake shaper does not have cannot be read, and is told.
    assert!(measured.notes.iter().any(|note| note.contains("counters")), "{:?}", measured.notes);
    assert!(shaped.log.contains(&"renew"));
    let [first, rest @ ..] = measured.families.as_slice() else { panic!("{measured:?}") };
    assert!(rest.len() <= 1 && rest.len() <= passes as usize && !rest.contains(first));
    let measurement = &measured.measurement;
    assert!(measurement.goodput(linerate_model::throughput::Flow::Up).is_some_and(|rate| !rate.is_zero()));
    for family in &measured.families {
        for kind in [PhaseKind::Idle, PhaseKind::Up] {
            let reading = measurement.reading(kind, Class::UdpBestEffort, *family).expect("loopback loses nothing");
            assert!(reading.one_way.is_some() && !reading.round_trips.is_empty(), "{family:?} {kind:?}");
        }
        assert!(measurement.uplift(PhaseKind::Up, Class::TcpInBand, *family).is_some(), "{family:?}");
    }
    let phase = measurement.phase(PhaseKind::Up).expect("measured");
    assert_eq!(phase.traffic.up, None, "on loopback the interface counts everything twice");
    assert!(phase.tree.up.is_none_or(|tree| tree.bytes.is_zero()), "nothing is shaped there: {:?}", phase.tree.up);
    assert!(phase.processor.is_some());
}

#[test]
fn nobody_there() {
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("one");
    let port = Port::new(closed.port()).expect("bound");
    let mut shaped = FakeShaped::new(9.5, 47.5);
    let measured = Loads::new(Target::new("127.0.0.1", port), None).measure(&mut shaped, &order(), &mut |_| {});
    match measured {
        Ok(measured) => assert!(measured.error.is_some() && measured.families == [Family::Four], "{measured:?}"),
        Err(Stopped::Interrupted) => panic!("nobody interrupted it"),
        Err(Stopped::Failed(error)) => panic!("{error:?}"),
    }
}
