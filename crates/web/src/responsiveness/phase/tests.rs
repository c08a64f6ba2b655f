use linerate_engine::probe::ProbeTarget;
use linerate_engine::tls::{ServerIdentity, ServerTrust, TlsClientOptions, https};
use linerate_sys::net::ConnectOptions;
use linerate_units::Port;
use proptest::prelude::*;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::super::config;
use super::*;

/// Server that no one asks, and options.
struct Setting {
    target: HttpTarget,
    objects: Arc<ServerObjects>,
    options: LoadTestOptions,
}

impl Setting {
    fn new(ramp_limit: u64, load_time: u64) -> Self {
        let (_, pin) = https::server(&ServerIdentity::NewKey, &[]).expect("a new key");
        let trust = ServerTrust::Pin(pin);
        let tls = https::client(&TlsClientOptions { trust: trust.clone(), certificate: None }, &[]);
        let target = HttpTarget {
            connect: ConnectOptions::to(([192, 0, 2, 1], 443).into()),
            tls: TlsConnector::from(tls.expect("a client needs no file")),
            trust,
            name: ServerName::try_from("a.example").expect("a name"),
            authority: "a.example".to_owned(),
        };
        let host = config::HttpsUrl::parse_configuration("https://a.example").expect("a URL");
        let [small, large, upload] = ["/small", "/large", "/upload"].map(str::to_owned);
        let objects = Arc::new(ServerObjects { host, small, large, upload, ignored_endpoint: None });
        let options = LoadTestOptions {
            ramp_limit: Duration::from_secs(ramp_limit),
            load_time: Duration::from_secs(load_time),
            ..LoadTestOptions::new(ProbeTarget::new("a.example", Port::IPERF3))
        };
        Self { target, objects, options }
    }

    fn context(&self) -> PhaseContext<'_> {
        PhaseContext { target: &self.target, objects: &self.objects, options: &self.options, stop: None }
    }
}

fn at(milliseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(milliseconds * 1_000_000)
}

/// Ends an interval in which this much moved; returns which of the two stages are over.
fn conclude(phase: &mut RunningPhase<'_>, moved: u64) -> Result<(bool, bool), HttpTestEnd> {
    phase.starts.push(at(1000 * phase.intervals));
    phase.capacity = Some(ByteCount::new(moved));
    phase.conclude()?;
    Ok((phase.goodput.is_over, phase.responsiveness.is_over))
}

#[test]
fn confidence_is_that_of_the_draft() {
    let after = |figures: &[f64]| {
        let mut stage = StageState::default();
        for figure in figures {
            stage.push(*figure, Duration::from_secs(20));
        }
        (stage.confidence(), stage.is_over)
    };
    assert_eq!(after(&[1e8; 3]), (Confidence::Low, false));
    assert_eq!(after(&[1e8; 6]), (Confidence::Medium, false));
    assert_eq!(after(&[1e8; 7]), (Confidence::High, true));
    let doubling: Vec<f64> = (0..20).map(|interval| 2_f64.powi(interval)).collect();
    assert_eq!(after(&doubling), (Confidence::Medium, true));
}

#[test]
fn responsiveness_is_judged_once_goodput_is_stable() {
    let setting = Setting::new(20, 2);
    let context = setting.context();
    let mut phase = RunningPhase::new(&context, PhaseKind::Down);
    for interval in 1..=7 {
        let over = conclude(&mut phase, 1_000_000).expect("no failure");
        assert_eq!(over, (interval == 7, false), "{interval}");
    }
    assert_eq!((phase.goodput.intervals, phase.responsiveness.intervals), (7, 0));
    assert_eq!(conclude(&mut phase, 1_000_000).expect("no failure"), (true, false));
    assert_eq!(conclude(&mut phase, 1_000_000).expect("no failure"), (true, true), "its longest time");
    assert_eq!((phase.goodput.intervals, phase.responsiveness.intervals), (7, 2));
}

#[test]
fn an_unstable_goodput_ends_with_the_ramp() {
    let setting = Setting::new(3, 2);
    let context = setting.context();
    let mut phase = RunningPhase::new(&context, PhaseKind::Up);
    let over: Vec<_> = (0..5).map(|interval| conclude(&mut phase, 1 << (2 * interval)).expect("no failure")).collect();
    assert_eq!(over, [(false, false), (false, false), (true, false), (true, false), (true, true)]);
    assert_eq!((phase.goodput.confidence(), phase.responsiveness.confidence()), (Confidence::Low, Confidence::Low));
}

#[test]
fn a_phase_in_which_nothing_moves_fails_after_ten_intervals() {
    let setting = Setting::new(20, 10);
    let context = setting.context();
    let mut phase = RunningPhase::new(&context, PhaseKind::Down);
    for _ in 1..MAX_SILENT_INTERVALS {
        assert!(conclude(&mut phase, 0).is_ok());
    }
    let Err(HttpTestEnd::Failed(reason)) = conclude(&mut phase, 0) else { panic!("it is silent") };
    assert_eq!(reason, "https://a.example: no payload has moved for 10 s");
}

#[test]
fn probes_are_counted_when_they_are_answered_and_the_first_failure_is_noted() {
    let setting = Setting::new(20, 10);
    let context = setting.context();
    let mut phase = RunningPhase::new(&context, PhaseKind::Down);
    phase.waiting = [2, 1];
    let second = Duration::from_secs(1);
    let probe = ForeignProbe { tcp: second, tls: Some(second), request: second };
    for event in [
        TestEvent::Foreign(at(1), Ok(probe)),
        TestEvent::Foreign(at(2), Err("first".to_owned())),
        TestEvent::Loaded(at(3), Err("second".to_owned())),
        TestEvent::Loaded(at(4), Ok(second)),
    ] {
        assert!(phase.events.send(event).is_ok(), "the phase listens");
    }
    assert!(phase.handle_events().is_ok());
    assert_eq!((phase.waiting, phase.failure.as_deref()), ([0, 0], Some("first")));
    assert_eq!((since(&phase.foreign, at(0)).len(), since(&phase.loaded, at(0)).len()), (1, 1));
    assert!(phase.events.send(TestEvent::Broken("reset".to_owned())).is_ok());
    assert!(matches!(phase.handle_events(), Err(HttpTestEnd::Failed(reason)) if reason == "reset"));
}

#[test]
fn only_answered_probes_of_the_interval_count() {
    let probes = [(at(1), Some(1)), (at(2), Some(2)), (at(3), None), (at(4), Some(4))];
    assert_eq!(since(&probes, at(2)), [4, 2]);
    assert!(since(&probes, at(5)).is_empty());
}

#[test]
fn a_phase_loads_each_of_its_directions() {
    let setting = Setting::new(20, 10);
    let context = setting.context();
    for (kind, directions) in [
        (PhaseKind::Down, &[Direction::Down][..]),
        (PhaseKind::Up, &[Direction::Up]),
        (PhaseKind::Both, &[Direction::Down, Direction::Up]),
    ] {
        let phase = RunningPhase::new(&context, kind);
        let mut found: Vec<Direction> = phase.meters.iter().map(LoadMeter::direction).collect();
        found.sort_by_key(|direction| *direction == Direction::Up);
        assert_eq!((found.as_slice(), phase.payload()), (directions, ByteCount::ZERO), "{kind:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_connection_is_drawn(seed in 1..=u64::MAX, count in 1..=16_usize) {
        let setting = Setting::new(20, 10);
        let context = setting.context();
        let mut phase = RunningPhase::new(&context, PhaseKind::Down);
        phase.random = seed;
        prop_assert_eq!(phase.random_below(0), None);
        let mut drawn = vec![0; count];
        for _ in 0..100 * count {
            drawn[phase.random_below(count).expect("one of them")] += 1;
        }
        prop_assert!(drawn.iter().all(|times| (20..400).contains(times)), "{:?}", drawn);
    }
}
