//! Terminal output of `linerate test`, and the document of `--json`.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_documents::throughput::{ThroughputDocument, ThroughputTest};
use linerate_model::diagnosis::{
    BoundKind, Cause, Confidence, DiagnosisVerdict, SenderState, StateShare, ThroughputBound, TransferDiagnosis,
};
use linerate_model::limit::LimitShares;
use linerate_model::report::{CpuUtilization, FarReport, TcpReport, TestTermination};
use linerate_model::stream::StreamRole;
use linerate_model::summary::DurationDistribution;
use linerate_model::tcp_info::TcpInfo;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_report::throughput_text::{HostTable, TerminalWidth, TestProgress, TextStyle, progress_line, result_text};
use linerate_units::{BitRate, ByteCount, Port, Ratio, SegmentCount, StreamCount};

use crate::support;

fn ms(milliseconds: f64) -> Duration {
    support::milliseconds(milliseconds)
}

fn times(median: f64, p95: f64) -> DurationDistribution {
    let (median, p95) = (ms(median), ms(p95));
    DurationDistribution { count: 1000, min: median / 2, median, mean: median, p95, p99: p95, max: p95 * 2 }
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).expect("a ratio")
}

fn shares(application: f64, send_buffer: f64, receive_window: f64, network: f64) -> LimitShares {
    LimitShares {
        application: ratio(application),
        send_buffer: ratio(send_buffer),
        receive_window: ratio(receive_window),
        network: ratio(network),
        ..LimitShares::default()
    }
}

/// A run of ten seconds whose streams share the rate.
fn run(flow: Direction, streams: u8, rate: f64, tcp: &TcpReport) -> ThroughputRun {
    let role = if flow == Direction::Up { StreamRole::Sender } else { StreamRole::Receiver };
    let ten = Duration::from_secs(10);
    let bytes = BitRate::from_bits_per_second(rate / f64::from(streams)) * ten;
    let report = |number: usize| {
        let mut report = support::stream_report(support::stream(number, 5, 40000, role));
        report.sent = Some(support::side(bytes, ten));
        report.received = Some(support::side(bytes, ten));
        report.tcp = Some(tcp.clone());
        report
    };
    let mut report = support::report((0..usize::from(streams)).map(report).collect());
    report.local_cpu = Some(cpu(0.12));
    report.remote_cpu = Some(cpu(0.31));
    report.local_congestion = Some("cubic".to_owned());
    report.remote_congestion = Some("bbr".to_owned());
    let streams = StreamCount::new(streams.into());
    ThroughputRun { direction: flow, streams, start: None, intervals: Vec::new(), report, diagnosis: None }
}

fn cpu(total: f64) -> CpuUtilization {
    CpuUtilization { total: ratio(total), user: ratio(0.0), system: ratio(total) }
}

fn result(runs: Vec<ThroughputRun>) -> ThroughputResult {
    ThroughputResult {
        host: "dtn.example.org".to_owned(),
        port: Port::IPERF3,
        dialed_in: false,
        peer_is_linerate: true,
        idle_rtt: Some(times(117.0, 118.0)),
        runs,
        quic: None,
    }
}

/// The RHEL guide's path: the receiver's window limits one stream.
fn long_fat_path() -> ThroughputResult {
    let info = TcpInfo { send_window: Some(ByteCount::from_mebibytes(3)), rtt: Some(ms(117.0)), ..TcpInfo::default() };
    let single = TcpReport {
        retransmits: Some(SegmentCount::ZERO),
        rtt_samples: Some(times(117.2, 117.9)),
        last_info: Some(info),
        limits: Some(shares(0.02, 0.0, 0.94, 0.04)),
        ..TcpReport::default()
    };
    let many = TcpReport {
        retransmits: Some(SegmentCount::new(14)),
        rtt_samples: Some(times(118.4, 131.0)),
        limits: Some(shares(0.02, 0.0, 0.91, 0.07)),
        ..TcpReport::default()
    };
    let lossy = TcpReport {
        retransmits: Some(SegmentCount::new(231)),
        rtt_samples: None,
        limits: Some(shares(0.0, 0.01, 0.02, 0.97)),
        ..TcpReport::default()
    };
    let mut down = run(Direction::Down, 1, 256e6, &lossy);
    down.report.far = Some(far(117.6, 119.0));
    let mut down_many = run(Direction::Down, 4, 793e6, &lossy);
    down_many.report.far = Some(far(117.9, 125.0));
    result(vec![run(Direction::Up, 1, 213e6, &single), run(Direction::Up, 4, 852e6, &many), down, down_many])
}

/// A linerate report with one interval.
fn far(median: f64, p95: f64) -> FarReport {
    use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval};
    use linerate_model::stream::StreamId;
    let tcp = TcpInterval { rtt_samples: Some(times(median, p95)), ..TcpInterval::default() };
    let stream = StreamInterval {
        stream: StreamId::nth(0),
        role: StreamRole::Sender,
        bytes: ByteCount::new(1000),
        tcp: Some(tcp),
        udp: None,
        socket: None,
    };
    let interval =
        IntervalReport { start: Duration::ZERO, end: Duration::from_secs(1), omitted: false, streams: vec![stream] };
    FarReport { version: "0.1.0".to_owned(), intervals: vec![interval], overlapping_tests: 0, host: None }
}

/// The LARTC link, full upload, against a stock server.
fn dsl_line() -> ThroughputResult {
    let up = TcpReport {
        retransmits: Some(SegmentCount::new(38)),
        rtt_samples: Some(times(1884.0, 2011.0)),
        limits: Some(shares(0.0, 0.02, 0.0, 0.98)),
        ..TcpReport::default()
    };
    let down = TcpReport { retransmits: Some(SegmentCount::new(9)), ..TcpReport::default() };
    let result = result(vec![
        run(Direction::Up, 1, 221e3, &up),
        run(Direction::Up, 4, 224e3, &up),
        run(Direction::Down, 1, 846e3, &down),
        run(Direction::Down, 4, 851e3, &down),
    ]);
    let idle_rtt = Some(times(18.5, 19.2));
    ThroughputResult { host: "203.0.113.7".to_owned(), peer_is_linerate: false, idle_rtt, ..result }
}

fn ascii() -> TextStyle {
    TextStyle { unicode: false, ..TextStyle::plain() }
}

/// Without colour codes.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    for part in text.split('\u{1b}') {
        bare.push_str(part.strip_prefix('[').and_then(|part| part.split_once('m')).map_or(part, |(_, rest)| rest));
    }
    bare
}

#[test]
fn results_match_the_samples() {
    for (name, result, style, sample) in [
        ("long fat path", long_fat_path(), TextStyle::plain(), include_str!("samples/long_fat_path.txt")),
        ("DSL line", dsl_line(), TextStyle::plain(), include_str!("samples/dsl_line.txt")),
        ("DSL line, ASCII", dsl_line(), ascii(), include_str!("samples/dsl_line_ascii.txt")),
    ] {
        support::assert_same(&result_text(&result, style), sample, name);
        assert!(sample.lines().all(|line| line.chars().count() <= 80), "{name}");
    }
    assert!(include_str!("samples/dsl_line_ascii.txt").is_ascii());
}

#[test]
fn colours_add_nothing_but_colours() {
    let coloured = result_text(&dsl_line(), TextStyle { colour: true, ..TextStyle::plain() });
    assert!(coloured.contains("\u{1b}[1m 221 kbit/s\u{1b}[0m   \u{1b}[32mnetwork-limited"), "{coloured}");
    assert_eq!(bare(&coloured), result_text(&dsl_line(), TextStyle::plain()));
}

#[test]
fn a_narrow_terminal_gets_more_lines() {
    let style = TextStyle { width: TerminalWidth::new(48), ..TextStyle::plain() };
    let text = result_text(&dsl_line(), style);
    let (long, _): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.chars().count() > 48);
    // The first line of a run is not broken.
    assert!(long.iter().all(|line| line.contains("stream") && line.contains("bit/s")), "{long:#?}");
    assert!(
        text.contains("\n    RTT 18.5 ms → 1.88 s, p95 2.01 s\n    38 retransmits, CPU 12 %, peer 31 %\n"),
        "{text}"
    );
}

#[test]
fn each_limit_is_named_with_its_number() {
    let full = |sender: Option<f64>, receiver: Option<f64>| LimitShares {
        sender_cpu: sender.map(ratio),
        receiver_cpu: receiver.map(ratio),
        ..shares(0.1, 0.2, 0.3, 0.4)
    };
    for (limits, words) in [
        (shares(0.6, 0.1, 0.1, 0.2), "application-limited: idle 60 % of time"),
        (shares(0.1, 0.7, 0.1, 0.1), "sender-limited: buffer full 70 % of time"),
        (shares(0.1, 0.1, 0.7, 0.1), "receiver-limited: window full 70 % of time"),
        (shares(0.1, 0.1, 0.1, 0.7), "network-limited, 70 % of the time"),
        (full(Some(0.97), Some(0.5)), "sender-limited: CPU busy 97 %"),
        (full(Some(0.5), Some(0.98)), "receiver-limited: CPU busy 98 %"),
        (
            LimitShares { sender_wait: Some(ratio(0.66)), ..full(Some(0.3), Some(0.1)) },
            "sender-limited: waits for CPU 66 %",
        ),
        // Other processes delay a thread that sleeps for most of its time.
        (
            LimitShares { receiver_wait: Some(ratio(0.4)), ..full(Some(0.0), Some(0.1)) },
            "network-limited, 40 % of the time",
        ),
    ] {
        let tcp = TcpReport { limits: Some(limits), ..TcpReport::default() };
        let text = result_text(&result(vec![run(Direction::Up, 1, 9.41e9, &tcp)]), TextStyle::plain());
        assert!(text.contains(&format!("  ↑ up    1 stream   9.41 Gbit/s   {words}\n")), "{text}");
    }
}

#[test]
fn an_interrupted_series_is_marked() {
    let mut failed = run(Direction::Down, 1, 1e6, &TcpReport::default());
    failed.report.streams.clear();
    failed.report.termination =
        TestTermination::Failed { message: "unable to read from stream socket: \u{1b}[31mno\u{1b}[0m".to_owned() };
    let mut cut = run(Direction::Up, 1, 1e6, &TcpReport::default());
    cut.report.termination = TestTermination::Interrupted { signal: Some("Interrupt(2)".to_owned()) };
    let text = result_text(&result(vec![cut, failed]), TextStyle::plain());
    assert!(text.contains("    cut short: interrupted (SIGINT)\n"), "{text}");
    assert!(
        text.contains(
            "  ↓ down  1 stream       no data\n    failed: unable to read from stream socket: \\x1b[31mno\\x1b[0m\n"
        ),
        "{text}"
    );
}

#[test]
fn overlapping_tests_and_slow_parallel_streams_are_reported() {
    let tcp = TcpReport::default();
    let mut many = run(Direction::Up, 4, 60e6, &tcp);
    many.report.far = Some(FarReport { overlapping_tests: 2, ..far(120.0, 121.0) });
    let text = result_text(&result(vec![run(Direction::Up, 1, 100e6, &tcp), many]), TextStyle::plain());
    assert!(
        text.contains("  Up, 4 streams carry less than one (0.60 times): they compete with each other.\n"),
        "{text}"
    );
    assert!(text.contains("  2 other tests ran on the server meanwhile: the figures disturb each other.\n"), "{text}");
}

fn progress(rates: &[BitRate]) -> TestProgress<'_> {
    TestProgress {
        flow: Direction::Down,
        streams: StreamCount::new(4),
        elapsed: Duration::from_millis(7400),
        total: Some(Duration::from_secs(10)),
        rates,
        rtt: Some(ms(21.3)),
        retransmits: Some(SegmentCount::new(12)),
    }
}

fn rates(gigabits: &[f64]) -> Vec<BitRate> {
    gigabits.iter().map(|rate| BitRate::from_bits_per_second(rate * 1e9)).collect()
}

#[test]
fn the_progress_line_shows_all_figures() {
    let rates = rates(&[0.0, 3.0, 7.0, 9.0, 9.41, 8.1, 9.41]);
    assert_eq!(
        progress_line(&progress(&rates), TextStyle::plain()),
        "↓ down  4 streams  9.41 Gbit/s  RTT 21.3 ms  12 retransmits  7/10 s  ▁▃▆██▇█"
    );
    assert_eq!(
        progress_line(&progress(&rates), TextStyle { width: TerminalWidth::new(55), ..ascii() }),
        "v down  4 streams  9.41 Gbit/s  7/10 s  _-+##*#"
    );
    assert_eq!(
        progress_line(
            &TestProgress { total: None, ..progress(&[]) },
            TextStyle { width: TerminalWidth::new(45), ..ascii() }
        ),
        "v down  4 streams               7 s"
    );
}

#[test]
fn the_progress_line_never_wraps() {
    let rates = rates(&[1.0; 100]);
    for width in 0..200 {
        for shown in [0, 1, 100] {
            for colour in [false, true] {
                let style = TextStyle { width: TerminalWidth::new(width), colour, unicode: true };
                let line = bare(&progress_line(&progress(&rates[..shown]), style));
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
                assert!(!line.contains('\n'));
            }
        }
    }
}

fn diagnosis(cause: Cause, confidence: Confidence, text: &str, states: &[(SenderState, f64)]) -> TransferDiagnosis {
    TransferDiagnosis {
        verdicts: vec![DiagnosisVerdict {
            cause,
            confidence,
            text: text.to_owned(),
            share: None,
            without: None,
            together_with: None,
            evidence: Vec::new(),
            advice: Vec::new(),
            tune: None,
        }],
        states: states.iter().map(|(state, share)| StateShare { state: *state, share: ratio(*share) }).collect(),
        goodput: BitRate::from_bits_per_second(213e6),
        bounds: Vec::new(),
        next: None,
        contradictions: Vec::new(),
        notes: Vec::new(),
    }
}

fn bound(rate: f64) -> ThroughputBound {
    let rate = BitRate::from_bits_per_second(rate);
    ThroughputBound { kind: BoundKind::SendBuffer, rate, arithmetic: String::new() }
}

/// The RHEL guide's path, with the figures of both ends.
fn diagnosed_path() -> ThroughputResult {
    let mut path = long_fat_path();
    let window = "The receive window is the limit: 3.15 MB per 117 ms round trip allows 215 Mbit/s.";
    let states =
        [(SenderState::ReceiveWindow, 0.94), (SenderState::SlowStart, 0.056), (SenderState::Application, 0.004)];
    let closed = diagnosis(Cause::ReceiveWindow, Confidence::High, window, &states);
    path.runs[0].diagnosis = Some(TransferDiagnosis { next: Some(bound(1.04e9)), ..closed.clone() });
    path.runs[1].diagnosis =
        Some(TransferDiagnosis { next: Some(bound(1e9)), goodput: BitRate::from_bits_per_second(2e9), ..closed });
    let random =
        "Random loss: 0.0726 % of what is sent is lost without a queue before, and cubic makes 256 Mbit/s of that.";
    let states = [(SenderState::CongestionWindow, 0.6), (SenderState::Recovery, 0.4)];
    path.runs[2].diagnosis = Some(diagnosis(Cause::Loss, Confidence::Medium, random, &states));
    path
}

#[test]
fn each_run_names_its_limit() {
    for (style, sample) in [
        (TextStyle::plain(), include_str!("samples/diagnosed_path.txt")),
        (ascii(), include_str!("samples/diagnosed_path_ascii.txt")),
    ] {
        support::assert_same(&result_text(&diagnosed_path(), style), sample, "diagnosed path");
        assert!(sample.lines().all(|line| line.chars().count() <= 80));
    }
    assert!(include_str!("samples/diagnosed_path_ascii.txt").is_ascii());
    let coloured = result_text(&diagnosed_path(), TextStyle { colour: true, ..TextStyle::plain() });
    assert_eq!(bare(&coloured), result_text(&diagnosed_path(), TextStyle::plain()));
}

#[test]
fn a_number_stays_with_its_unit() {
    for width in 40..120 {
        let text = result_text(&diagnosed_path(), TextStyle { width: TerminalWidth::new(width), ..TextStyle::plain() });
        let units = ["%", "ms", "Mbit/s", "MB", "MiB"];
        let alone = |line: &str| units.iter().any(|unit| line.trim_start().starts_with(unit));
        assert!(!text.lines().any(alone), "{width}: {text}");
    }
}

#[test]
fn the_diagnosis_and_the_stop_watches_do_not_contradict_each_other() {
    let tcp = |limits| TcpReport { limits: Some(limits), ..TcpReport::default() };
    let network = tcp(shares(0.0, 0.0, 0.1, 0.9));
    for (cause, words) in [
        (Cause::ReceiveWindow, "receiver-limited"),
        (Cause::SocketPacing, "sender-limited"),
        (Cause::SocketBuffer, "application-limited"),
        (Cause::WindowScalingOff, "limited by the hosts"),
        (Cause::Loss, "network-limited, 90 % of the time"),
        (Cause::Unclear, "network-limited, 90 % of the time"),
    ] {
        let mut up = run(Direction::Up, 1, 9.41e9, &network);
        up.diagnosis = Some(diagnosis(cause, Confidence::High, "It is so.", &[]));
        let text = result_text(&result(vec![up]), TextStyle::plain());
        assert!(text.contains(&format!("  ↑ up    1 stream   9.41 Gbit/s   {words}\n")), "{text}");
        assert!(text.contains("\n    It is so.\n"), "{text}");
    }
}

#[test]
fn a_note_follows_the_limit() {
    let mut up = run(Direction::Up, 1, 95.3e6, &TcpReport::default());
    let note = "Other processes keep both processors of the sending host busy; this transfer did not wait for them.";
    let mut found = diagnosis(Cause::LinkRate, Confidence::High, "The path is full.", &[]);
    found.notes.push(note.to_owned());
    up.diagnosis = Some(found);
    let text = result_text(&result(vec![up]), TextStyle::plain());
    let unwrapped = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(&format!("The path is full. {note}")), "{text}");
}

#[test]
fn the_suggested_command_is_for_the_measured_direction() {
    let mut down = run(Direction::Down, 1, 286e6, &TcpReport::default());
    assert!(!result_text(&result(vec![down.clone()]), TextStyle::plain()).contains("linerate diagnose"));
    down.diagnosis = Some(diagnosis(Cause::Unclear, Confidence::Low, "No limit of a host shows.", &[]));
    let elsewhere = ThroughputResult { port: Port::new(7).expect("a port"), ..result(vec![down]) };
    let text = result_text(&elsewhere, TextStyle::plain());
    let command = "  `linerate diagnose dtn.example.org -p 7 -- -R` measures the path capacity, and";
    assert!(text.contains(command), "{text}");
    // The next session over ssh has another port.
    let over_ssh = ThroughputResult { host: "ssh:me@far".to_owned(), ..elsewhere };
    let text = result_text(&over_ssh, TextStyle::plain());
    assert!(text.contains("  `linerate diagnose ssh:me@far -- -R` measures"), "{text}");
}

#[test]
fn several_hosts_are_one_table() {
    let long = format!("ssh:me@{}.example", "long".repeat(9));
    let results = [long_fat_path(), dsl_line(), ThroughputResult { host: long.clone(), ..long_fat_path() }];
    let hosts = || results.iter().map(|result| result.host.as_str()).chain(["far"]);
    for width in [60, 80, 120] {
        let style = TextStyle { width: TerminalWidth::new(width), ..TextStyle::plain() };
        let table = HostTable::new(hosts(), style);
        let rows: Vec<String> = results.iter().map(|result| table.row(&result.host, result)).collect();
        let whole = [table.heading(), rows.concat(), table.failure("far")].concat();
        assert!(whole.lines().all(|line| line.chars().count() <= usize::from(width)), "{whole}");
        assert_eq!(whole.lines().count(), 5, "{whole}");
    }
    let table = HostTable::new(hosts(), TextStyle::plain());
    assert_eq!(table.heading().split_whitespace().collect::<Vec<_>>(), ["HOST", "UP", "DOWN", "RETR", "LIMITED", "BY"]);
    let row = table.row(&results[1].host, &results[1]);
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row[..6], ["203.0.113.7", "224", "kbit/s", "851", "kbit/s", "188"], "{row:?}");
    assert_eq!(table.failure("far").split_whitespace().collect::<Vec<_>>(), ["far", "-", "-", "-", "failed"]);
    let none = table.row("far", &ThroughputResult { runs: Vec::new(), ..dsl_line() });
    assert!(none.contains("no data"), "{none}");
}

#[test]
fn the_document_has_the_diagnosis_as_in_diagnose() {
    let document = ThroughputDocument::new("0.1.0", &diagnosed_path());
    let first = document.runs[0].diagnosis.as_ref().expect("a diagnosis");
    let verdict = &first.verdicts[0];
    assert_eq!(verdict.cause, Cause::ReceiveWindow);
    assert_eq!(first.states[1].state, SenderState::SlowStart);
    assert_eq!(first.next.as_ref().map(|next| next.rate), Some(BitRate::from_bits_per_second(1.04e9)));
    assert_eq!(document.runs[3].diagnosis, None);
    let text = serde_json::to_string(&document).expect("plain data");
    assert_eq!(serde_json::from_str::<ThroughputDocument>(&text).expect("the same shape"), document);
    let mut diagnosed = serde_json::to_value(&document.runs[0]).expect("plain data");
    let keys = &diagnosed["diagnosis"]["verdicts"][0];
    assert_eq!((&keys["cause"], &keys["location"]), (&"receive-window".into(), &"receiver".into()));
    // Older documents lack some keys.
    diagnosed["diagnosis"].as_object_mut().expect("an object").remove("goodput_bits_per_second");
    let read: ThroughputTest = serde_json::from_value(diagnosed).expect("the same shape");
    assert_eq!(read.diagnosis.map(|diagnosis| diagnosis.verdicts), Some(first.verdicts.clone()));
    let mut kept = serde_json::to_value(&document.runs[3]).expect("plain data");
    kept.as_object_mut().expect("an object").remove("diagnosis");
    assert_eq!(serde_json::from_value::<ThroughputTest>(kept).expect("the same shape"), document.runs[3]);
}

#[test]
fn the_document_matches_the_sample() {
    let mut result = dsl_line();
    result.runs.truncate(3);
    result.runs.remove(1);
    result.runs[0].intervals = far(1884.0, 2011.0).intervals;
    let document = ThroughputDocument::new("0.1.0", &result);
    let text = serde_json::to_string_pretty(&document).expect("plain data") + "\n";
    support::assert_same(&text, include_str!("samples/throughput.json"), "document");
    assert_eq!(serde_json::from_str::<ThroughputDocument>(&text).expect("the same shape"), document);
}

#[test]
fn figures_come_from_the_side_that_reports_them() {
    let path = long_fat_path();
    let document = ThroughputDocument::new("0.1.0", &path);
    let [up, _, down, _] = &document.runs[..] else { panic!("four runs") };
    assert_eq!(up.loaded_rtt.map(|rtt| (rtt.median, rtt.p95)), Some((ms(117.2), ms(117.9))));
    assert_eq!(down.loaded_rtt.map(|rtt| (rtt.median, rtt.p95)), Some((ms(117.6), ms(119.0))));
    assert_eq!(
        (up.sender_congestion_control.as_deref(), up.receiver_congestion_control.as_deref()),
        (Some("cubic"), Some("bbr"))
    );
    assert_eq!(
        (down.sender_congestion_control.as_deref(), down.receiver_congestion_control.as_deref()),
        (Some("bbr"), Some("cubic"))
    );
    assert_eq!(document.peer_version.as_deref(), Some("0.1.0"));
    let mut unheard = path.runs[0].clone();
    unheard.report.streams[0].received = None;
    let rate = unheard.rate().expect("the sender counted");
    assert_eq!((rate.at, rate.rate), (StreamRole::Sender, BitRate::from_bits_per_second(213e6)));
}
