//! Prints captured texts of iperf3 again from events and compares them character by character.

use linerate_model::event::TestEvent;
use linerate_model::report::{FarReport, FileReport, ServerOutput, TestTermination};
use linerate_model::stream::EndpointRole;
use linerate_report::iperf3_text::{Iperf3Renderer, TextOptions};
use linerate_units::iperf3::UnitFormat;
use linerate_units::{ByteCount, PacketCount};

use crate::support;
use crate::support::captured::Captured;

fn rendered(captured: &Captured) -> String {
    let mut renderer = Iperf3Renderer::new(TextOptions {
        format: UnitFormat::AdaptiveBits,
        verbose: captured.verbose,
        version: captured.version.clone(),
        system_information: captured.system_information.clone(),
    });
    let mut out = Vec::new();
    renderer.begin(&mut out).expect("memory");
    if let Some((port, test)) = captured.listening {
        renderer.listening(port, test, &mut out).expect("memory");
    }
    for event in &captured.events {
        renderer.event(event, &mut out).expect("memory");
    }
    String::from_utf8(out).expect("text")
}

fn assert_printed_again(capture: &str, side: EndpointRole, name: &str) {
    support::assert_same(&rendered(&Captured::parse(capture, side)), capture, name);
}

macro_rules! client {
    ($($name:ident => $file:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert_printed_again(include_str!(concat!("captures/", $file)), EndpointRole::Client, $file);
            }
        )*
    };
}

client! {
    tcp => "tcp.txt";
    tcp_verbose => "tcp_V.txt";
    tcp_reverse_verbose => "tcp_R.txt";
    tcp_bidirectional_verbose => "tcp_bidir.txt";
    tcp_server_output => "tcp_gso.txt";
    tcp_omitted => "tcp_omit.txt";
    tcp_parallel => "tcp_p2.txt";
    udp_parallel => "udp_P2.txt";
    udp_verbose => "udp_V.txt";
    udp_bidirectional_parallel => "udp_bidir.txt";
}

/// The capture in the format of 3.21: 3.12 has one blank more before "sender" in a TCP stream's last line. A final
/// interval under a millisecond is dropped: iperf3 times each stream itself, and shows it there.
fn as_newer(capture: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in capture.lines().filter(|line| !line.contains("  1.00-1.00 ")) {
        if lines.last().is_some_and(|last| last == line && line.starts_with("- -")) {
            continue;
        }
        lines.push(match line.strip_suffix("             sender") {
            Some(rest) if line.starts_with("[ ") => format!("{rest}            sender"),
            _ => line.to_owned(),
        });
    }
    lines.join("\n") + "\n"
}

#[test]
fn servers_print_their_own_side() {
    for (name, capture) in [
        ("tcp -P 2", include_str!("captures/server_3.12_tcp_P2.txt")),
        ("tcp -R, -V", include_str!("captures/server_3.12_tcp_R_V.txt")),
        ("tcp --bidir -P 2, -V", include_str!("captures/server_3.12_tcp_bidir_P2_V.txt")),
        ("udp --bidir -P 2, -V", include_str!("captures/server_3.12_udp_bidir_P2_V.txt")),
    ] {
        assert_printed_again(&as_newer(capture), EndpointRole::Server, name);
    }
}

/// Summary of a capture whose last event has been changed.
fn summary_with(capture: &str, change: impl FnOnce(&mut linerate_model::report::TestReport)) -> String {
    let mut captured = Captured::parse(capture, EndpointRole::Client);
    let Some(TestEvent::Finished(report)) = captured.events.last_mut() else { panic!("no report") };
    change(report);
    let text = rendered(&captured);
    let at = text.rfind("\n[ ID]").expect("a summary");
    text[at + 1..].to_owned()
}

const TCP: &str = include_str!("captures/tcp.txt");
const UDP_REVERSE_HEADER: &str =
    "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n";

#[test]
fn an_interrupted_test_shows_its_figures() {
    let text = summary_with(TCP, |report| {
        report.termination = TestTermination::Interrupted { signal: Some("Interrupt(2)".to_owned()) };
        report.streams[0].received = None;
    });
    assert_eq!(
        text,
        "[ ID] Interval           Transfer     Bitrate         Retr\n\
         [  4]   0.00-2.00   sec  5.39 GBytes  23.1 Gbits/sec   13            sender\n\
         [  4] (receiver statistics not available)\n"
    );
}

#[test]
fn the_share_of_a_file_is_between_the_sides() {
    let text = summary_with(TCP, |report| {
        let sent = report.streams[0].sent.as_mut().expect("sent");
        sent.bytes = ByteCount::from_mebibytes(10);
        report.file = Some(FileReport { name: "a\u{1b}b.iso".to_owned(), size: ByteCount::from_mebibytes(16) });
    });
    let line = text.lines().nth(2).expect("a third line");
    assert_eq!(line, "        Sent 10.0 MByte / 16.0 MByte (62%) of a\\x1bb.iso");
}

#[test]
fn overlapping_tests_are_reported_before_the_end() {
    for (others, sentence) in [
        (1, "\nwarning: 1 other test ran on this server at the same time; the figures disturb each other\n"),
        (2, "\nwarning: 2 other tests ran on this server at the same time; the figures disturb each other\n"),
    ] {
        let far =
            FarReport { version: "0.1.0".to_owned(), intervals: Vec::new(), overlapping_tests: others, host: None };
        let text = summary_with(TCP, |report| report.far = Some(far));
        assert!(text.ends_with(&format!("receiver{sentence}\niperf Done.\n")), "{text}");
    }
    let far = FarReport { version: "0.1.0".to_owned(), intervals: Vec::new(), overlapping_tests: 0, host: None };
    assert!(!summary_with(TCP, |report| report.far = Some(far)).contains("warning"));
}

#[test]
fn server_output_is_escaped() {
    let text = summary_with(include_str!("captures/tcp_gso.txt"), |report| {
        report.server_output = Some(ServerOutput::Text("a\tb\n\u{1b}[2Jc\n".to_owned()));
    });
    assert!(text.contains("\nServer output:\na\tb\n\\x1b[2Jc\n\n\niperf Done.\n"), "{text}");
}

#[test]
fn server_json_is_pretty_printed() {
    let text = summary_with(TCP, |report| {
        report.server_output = Some(ServerOutput::Json(r#"{"end":{"b":1,"a":"\u001b\u202e"}}"#.to_owned()));
    });
    let expected = "\nServer JSON output:\n{\n\t\"end\":\t{\n\t\t\"b\":\t1,\n\t\t\"a\":\t\"\\u001b\\u{202e}\"\n\t}\n}\n\niperf Done.\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn reordered_datagrams_have_a_line_after_the_sender() {
    // iperf3 3.12 printed, with datagrams reordered on the path:
    // [SUM]  0.0- 1.0 sec  43 datagrams received out-of-order
    let text = summary_with(include_str!("captures/udp_bidir.txt"), |report| {
        let udp = report.streams[2].udp.as_mut().expect("UDP");
        udp.received.as_mut().expect("received").out_of_order = Some(PacketCount::new(43));
    });
    let lines: Vec<_> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("out-of-order")).expect("the line");
    assert_eq!(lines[at], "[SUM][RX-C]  0.0- 2.0 sec  43 datagrams received out-of-order");
    assert!(lines[at - 1].starts_with("[  8][RX-C]") && lines[at - 1].ends_with("sender"));
    assert!(lines[at + 1].starts_with("[  8][RX-C]") && lines[at + 1].ends_with("receiver"));
}

#[test]
fn losses_that_the_peer_cannot_attribute_are_unknown() {
    let text = summary_with(include_str!("captures/udp_V.txt"), |report| {
        let udp = report.streams[0].udp.as_mut().expect("UDP");
        udp.received.as_mut().expect("received").lost = None;
    });
    assert!(text.starts_with(UDP_REVERSE_HEADER), "{text}");
    let receiver = text.lines().nth(2).expect("a third line");
    assert_eq!(receiver, "[  4]   0.00-2.00   sec   288 KBytes  1.18 Mbits/sec  0.014 ms  Unknown/9  receiver");
}

#[test]
fn an_accepted_client_that_never_starts_is_announced() {
    let mut captured = Captured::parse(include_str!("captures/tcp_V.txt"), EndpointRole::Client);
    captured.events.retain(|event| !matches!(event, TestEvent::Started(_) | TestEvent::Interval(_)));
    assert_eq!(
        rendered(&captured),
        format!(
            "iperf 3.21+\n{}\nControl connection MSS 32768\nConnecting to host 127.0.0.1, port 5299\n",
            support::SYSTEM
        )
    );
}

#[test]
fn one_renderer_serves_many_tests() {
    let captured = Captured::parse(TCP, EndpointRole::Client);
    let mut renderer = Iperf3Renderer::new(TextOptions::default());
    let mut out = Vec::new();
    for event in captured.events.iter().chain(&captured.events) {
        renderer.event(event, &mut out).expect("memory");
    }
    assert_eq!(String::from_utf8(out).expect("text"), TCP.repeat(2));
}
