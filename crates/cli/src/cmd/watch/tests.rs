//! Tests of the displayed flows, without a kernel.

use std::time::Duration;

use linerate_model::fact::Fact;
use linerate_model::far::{KernelEvents, PacketDrops, SoftirqTime};
use linerate_model::flow::BufferSettings;
use linerate_model::flow_events::{FlowEvents, IntervalEvents, TracedFlowKey};
use linerate_model::socket::{
    CongestionName, FlowKey, InstantTcpState, ProcessId, SocketCookie, SocketMemory, SocketOwner, SocketSnapshot,
    TcpState, UserId,
};
use linerate_model::tcp_info::TcpInfo;
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_sys::sock_diag::{SocketFilter, SocketStates};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Mss, SegmentCount};

use super::columns::TableColumn;
use super::document::document;
use super::events::FlowEventTrace;
use super::flows::{FlowEntry, FlowRow, FlowTable};
use super::prometheus::PrometheusMetrics;
use super::screen::{KeyAction, ScreenPage, WatchScreen};
use super::table::{self, RowSelection, ViewStyle};
use crate::keys::KeyPress;

const SECOND: Duration = Duration::from_secs(1);

fn reading(
    number: u16,
    remote: &str,
    sent: ByteCount,
    received: ByteCount,
    window_limited: Duration,
) -> SocketSnapshot {
    let busy = if sent.is_zero() { Duration::ZERO } else { SECOND };
    SocketSnapshot {
        key: FlowKey {
            local: ([10, 99, 1, 1], 40_000 + number).into(),
            remote: remote.parse().expect("an address"),
            cookie: SocketCookie(number.into()),
        },
        state: TcpState::Established,
        user: UserId(0),
        inode: None,
        receive_queue: ByteCount::ZERO,
        send_queue: ByteCount::ZERO,
        timer: None,
        info: Some(TcpInfo {
            bytes_acknowledged: Some(sent),
            bytes_received: Some(received),
            bytes_sent: Some(sent),
            bytes_retransmitted: Some(ByteCount::ZERO),
            retransmits: Some(SegmentCount::ZERO),
            rtt: Some(Duration::from_micros(20_400)),
            min_rtt: Some(Duration::from_micros(20_100)),
            send_mss: Some(Mss::new(1448)),
            send_window: Some(ByteCount::new(232_960)),
            congestion_window: Some(ByteCount::new(1_200_000)),
            unacknowledged: Some(SegmentCount::new(if sent.is_zero() { 0 } else { 10 })),
            lost: Some(SegmentCount::ZERO),
            busy_time: Some(busy),
            receive_window_limited: Some(window_limited),
            send_buffer_limited: Some(Duration::ZERO),
            ..TcpInfo::default()
        }),
        moment: InstantTcpState {
            selectively_acknowledged: Some(SegmentCount::ZERO),
            retransmitted: Some(SegmentCount::ZERO),
            ..InstantTcpState::default()
        },
        memory: Some(SocketMemory { send_buffer: ByteCount::new(2_626_560), ..SocketMemory::default() }),
        congestion_control: Some(CongestionName::from_bytes(b"cubic")),
        congestion_state: None,
        type_of_service: None,
        mark: None,
        control_group: None,
    }
}

/// Flow that sent at this rate for a second, and waited 759 ms of it for the remote receive window.
fn flow(number: u16, remote: &str, rate: f64) -> FlowEntry {
    let start = MonotonicTime::from_nanos(0);
    let none = ByteCount::ZERO;
    let mut flow = FlowEntry::new(reading(number, remote, none, none, Duration::ZERO), start, 0);
    let sent = BitRate::from_bits_per_second(rate) * SECOND;
    let limited = if sent.is_zero() { Duration::ZERO } else { Duration::from_millis(759) };
    let settings = BufferSettings::default();
    flow.record_sample(reading(number, remote, sent, none, limited), start + SECOND, 1, &settings);
    flow
}

fn owner(name: &str, number: u32) -> Fact<SocketOwner> {
    Fact::Known(SocketOwner { process: ProcessId(number), name: name.to_owned() })
}

/// Flows to an IPv4 host, to an IPv6 host, and an idle one.
fn flows() -> Vec<(FlowEntry, Fact<SocketOwner>)> {
    vec![
        (flow(1, "10.99.2.2:5201", 89e6), owner("rsync", 1234)),
        (flow(2, "[2001:db8:1234:5678:9abc:def0:1234:5678]:443", 1.5e3), owner("a-process-name!", 4_194_303)),
        (flow(3, "192.168.100.200:50022", 0.0), Fact::denied("permission denied")),
    ]
}

fn rows(flows: &[(FlowEntry, Fact<SocketOwner>)]) -> Vec<FlowRow<'_>> {
    RowSelection::default().rows(flows.iter().map(|(flow, owner)| FlowRow { flow, owner, events: None }))
}

fn style(width: u16, colour: bool, unicode: bool) -> TextStyle {
    TextStyle { width: TerminalWidth::new(width), colour, unicode }
}

fn look(width: u16, unicode: bool) -> ViewStyle {
    ViewStyle { width: width.into(), style: style(width, false, unicode), listing: false, marks: false }
}

#[test]
fn the_table_fits_into_80_and_120_columns() {
    let flows = flows();
    for (width, columns) in [(80, 8), (100, 9), (120, 10)] {
        for unicode in [true, false] {
            let lines = table::lines(&rows(&flows), &RowSelection::default(), &look(width, unicode), None);
            assert_eq!(lines.len(), 4);
            for line in &lines {
                assert!(line.chars().count() <= width.into(), "{width}: {line}");
                assert!(unicode || line.is_ascii(), "{line}");
            }
            let titles = lines[0].split("  ").filter(|title| !title.trim().is_empty()).count();
            assert!(titles <= columns && lines[0].contains("LIMITED BY"), "{}", lines[0]);
            assert_eq!(lines[0].contains("CWND"), width > 80, "{}", lines[0]);
            assert_eq!(lines[0].contains("LOCAL"), width == 120, "{}", lines[0]);
            for expected in ["rsync/1234", "10.99.2.2:5201", "89.0M", "20.4ms", "receive window 76%"] {
                assert!(lines[1].contains(expected), "{expected}: {}", lines[1]);
            }
            assert!(lines[2].contains(":443") && !lines[2].contains("[2001:db8:1234:5678:9abc"), "{}", lines[2]);
            assert!(lines[3].contains("idle") && lines[3].starts_with("- "), "{}", lines[3]);
        }
    }
}

#[test]
fn the_limit_is_never_cut() {
    let flows = flows();
    for width in [20, 30, 40, 60, 70, 75] {
        let look = ViewStyle { marks: true, ..look(width, true) };
        let lines = table::lines(&rows(&flows), &RowSelection::default(), &look, None);
        assert!(lines[0].ends_with("LIMITED BY") || width < 21, "{width}: {lines:#?}");
        assert!(lines[1].contains("receive window 76%") || width < 21, "{width}: {lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width).max(21)), "{width}: {lines:#?}");
        assert_eq!(lines[1].contains(":5201"), width >= 40, "{width}: {lines:#?}");
        assert_eq!(lines[1].contains("rsync"), width >= 60, "{width}: {lines:#?}");
    }
}

/// One second in which the first flow's process waited for a processor, and the flow lost packets.
fn events() -> IntervalEvents {
    let label = TracedFlowKey { local: 40_001, remote: 5201, address: [10, 99, 2, 2].into() };
    let flow = FlowEvents { drops: [("QDISC_DROP".to_owned(), 20)].into(), by_timer: 3, by_acknowledgement: 9 };
    let softirq = SoftirqTime {
        processor: 1,
        vector: "NET_RX".to_owned(),
        time_ns: 340_000_000,
        runs: 5,
        interrupt: Some("eth0-rx-0".to_owned()),
        ..SoftirqTime::default()
    };
    let drop = PacketDrops { reason: "QDISC_DROP".to_owned(), location: None, packets: 23 };
    IntervalEvents {
        elapsed: SECOND,
        waits: Some([(ProcessId(1234), Duration::from_millis(123))].into()),
        has_flow_drops: true,
        has_flow_retransmissions: true,
        flows: [(label, flow)].into(),
        host: KernelEvents { softirqs: Some(vec![softirq]), drops: Some(vec![drop]), ..KernelEvents::default() },
    }
}

#[test]
fn kernel_events_have_columns_as_far_as_they_fit() {
    let (flows, events) = (flows(), events());
    let rows = flows.iter().map(|(flow, owner)| FlowRow { flow, owner, events: Some(&events) });
    let rows = RowSelection::default().rows(rows);
    for (width, shown) in [(60, &["WAIT"][..]), (80, &["WAIT", "DROPS", "DOWN"]), (100, &["WAIT", "DROPS", "TIMERS"])] {
        let lines = table::lines(&rows, &RowSelection::default(), &look(width, false), None);
        assert!(lines.iter().all(|line| line.len() <= usize::from(width)), "{width}: {lines:#?}");
        for title in shown.iter().chain(&["PROCESS", "PEER", "UP", "LIMITED BY"]) {
            assert!(lines[0].contains(title), "{width} {title}: {}", lines[0]);
        }
        assert!(lines[1].contains("12.3%") && lines[1].contains("rsync"), "{width}: {}", lines[1]);
    }
    let lines = table::lines(&rows, &RowSelection::default(), &look(160, false), None);
    let cells = |line: usize| lines[line].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let has = |line: usize, expected: &[&str]| cells(line).windows(expected.len()).any(|cells| cells == expected);
    assert!(has(1, &["12.3%", "20", "3/12"]), "{}", lines[1]);
    // A process that was not traced yet has no wait; a flow without events has none.
    assert!(has(2, &["-", "0", "0"]), "{}", lines[2]);
    let figures = rows[0].event_figures().map(|(_, text)| text.expect("known"));
    assert_eq!(figures, ["12.3 % of the time for a processor", "QDISC_DROP 20", "3 of 12 retransmissions now"]);
}

#[test]
fn kernel_events_are_in_the_document_with_a_line_about_the_host() {
    let (flows, events) = (flows(), events());
    let row = FlowRow { flow: &flows[0].0, owner: &flows[0].1, events: Some(&events) };
    let (mut host, _) = host();
    assert_eq!(host.events.as_ref().map(FlowEventTrace::host_line), None);
    host.events = Some(FlowEventTrace::Unavailable("tracing needs root".to_owned()));
    assert_eq!(
        host.events.as_ref().map(FlowEventTrace::host_line).as_deref(),
        Some("No kernel events: tracing needs root")
    );
    let document = serde_json::to_value(document(&host, &[row])).expect("JSON");
    assert_eq!(document["kernel_events"]["unavailable"], "tracing needs root");
    let flow = &document["flows"][0]["kernel_events"];
    assert_eq!(flow["run_queue_wait_ns"], 123_000_000);
    assert_eq!((&flow["drops"]["QDISC_DROP"], &flow["retransmitted_by_timer"]), (&20.into(), &3.into()));
    let line = "Host: CPU 1 34.0 % in NET_RX (eth0-rx-0); dropped: QDISC_DROP 23";
    assert_eq!(super::events::host_line(&events), line);
    let mut between_windows = events;
    between_windows.host.softirqs = None;
    let line = "Host: software interrupts not traced in this interval; dropped: QDISC_DROP 23";
    assert_eq!(super::events::host_line(&between_windows), line);
    between_windows.host.softirqs = Some(Vec::new());
    let line = "Host: no software interrupts; dropped: QDISC_DROP 23";
    assert_eq!(super::events::host_line(&between_windows), line);
    between_windows.host.softirqs = None;
    between_windows.host.missing = vec!["irq/softirq_entry".to_owned(), "irq/softirq_exit".to_owned()];
    assert_eq!(super::events::host_line(&between_windows), "Host: dropped: QDISC_DROP 23");
}

#[test]
fn in_a_pipe_nothing_is_cut_off() {
    let flows = flows();
    let lines = table::lines(&rows(&flows), &RowSelection::default(), &look(160, true), None);
    assert!(lines[2].contains("[2001:db8:1234:5678:9abc:def0:1234:5678]:443"), "{}", lines[2]);
    assert!(lines[2].contains("a-process-name!/4194303"), "{}", lines[2]);
}

#[test]
fn rows_are_sorted_by_every_column_and_filtered_by_text() {
    let flows = flows();
    let numbers = |choice: &RowSelection| -> Vec<u64> {
        let rows = choice.rows(flows.iter().map(|(flow, owner)| FlowRow { flow, owner, events: None }));
        rows.iter().map(|row| row.flow.reading.key.cookie.0).collect()
    };
    let by = |sort| RowSelection { sort: Some(sort), ..RowSelection::default() };
    assert_eq!(numbers(&RowSelection::default()), [1, 2, 3]);
    assert_eq!(numbers(&by(TableColumn::Process)), [2, 1, 3], "unknown processes come last");
    assert_eq!(numbers(&by(TableColumn::Peer)), [1, 3, 2]);
    assert_eq!(numbers(&by(TableColumn::Limit)), [3, 1, 2]);
    assert_eq!(numbers(&RowSelection { reverse: true, ..RowSelection::default() }), [3, 2, 1]);
    for column in super::columns::ALL {
        assert_eq!(numbers(&by(column)).len(), 3);
    }
    let typed = |text: &str| numbers(&RowSelection { typed: text.to_owned(), ..RowSelection::default() });
    assert_eq!((typed("RSYNC"), typed("5201 rsync"), typed("443 rsync")), (vec![1], vec![1], vec![]));
    assert_eq!(typed("receive"), [1, 2]);
    let process = |text: &str| numbers(&RowSelection { process: Some(text.to_owned()), ..RowSelection::default() });
    assert_eq!((process("1234"), process("sync"), process("123")), (vec![1], vec![1], vec![]));
}

fn host() -> (FlowTable, WatchScreen) {
    let mut host = FlowTable::new(SocketFilter::in_states(SocketStates::flows())).expect("sock_diag");
    for (flow, _) in flows() {
        host.insert(flow);
    }
    (host, WatchScreen::new(RowSelection::default(), false, SECOND))
}

fn press(screen: &mut WatchScreen, flows: &FlowTable, keys: &[KeyPress]) -> KeyAction {
    keys.iter().fold(KeyAction::Nothing, |_, key| screen.handle_key(*key, flows, 24))
}

#[test]
fn every_page_fits_and_ends_with_its_keys() {
    let (flows, mut screen) = host();
    press(&mut screen, &flows, &[KeyPress::Down]);
    let key = screen.chosen.expect("marked");
    for (width, height) in [(80, 24), (120, 40), (40, 5), (200, 3)] {
        for page in [ScreenPage::Table, ScreenPage::Help, ScreenPage::Flow(key)] {
            for (colour, unicode) in [(true, true), (false, true), (false, false)] {
                screen.page = page.clone();
                let picture = screen.picture(&flows, width.into(), height, style(width, colour, unicode));
                assert_eq!(picture.len(), height);
                assert_eq!(picture.iter().any(|line| line.contains('\x1b')), colour, "{page:?}");
                for line in picture.iter().filter(|_| !colour) {
                    // The table has a minimum width; the terminal cuts it off.
                    assert!(line.chars().count() <= usize::from(width.max(80)), "{width} {page:?}: {line}");
                    assert!(unicode || line.is_ascii(), "{line}");
                }
                let foot = picture.last().expect("a line");
                assert!(foot.contains("Esc") || foot.contains("Enter"), "{foot}");
            }
        }
    }
}

#[test]
fn a_flow_shows_its_history_and_its_limit() {
    let (flows, mut screen) = host();
    press(&mut screen, &flows, &[KeyPress::Down, KeyPress::Enter]);
    let text = screen.picture(&flows, 80, 40, style(80, false, true)).join("\n");
    for expected in [
        "10.99.1.1:40001 → 10.99.2.2:5201",
        "Limited by: receive window 76%",
        "75.9 %",
        "net.ipv4.tcp_rmem",
        "89.0 Mbit/s",
        "█",
        "cubic, 1.20 MB, 14.5 kB in flight",
        "least 20.1 ms",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    press(&mut screen, &flows, &[KeyPress::Down]);
    assert!(screen.picture(&flows, 80, 40, style(80, false, true))[0].contains(":443"), "the next flow");
    assert_eq!(press(&mut screen, &flows, &[KeyPress::Escape]), KeyAction::Nothing);
    assert_eq!(screen.page, ScreenPage::Table);
}

#[test]
fn keys_filter_freeze_sort_and_quit() {
    let (flows, mut screen) = host();
    let shown = |screen: &mut WatchScreen| screen.picture(&flows, 80, 24, style(80, false, true)).join("\n");
    press(
        &mut screen,
        &flows,
        &[KeyPress::Character('/'), KeyPress::Character('5'), KeyPress::Character('2'), KeyPress::Character('q')],
    );
    assert!(shown(&mut screen).contains("/52q_"));
    press(&mut screen, &flows, &[KeyPress::Backspace, KeyPress::Enter]);
    let text = shown(&mut screen);
    assert!(text.contains("1 flow") && text.contains("[/52]") && !text.contains("50022"), "{text}");
    press(&mut screen, &flows, &[KeyPress::Character('/'), KeyPress::Control('u'), KeyPress::Escape]);
    assert!(shown(&mut screen).contains("[/52]"), "Esc restores the previous filter");
    press(&mut screen, &flows, &[KeyPress::Escape, KeyPress::Character(' ')]);
    let text = shown(&mut screen);
    assert!(text.contains("3 flows") && text.contains("frozen"), "{text}");
    press(&mut screen, &flows, &[KeyPress::Right]);
    assert!(shown(&mut screen).contains("▾PROCESS"));
    press(&mut screen, &flows, &[KeyPress::Left, KeyPress::Left, KeyPress::Character('r')]);
    assert!(shown(&mut screen).contains("▴LIMITED BY"));
    press(&mut screen, &flows, &[KeyPress::End]);
    assert!(shown(&mut screen).contains("> "));
    press(&mut screen, &flows, &[KeyPress::Character('?')]);
    assert!(shown(&mut screen).contains("CWND"));
    assert_eq!(press(&mut screen, &flows, &[KeyPress::Character('q')]), KeyAction::Nothing, "back to the table");
    assert_eq!(press(&mut screen, &flows, &[KeyPress::Character('q')]), KeyAction::Quit);
    assert_eq!(press(&mut screen, &flows, &[KeyPress::Character('/'), KeyPress::Control('c')]), KeyAction::Quit);
}

#[test]
fn more_rows_than_lines_are_scrolled_to_the_marked_one() {
    let (mut host, mut screen) = host();
    for number in 10..200 {
        host.insert(flow(number, "10.99.2.2:5201", f64::from(number)));
    }
    press(&mut screen, &host, &[KeyPress::End]);
    let picture = screen.picture(&host, 80, 24, style(80, false, true));
    assert!(picture[22].starts_with("> "), "{picture:#?}");
    press(&mut screen, &host, &[KeyPress::Home]);
    assert!(screen.picture(&host, 80, 24, style(80, false, true))[3].starts_with("> "));
}

#[test]
fn metrics_have_few_flows_and_sums_of_the_others() {
    let mut host = FlowTable::new(SocketFilter::in_states(SocketStates::flows())).expect("sock_diag");
    for number in 1..=50 {
        host.insert(flow(number, "10.99.2.2:5201", 8e6));
    }
    let mut metrics = PrometheusMetrics::default();
    metrics.count(&host);
    metrics.count(&host);
    let rows = RowSelection::default().rows(host.rows());
    let text = metrics.text(&rows, 5);
    let lines_of = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(lines_of("linerate_flow_send_bytes_per_second{").len(), 5, "{text}");
    assert_eq!(
        lines_of("linerate_other_flows_send_bytes_per_second "),
        ["linerate_other_flows_send_bytes_per_second 45000000"]
    );
    assert_eq!(lines_of("linerate_other_flows "), ["linerate_other_flows 45"]);
    assert_eq!(lines_of("linerate_sent_bytes_total{"), ["linerate_sent_bytes_total{process=\"unknown\"} 100000000"]);
    assert_eq!(lines_of("linerate_limited_flows{"), ["linerate_limited_flows{limit=\"receive-window\"} 50"]);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().expect("a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = line.split(['{', ' ']).next().expect("a name");
        assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
    }
}

#[test]
fn names_of_processes_cannot_break_the_metrics() {
    let (flow, _) = flows().remove(0);
    let owner = owner("a\"b\\c\nd", 7);
    let text = PrometheusMetrics::default().text(&[FlowRow { flow: &flow, owner: &owner, events: None }], 1);
    assert!(text.contains(r#"process="a\"b\\c\nd",pid="7""#), "{text}");
}

#[test]
fn the_document_has_units_and_reasons() {
    let flows = flows();
    let (host, _) = host();
    let document = serde_json::to_value(document(&host, &rows(&flows))).expect("JSON");
    assert_eq!(document["schema"], 1);
    let first = &document["flows"][0];
    assert_eq!(first["process"]["name"], "rsync");
    assert_eq!(first["send_bits_per_second"], 89e6);
    assert_eq!(first["rtt_ns"], 20_400_000);
    assert_eq!(first["limit"]["by"], "receive-window");
    assert_eq!(first["limit"]["shares"]["receive_window"], 0.759);
    let last = &document["flows"][2];
    assert_eq!(
        (&last["process"], &last["process_unknown_because"]),
        (&serde_json::Value::Null, &"permission denied".into())
    );
}
