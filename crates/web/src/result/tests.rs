use linerate_documents::run::RunResult;
use linerate_units::ByteCount;
use proptest::prelude::*;

use super::*;
use crate::sampling::SAMPLING_INTERVAL;
use crate::test_support::{Loopback, access, answer, send};

const FACTS: ServerFacts = ServerFacts { port: Port::IPERF3, rate_limit: None };

/// Start of the first load within a session.
const LOAD: Duration = Duration::from_secs(2);

/// Bytes of each sampling interval: 80 kbit/s.
const STEP: usize = 1000;

struct Test {
    loopback: Loopback,
    session: std::sync::Arc<WebSession>,
    record: SessionRecord,
}

impl Test {
    fn new() -> Self {
        let client = "::ffff:192.0.2.7".parse().expect("an address");
        let browser = Some("Browser/1".to_owned());
        let session = WebSession::open(&access(|_| ()), client, browser, 4, true).expect("a free session");
        let record = SessionRecord::new(session.started);
        Self { loopback: Loopback::new(), session, record }
    }

    /// Moves data for eleven sampling intervals.
    fn load(mut self, direction: Direction) -> Self {
        let (connection, mut client) = self.loopback.connect(1);
        let begun = self.record.points.last().map_or(LOAD, |point| point.at + Duration::from_secs(1));
        let begun = self.session.started + begun;
        self.record.join(direction, &connection, begun);
        for index in 1..=11 {
            match direction {
                Direction::Down => answer(&connection, STEP),
                Direction::Up => send(&mut client, &connection, STEP),
            }
            self.record.sample(begun + index * SAMPLING_INTERVAL);
        }
        self
    }

    fn run(&self, claims: &str, facts: ServerFacts) -> RunDocument {
        let claims = BrowserClaims::parse(claims.as_bytes()).expect("valid claims");
        let now = self.session.started + Duration::from_secs(10);
        run_of(&self.session, &self.record, &claims, facts, now)
    }

    fn document(&self, claims: &str) -> WebDocument {
        document_of(self.run(claims, FACTS))
    }
}

fn document_of(run: RunDocument) -> WebDocument {
    let RunResult::Web(document) = run.result else { panic!("the document of a browser: {run:?}") };
    *document
}

/// Claims with this number of round trips in each phase, of 1 ms, 2 ms and 41 ms.
fn claims(idle: u64, loaded: u64) -> String {
    let list = |count: u64, time: u64| (0..count).map(|at| (at, time)).collect::<Vec<_>>();
    let (down, up) = (list(loaded, 2000), list(loaded, 41_000));
    serde_json::json!({ "round_trips": { "idle": list(idle, 1000), "down": down, "up": up } }).to_string()
}

#[test]
fn phases_have_the_counts_of_the_server_and_the_round_trips_of_the_browser() {
    let test = Test::new().load(Direction::Down).load(Direction::Up);
    let document = test.document(&claims(20, 20));
    let kinds: Vec<PhaseKind> = document.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up]);
    let idle = &document.phases[0];
    assert_eq!((idle.bytes, idle.goodput_bits_per_second, idle.connections), (None, None, 0));
    for (phase, added) in [(&document.phases[1], 1_000_000), (&document.phases[2], 40_000_000)] {
        assert_eq!((phase.bytes, phase.connections), (Some(11 * STEP as u64), 1), "{phase:?}");
        let goodput = phase.goodput_bits_per_second.expect("a second of samples");
        assert!((goodput - 80_000.0).abs() < 1.0, "{goodput}");
        assert_eq!(phase.end_ns - phase.start_ns, 1_100_000_000);
        assert_eq!(phase.browser_rtt.map(|rtt| rtt.count), Some(20));
        assert_eq!((phase.browser_added_median_ns, phase.browser_added_p95_ns), (Some(added), Some(added)));
    }
}

#[test]
fn what_only_a_sender_knows_is_unknown_for_an_upload() {
    let document = Test::new().load(Direction::Down).load(Direction::Up).document("{}");
    let phase = |kind| document.phase(kind).expect("it was measured");
    let (down, up) = (phase(PhaseKind::Down), phase(PhaseKind::Up));
    assert!(down.kernel_rtt.is_some() && down.congestion_window_bytes.is_some());
    assert_eq!((down.retransmitted_segments, down.retransmitted_share), (Some(0), Some(0.0)));
    assert!(up.kernel_rtt.is_none() && up.congestion_window_bytes.is_none() && up.limits.is_none());
    assert_eq!((up.retransmitted_segments, up.retransmitted_share), (None, None));
    let mut unknown: Vec<&str> = document.unknown.iter().map(|unknown| unknown.key.as_str()).collect();
    unknown.sort_unstable();
    assert_eq!(
        unknown,
        ["congestion_window_bytes", "kernel_rtt", "retransmitted_segments", "retransmitted_share"]
            .map(|key| format!("phases.up.{key}"))
    );
}

#[test]
fn the_idle_phase_ends_with_its_last_round_trip_or_the_first_load() {
    let claims = |at: u64| format!(r#"{{"round_trips":{{"idle":[[{at},1000],[5,1000]]}}}}"#);
    for (at, end) in [(1500, Duration::from_millis(1501)), (60_000, LOAD)] {
        let document = Test::new().load(Direction::Down).document(&claims(at));
        assert_eq!(document.phases[0].end_ns, nanoseconds(end), "{at}");
    }
    let document = Test::new().document(&claims(60_000));
    assert_eq!(document.phases[0].end_ns, 60_001_000_000, "no load");
}

#[test]
fn the_grade_is_that_of_the_worse_direction() {
    let test = Test::new().load(Direction::Down).load(Direction::Up);
    let run = test.run(&claims(10, 10), FACTS);
    assert!(run.verdict.contains("Grade B: the upload adds 40"), "{}", run.verdict);
    let grade = document_of(run).grade.expect("enough round trips");
    assert_eq!((grade.letter, grade.direction, grade.added_ns), (LatencyGrade::B, Direction::Up, 40_000_000));
    assert_eq!((grade.down, grade.up), (Some(LatencyGrade::APlus), Some(LatencyGrade::B)));
    assert_eq!(grade.is_on_path, None, "the server does not know the round trips of an upload");
    assert_eq!(grade.thresholds.first(), Some(&(LatencyGrade::APlus, 5_000_000)));
    let down = Test::new().load(Direction::Down).document(&claims(10, 10)).grade.expect("enough round trips");
    assert_eq!((down.letter, down.direction, down.up), (LatencyGrade::APlus, Direction::Down, None));
    assert!(down.is_on_path.is_some());
}

#[test]
fn too_few_round_trips_are_no_grade() {
    let test = Test::new().load(Direction::Down);
    for (idle, loaded, reason) in [(9, 20, "of the idle path"), (20, 9, "under load"), (0, 0, "of the idle path")] {
        let document = test.document(&claims(idle, loaded));
        assert_eq!(document.grade, None);
        assert!(document.ungraded_because.is_some_and(|because| because.ends_with(reason)), "{reason}");
    }
}

#[test]
fn a_delay_is_on_the_path_where_the_loaded_connections_waited_too() {
    let milliseconds = Duration::from_millis;
    let phase = |p95: u64, least: Option<u64>| {
        let rtt = DurationDistribution::of(&mut vec![milliseconds(p95); 20]);
        let kernel_rtt_min_ns = least.map(|least| nanoseconds(milliseconds(least)));
        WebPhase { kernel_rtt: rtt, kernel_rtt_min_ns, ..empty(PhaseKind::Down) }
    };
    assert_eq!(is_on_path(&phase(35, Some(10)), milliseconds(100)), Some(true), "a quarter");
    assert_eq!(is_on_path(&phase(34, Some(10)), milliseconds(100)), Some(false));
    assert_eq!(is_on_path(&phase(5, Some(10)), milliseconds(1)), Some(false), "below the least is no wait");
    assert_eq!(is_on_path(&phase(35, None), milliseconds(100)), None);
    assert_eq!(is_on_path(&empty(PhaseKind::Down), milliseconds(100)), None);
}

#[test]
fn the_rate_limit_of_the_server_is_the_cause_where_it_held_back() {
    for (paused, is_cause) in [(0.19, false), (0.21, true)] {
        let mut test = Test::new().load(Direction::Down);
        test.record.add_pause(Direction::Down, Duration::from_millis(1100).mul_f64(paused));
        let document = test.document("{}");
        let phase = document.phase(PhaseKind::Down).expect("it was measured");
        let is_named = phase.verdicts.iter().any(|verdict| verdict.text.contains("--server-bitrate-limit"));
        assert_eq!(is_named, is_cause, "{paused}");
        assert!(!is_cause || phase.verdicts.len() == 1, "nothing else can be concluded then");
    }
}

#[test]
fn a_limited_rate_is_noted() {
    let test = Test::new().load(Direction::Down);
    let facts = ServerFacts { rate_limit: Some(BitRate::from_bits_per_second(1e8)), ..FACTS };
    let limited = document_of(test.run("{}", facts));
    assert_eq!(limited.rate_limit_bits_per_second, Some(1e8));
    assert_eq!((limited.notes.len(), test.document("{}").notes.len()), (2, 1));
    assert!(limited.notes[1].contains("100 Mbit/s"), "{:?}", limited.notes);
}

#[test]
fn a_test_that_ended_early_has_failed_for_the_reason_of_the_browser_first() {
    let test = Test::new();
    let termination = |claims| test.document(claims).termination;
    let failed = |message: &str| TestTermination::Failed { message: message.to_owned() };
    assert_eq!(termination("{}"), TestTermination::Complete);
    test.session.end("displaced");
    assert_eq!(termination("{}"), failed("displaced"));
    assert_eq!(termination(r#"{"error":"the tab was hidden"}"#), failed("the tab was hidden"));
}

#[test]
fn a_run_names_the_browser_and_its_address() {
    let run = Test::new().run("{}", FACTS);
    assert_eq!((run.host.as_str(), run.port, run.duration_ns), ("192.0.2.7", Port::IPERF3.get(), 10_000_000_000));
    assert_eq!(
        run.verdict,
        "No rate was measured. No grade, as the browser reported too few round trips of the idle path."
    );
    assert_eq!(document_of(run).browser.as_deref(), Some("Browser/1"));
}

#[test]
fn figures_name_what_is_unknown_and_why() {
    let mut test = Test::new().load(Direction::Down).load(Direction::Up);
    // The upload has one sample: no rate.
    let first = test.record.points.iter().position(|point| point.direction == Direction::Up).expect("a sample");
    test.record.points.truncate(first + 1);
    let figures = test.run(&claims(20, 20), FACTS).figures;
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(
        names,
        ["goodput_down", "added_down_p95", "retransmitted_down", "goodput_up", "added_up_p95", "rtt_idle_median"]
    );
    let figure = |name: &str| figures.iter().find(|figure| figure.name == name).expect(name);
    assert_eq!((figure("goodput_up").value, figure("goodput_down").note.as_deref()), (None, None));
    assert_eq!(figure("goodput_up").note.as_deref(), Some("the transfer was too short"));
    assert_eq!((figure("added_up_p95").value, figure("added_up_p95").count), (Some(4e7), Some(20)));
    assert_eq!(figure("rtt_idle_median").value, Some(1e6));
}

#[test]
fn series_have_rates_over_a_few_samples_and_all_round_trips_in_order() {
    let test = Test::new().load(Direction::Up);
    let series = test.run(r#"{"round_trips":{"idle":[[30,3000]],"up":[[10,1000],[20,2000]]}}"#, FACTS).series;
    let panels: Vec<ChartPanel> = series.iter().map(|series| series.panel).collect();
    assert_eq!(panels, [ChartPanel::Throughput, ChartPanel::Latency], "windows and round trips are a sender's");
    let rates = &series[0].values;
    assert!(rates[..4].iter().all(Option::is_none) && rates.len() == 11, "{rates:?}");
    assert!(rates[4..].iter().all(|rate| rate.is_some_and(|rate| (rate - 80_000.0).abs() < 1.0)), "{rates:?}");
    assert_eq!(series[1].times_ns, [10_000_000, 20_000_000, 30_000_000]);
    assert_eq!(series[1].values, [Some(1e6), Some(2e6), Some(3e6)]);
    assert!(Test::new().run("{}", FACTS).series.is_empty());
}

#[test]
fn a_share_of_nothing_is_unknown() {
    assert_eq!((share(0, 0), share(1, 4), share(0, 4)), (None, Some(0.25), Some(0.0)));
}

#[test]
fn the_window_is_the_median_of_the_samples_that_have_one() {
    let mut test = Test::new().load(Direction::Down);
    let windows = [None, Some(3000), Some(1000), None, Some(2000)];
    test.record.points.truncate(windows.len());
    for (point, window) in test.record.points.iter_mut().zip(windows) {
        point.congestion_window = window.map(ByteCount::new);
    }
    assert_eq!(median_window(&test.record, Direction::Down), Some(2000));
    assert_eq!(median_window(&test.record, Direction::Up), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_claims_become_a_document_that_is_read_again(
        lists in proptest::collection::vec(proptest::collection::vec((any::<u64>(), 0..70_000_000_u64), 0..30), 3),
        error in proptest::option::of(any::<String>()),
    ) {
        let claims = serde_json::json!({
            "round_trips": { "idle": lists[0], "down": lists[1], "up": lists[2] }, "error": error,
        });
        let run = Test::new().run(&claims.to_string(), FACTS);
        let text = serde_json::to_string(&run).expect("numbers that JSON has");
        let again: RunDocument = serde_json::from_str(&text).expect("readable");
        prop_assert_eq!(&again, &run);
        let document = document_of(run);
        prop_assert!(document.phases.iter().all(|phase| phase.kind == PhaseKind::Idle), "no claim is a load");
    }
}
