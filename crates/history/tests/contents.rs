//! Runs are read as they are stored: whole documents, lists, figures, exports.

use linerate_model::direction::Direction;
use std::num::NonZeroU32;
use std::time::Duration;

use linerate_documents::civil_time;
use linerate_documents::environment::{HostEnvironmentRecord, InterfaceEnvironment, OtherTraffic};
use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, LabPath, PhaseSpan, RunDocument, RunEnvironment, RunFigure, RunKind,
    RunResult, SampleSeries,
};
use linerate_history::{History, HistoryError, RunFilter, RunId, RunReference, transfer};
use linerate_model::load::LoadDocument;
use linerate_model::path::PeerKind;
use linerate_model::report::TestTermination;
use linerate_units::WallTime;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use crate::support::{Scratch, run};

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![proptest::num::f64::NORMAL, proptest::num::f64::SUBNORMAL, Just(0.0), Just(f64::MAX)]
}

fn figure() -> impl Strategy<Value = RunFigure> {
    let unit = prop_oneof![
        Just(FigureUnit::BitsPerSecond),
        Just(FigureUnit::Share),
        Just(FigureUnit::RoundTripsPerMinute),
        Just(FigureUnit::One)
    ];
    let better = prop_oneof![
        Just(ImprovementDirection::Higher),
        Just(ImprovementDirection::Lower),
        Just(ImprovementDirection::Neither)
    ];
    (
        any::<[String; 2]>(),
        unit,
        [of(number()), of(number()), of(number())],
        any::<Option<u64>>(),
        better,
        any::<Option<String>>(),
    )
        .prop_map(|([name, title], unit, [value, low, high], count, better, note)| RunFigure {
            name,
            title,
            unit,
            value,
            low,
            high,
            count,
            better,
            note,
        })
}

fn series() -> impl Strategy<Value = SampleSeries> {
    let panel = prop_oneof![Just(ChartPanel::Throughput), Just(ChartPanel::Limits), Just(ChartPanel::OneWayDelay)];
    let direction = of(prop_oneof![Just(Direction::Up), Just(Direction::Down)]);
    (panel, any::<String>(), direction, any::<Option<u32>>(), vec((any::<u64>(), of(number())), 0..40)).prop_map(
        |(panel, name, direction, stream, points)| {
            let (times_ns, values) = points.into_iter().unzip();
            SampleSeries { panel, name, direction, stream, unit: FigureUnit::Bytes, times_ns, values }
        },
    )
}

fn environment() -> impl Strategy<Value = RunEnvironment> {
    let sysctls = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..5);
    let offloads = proptest::collection::btree_map(any::<String>(), any::<bool>(), 0..5);
    let traffic = of((number(), number()).prop_map(|(received_bits_per_second, sent_bits_per_second)| OtherTraffic {
        received_bits_per_second,
        sent_bits_per_second,
    }));
    let end = (any::<[Option<String>; 3]>(), sysctls, offloads, of(number()), any::<Option<u64>>(), traffic).prop_map(
        |([host_name, kernel, driver], sysctls, offloads, load_average, processors, other_traffic)| {
            HostEnvironmentRecord {
                host_name,
                kernel,
                sysctls,
                load_average,
                processors,
                other_traffic,
                interface: Some(InterfaceEnvironment { driver, offloads, ..InterfaceEnvironment::default() }),
                ..HostEnvironmentRecord::default()
            }
        },
    );
    let end = end.boxed();
    let lab = of((any::<[String; 2]>(), any::<u64>()).prop_map(|([name, description], seed)| LabPath {
        name,
        description,
        seed,
    }));
    (of(end.clone()), of(end), lab).prop_map(|(near, far, lab)| RunEnvironment { near, far, lab })
}

fn load() -> impl Strategy<Value = RunResult> {
    (any::<String>(), any::<u64>(), vec(any::<String>(), 0..4)).prop_map(|(host, connections, notes)| {
        RunResult::Load(Box::new(LoadDocument {
            schema: 1,
            linerate_version: String::new(),
            host,
            port: 0,
            peer: PeerKind::Bare,
            started_at_unix_ns: u64::MAX,
            duration_ns: 1,
            termination: TestTermination::Failed { message: "lost".to_owned() },
            congestion_control: None,
            connections,
            phases: Vec::new(),
            grade: None,
            ungraded_because: None,
            responsiveness: None,
            http: None,
            queues: Vec::new(),
            dual_queues: Vec::new(),
            profiles: Vec::new(),
            contamination: None,
            unknown: Vec::new(),
            notes,
        }))
    })
}

fn any_run() -> impl Strategy<Value = RunDocument> {
    let texts = (any::<[String; 3]>(), vec(any::<String>(), 0..5), any::<[Option<String>; 2]>());
    let kind = proptest::sample::select(RunKind::ALL.to_vec());
    let phases = vec((any::<String>(), any::<u64>(), any::<u64>()), 0..4);
    (texts, kind, any::<(u64, u64, u16)>(), vec(figure(), 0..6), environment(), vec(series(), 0..4), phases, load())
        .prop_map(
            |((texts, arguments, [signal, message]), kind, times, figures, environment, series, phases, result)| {
                let [linerate_version, host, verdict] = texts;
                let (started_at_unix_ns, duration_ns, port) = times;
                let termination = match message {
                    Some(message) => TestTermination::Failed { message },
                    None => TestTermination::Interrupted { signal },
                };
                RunDocument {
                    schema: 1,
                    linerate_version,
                    kind,
                    started_at_unix_ns,
                    duration_ns,
                    host,
                    port,
                    arguments,
                    termination,
                    verdict,
                    figures,
                    environment,
                    series,
                    phases: phases
                        .into_iter()
                        .map(|(name, start_ns, end_ns)| PhaseSpan { name, start_ns, end_ns })
                        .collect(),
                    result,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_run_round_trips(run in any_run()) {
        let scratch = Scratch::new();
        let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
        let id = history.add(&run).expect("added");
        prop_assert_eq!(history.get(id).expect("there"), run.clone());
        let entry = history.list(&RunFilter::default()).expect("listed").remove(0);
        prop_assert_eq!((&entry.host, &entry.verdict, entry.kind), (&run.host, &run.verdict, run.kind));
        // Export, import into another file, compare.
        let mut text = Vec::new();
        history.tag(id, "a, \"tag\"").expect("tagged");
        transfer::write_json_lines(&history, &RunFilter::default(), &mut text).expect("written");
        let mut other = History::open(&scratch.file("other.sqlite")).expect("opened");
        let imported = transfer::read_runs(&mut other, &mut &text[..], &mut |_| {}).expect("read");
        prop_assert_eq!(imported.added.len(), 1);
        prop_assert_eq!(other.get(imported.added[0]).expect("there"), run.clone());
        prop_assert_eq!(&other.list(&RunFilter::default()).expect("listed")[0].tags, &["a, \"tag\""]);
        let again = transfer::read_runs(&mut other, &mut &text[..], &mut |_| {}).expect("read");
        prop_assert_eq!((again.added.len(), again.known.len()), (0, 1));
        for figure in &run.figures {
            let samples = history.figures(&figure.name, &RunFilter::default()).expect("read");
            let same = |value: Option<f64>| value.map(f64::to_bits);
            prop_assert!(samples.iter().any(|sample| same(sample.figure.value) == same(figure.value)));
        }
    }
}

fn at(seconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(1_795_161_279 + seconds))
}

#[test]
fn filters_select_runs() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let mut failed = run("b", 20, 2e9);
    failed.termination = TestTermination::Failed { message: "lost".to_owned() };
    let mut path = run("a", 30, 3e9);
    path.kind = RunKind::Path;
    // Not in the order of their times.
    let ids: Vec<RunId> =
        [path, run("a", 10, 1e9), failed].iter().map(|run| history.add(run).expect("added")).collect();
    history.tag(ids[1], "before").expect("tagged");
    let chosen = |filter: &RunFilter| -> Vec<RunId> {
        history.list(filter).expect("listed").iter().map(|entry| entry.id).collect()
    };
    let any = RunFilter::default;
    assert_eq!(chosen(&any()), [ids[0], ids[2], ids[1]], "the latest first");
    assert_eq!(chosen(&RunFilter { host: Some("a".to_owned()), ..any() }), [ids[0], ids[1]]);
    assert_eq!(chosen(&RunFilter { kind: Some(RunKind::Path), ..any() }), [ids[0]]);
    assert_eq!(chosen(&RunFilter { since: Some(at(20)), ..any() }), [ids[0], ids[2]], "from that time on");
    assert_eq!(chosen(&RunFilter { until: Some(at(20)), ..any() }), [ids[1]], "before that time");
    assert_eq!(chosen(&RunFilter { failed: true, ..any() }), [ids[2]]);
    assert_eq!(chosen(&RunFilter { tag: Some("before".to_owned()), ..any() }), [ids[1]]);
    assert_eq!(chosen(&RunFilter { limit: NonZeroU32::new(2), ..any() }), [ids[0], ids[2]]);
    assert_eq!(history.resolve(RunReference::BeforeLast(0)).expect("there"), ids[0]);
    assert_eq!(history.resolve(RunReference::BeforeLast(2)).expect("there"), ids[1]);
    assert!(matches!(history.resolve(RunReference::BeforeLast(3)), Err(HistoryError::NoSuchRun(_))));
    let values: Vec<_> = history
        .figures("goodput_down", &RunFilter { host: Some("a".to_owned()), ..any() })
        .expect("read")
        .iter()
        .map(|sample| sample.figure.value)
        .collect();
    assert_eq!(values, [Some(1e9), Some(3e9)], "the oldest first");
    let latest = history.figures("goodput_down", &RunFilter { limit: NonZeroU32::new(1), ..any() }).expect("read");
    assert_eq!(latest[0].figure.value, Some(3e9), "the limit keeps the latest");
    assert_eq!(history.figure_names().expect("read"), ["goodput_down"]);
}

#[test]
fn deleting_is_all_or_nothing() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let ids: Vec<RunId> = (0..3).map(|seconds| history.add(&run("a", seconds, 1e9)).expect("added")).collect();
    let gone = RunId::new(99);
    let error = history.delete(&[ids[0], gone]).expect_err("one of them is not there");
    assert!(matches!(error, HistoryError::NoSuchRun(RunReference::Id(id)) if id == gone), "{error:?}");
    assert_eq!(history.list(&RunFilter::default()).expect("listed").len(), 3);
    history.tag(ids[2], "x").expect("tagged");
    history.delete(&[ids[0], ids[2]]).expect("deleted");
    assert_eq!(
        history.figures("goodput_down", &RunFilter::default()).expect("read").len(),
        1,
        "figures go with their run"
    );
    assert!(matches!(history.tag(ids[2], "x"), Err(HistoryError::NoSuchRun(_))));
    let next = history.add(&run("a", 9, 1e9)).expect("added");
    assert!(next > ids[2], "a number is not given twice");
}

#[test]
fn tags_are_added_and_removed() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let id = history.add(&run("a", 0, 1e9)).expect("added");
    for text in ["with fq", "after", "with fq"] {
        history.tag(id, text).expect("tagged");
    }
    assert_eq!(history.list(&RunFilter::default()).expect("listed")[0].tags, ["after", "with fq"]);
    assert!(history.untag(id, "after").expect("there"));
    assert!(!history.untag(id, "after").expect("no longer there"));
}

#[test]
fn csv_is_quoted_where_necessary() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let mut odd = run("a", 0, 1.5e9);
    odd.verdict = "Up 1, \"down\" 2.\nReally.".to_owned();
    odd.figures[0].low = None;
    history.add(&odd).expect("added");
    let mut text = Vec::new();
    transfer::write_csv(&history, &RunFilter::default(), &mut text).expect("written");
    let text = String::from_utf8(text).expect("UTF-8");
    let (heading, line) = text.split_once("\r\n").expect("two lines");
    assert_eq!(heading.split(',').count(), 16);
    assert_eq!(
        line,
        "1,2026-11-20T07:54:39Z,20,throughput,a,5201,complete,,,goodput_down,bit/s,1500000000,,1575000000,5,\
         \"Up 1, \"\"down\"\" 2.\nReally.\"\r\n"
    );
    assert_eq!(civil_time::rfc3339(at(0)), "2026-11-20T07:54:39Z");
}

#[test]
fn an_import_names_the_invalid_line() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let good = serde_json::to_string(&run("a", 0, 1e9)).expect("JSON");
    let mut newer = run("a", 1, 1e9);
    newer.schema = 2;
    let newer = serde_json::to_string(&newer).expect("JSON");
    for (bad, expected) in [("{}", "schema"), ("nonsense", "expected"), (newer.as_str(), "schema is 2")] {
        let text = format!("{good}\n\n{bad}\n{good}\n");
        let error = transfer::read_runs(&mut history, &mut text.as_bytes(), &mut |_| {}).expect_err("line 3 is wrong");
        assert!(matches!(error, HistoryError::InvalidRun { line: 3, .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(history.list(&RunFilter::default()).expect("listed").len(), 1, "what came before is stored, once");
    let again = transfer::read_runs(&mut history, &mut good.as_bytes(), &mut |_| {}).expect("read");
    assert_eq!((again.added.len(), again.known.len()), (0, 1));
}
