//! Finds events for which iperf3 could have printed a captured text.
//!
//! The text is rounded, so bytes and times are searched for that give the same digits; values that the text has exactly
//! (counts, addresses, names) are read from it.

use core::time::Duration;

use linerate_model::event::{ConnectionEstablished, TestEvent, TestStart};
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::report::{
    CpuUtilization, ServerOutput, SideReport, StreamReport, TcpReport, UdpReceived, UdpReport,
};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::stream::{EndpointRole, StreamDescription, StreamRole};
use linerate_units::iperf3::{UnitFormat, format_bytes, format_rate};
use linerate_units::{BitRate, ByteCount, Mss, PacketCount, Port, SegmentCount, StreamCount, WallTime};

use super::{micros, milliseconds, percent, report, side, start, stream, stream_report};

/// A parsed capture.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) verbose: bool,
    pub(crate) version: String,
    pub(crate) system_information: String,
    pub(crate) listening: Option<(Port, u64)>,
    pub(crate) events: Vec<TestEvent>,
}

/// One row of a table.
#[derive(Clone, Debug)]
struct Row {
    /// The socket; `None` for a sum.
    socket: Option<i32>,
    role: Option<StreamRole>,
    start: f64,
    end: f64,
    transfer: String,
    rate: String,
    rest: Vec<String>,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
        let socket = if label == "SUM" { None } else { Some(label.trim().parse().ok()?) };
        let (role, rest) = match rest.strip_prefix('[') {
            Some(rest) if rest.starts_with("TX") => (Some(StreamRole::Sender), &rest[5..]),
            Some(rest) => (Some(StreamRole::Receiver), &rest[5..]),
            None => (None, rest),
        };
        let (times, rest) = rest.split_once(" sec ")?;
        let (start, end) = times.split_once('-')?;
        let mut words = rest.split_whitespace();
        let mut number = |ending: &str| Some(format!("{} {}", words.next()?, words.next()?.strip_suffix(ending)?));
        let (transfer, rate) = (number("s")?, number("s/sec")?);
        let rest = words.map(str::to_owned).collect();
        Some(Self {
            socket,
            role,
            start: start.trim().parse().ok()?,
            end: end.trim().parse().ok()?,
            transfer,
            rate,
            rest,
        })
    }

    fn is_tagged(&self, tag: &str) -> bool {
        self.rest.last().is_some_and(|word| word == tag)
    }

    /// `lost/total`.
    fn loss(&self) -> Option<(u64, u64)> {
        let (lost, total) = self.rest.iter().find(|word| word.contains('/'))?.split_once('/')?;
        Some((lost.parse().ok()?, total.parse().ok()?))
    }

    fn jitter_ms(&self) -> Option<f64> {
        let at = self.rest.iter().position(|word| word == "ms")?;
        self.rest[at - 1].parse().ok()
    }

    fn matches(&self, bytes: ByteCount, seconds: f64) -> bool {
        let rate = BitRate::from_bits_per_second(bytes.as_f64() * 8.0 / seconds);
        format_bytes(bytes, UnitFormat::AdaptiveBytes).trim() == self.transfer
            && format_rate(rate, UnitFormat::AdaptiveBits).trim() == self.rate
    }

    /// Numbers of bytes that print as this row over that time, thinned out.
    fn candidates(&self, seconds: f64) -> Vec<ByteCount> {
        let (low, high) = rounding_range(&self.transfer);
        let all = (0..=200).map(|step| ByteCount::from_f64(low + (high - low) * f64::from(step) / 200.0));
        all.filter(|bytes| self.matches(*bytes, seconds)).collect()
    }
}

/// Range of bytes (or bits) that print as `text`.
fn rounding_range(text: &str) -> (f64, f64) {
    let (number, unit) = text.split_once(' ').expect("a number and a unit");
    let base: f64 = if unit.ends_with("Byte") { 1024.0 } else { 1000.0 };
    let power = match unit.as_bytes()[0] {
        b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        _ => 0,
    };
    let decimals = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half = 0.5 * 0.1_f64.powi(i32::try_from(decimals).expect("few"));
    let value: f64 = number.parse().expect("a number");
    (((value - half) * base.powi(power)).max(0.0), (value + half) * base.powi(power))
}

/// A time, and bytes for each row, that give the rows' digits. Each sum is of the streams of its role.
fn solve(rows: &[Row]) -> (Duration, Vec<ByteCount>) {
    let shown = rows[0].end - rows[0].start;
    let mut times: Vec<f64> = (-49..=49).map(|step| shown + f64::from(step) / 10_000.0).collect();
    for row in rows.iter().filter(|row| !row.transfer.starts_with("0.00 ")) {
        let ((low, high), (slow, fast)) = (rounding_range(&row.transfer), rounding_range(&row.rate));
        for step in 1..40 {
            let part = f64::from(step) / 40.0;
            times.push((low + (high - low) * part) * 8.0 / (slow + (fast - slow) * (1.0 - part)));
        }
    }
    times.retain(|time| (time - shown).abs() < 0.004_95 && *time > 0.0);
    for time in times {
        let duration = micros(time);
        if let Some(bytes) = solve_for(rows, duration.as_secs_f64()) {
            return (duration, bytes);
        }
    }
    panic!("no bytes and time print as {rows:#?}");
}

fn solve_for(rows: &[Row], seconds: f64) -> Option<Vec<ByteCount>> {
    let candidates: Vec<_> = rows.iter().map(|row| row.candidates(seconds)).collect();
    if candidates.iter().any(Vec::is_empty) {
        return None;
    }
    (0..=50_usize).find_map(|step| {
        let pick = |list: &Vec<ByteCount>| list[(list.len() - 1) * step / 50];
        let bytes: Vec<_> = candidates.iter().map(pick).collect();
        let sums_match = rows.iter().filter(|row| row.socket.is_none()).all(|sum| {
            let parts = rows.iter().zip(&bytes).filter(|(row, _)| row.socket.is_some() && row.role == sum.role);
            sum.matches(parts.map(|(_, bytes)| *bytes).sum(), seconds)
        });
        sums_match.then_some(bytes)
    })
}

impl Captured {
    /// Parses `text`, which `side` printed.
    pub(crate) fn parse(text: &str, side: EndpointRole) -> Self {
        let (text, server_output) = split_server_output(text);
        let lines: Vec<&str> = text.lines().collect();
        let after = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix));
        let verbose = lines[0].starts_with("iperf ");
        let connected = connected(&lines, side);
        let host = connected.host.clone();
        let (test_start, direction_role) = test_start(&lines, side);
        assert!(after("Reverse mode").is_none_or(|rest| rest.contains(&host)));
        let second_header = lines.iter().rposition(|line| line.starts_with("[ ID]")).expect("a header of the summary");
        let role = |row: Row| Row { role: row.role.or(Some(direction_role)), ..row };
        let rows = |lines: &[&str]| lines.iter().filter_map(|line| Row::parse(line)).map(role).collect::<Vec<_>>();
        let (intervals, summary) = (rows(&lines[..second_header]), rows(&lines[second_header..]));
        let mut events = vec![TestEvent::Connected(connected), TestEvent::Started(Box::new(test_start.clone()))];
        events.extend(interval_reports(&test_start, &intervals).into_iter().map(TestEvent::Interval));
        let mut report = report(stream_reports(&test_start, &summary));
        report.server_output = server_output;
        (report.local_cpu, report.remote_cpu) = cpu(&lines);
        let congestion = after("snd_tcp_congestion ").or(after("rcv_tcp_congestion ")).map(str::to_owned);
        report.remote_congestion = congestion.clone().filter(|_| side == EndpointRole::Client);
        report.local_congestion = congestion;
        events.push(TestEvent::Finished(Box::new(report)));
        Self {
            verbose,
            version: lines[0].to_owned(),
            system_information: lines[1].to_owned(),
            listening: after("Server listening on ").map(|rest| {
                let (port, number) = rest.split_once(" (test #").expect("a test number");
                let port = Port::new(port.parse().expect("a port")).expect("not 0");
                (port, number.trim_end_matches(')').parse().expect("a number"))
            }),
            events,
        }
    }
}

fn split_server_output(text: &str) -> (&str, Option<ServerOutput>) {
    match text.split_once("\nServer output:\n") {
        Some((before, output)) => {
            let output = output.strip_suffix("\n\niperf Done.\n").expect("the last line");
            (before, Some(ServerOutput::Text(output.to_owned())))
        }
        None => (text, None),
    }
}

/// The number after `word` in `line`.
fn number_after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.split_once(word)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn connected(lines: &[&str], side: EndpointRole) -> ConnectionEstablished {
    let prefix = if side == EndpointRole::Client { "Connecting to host " } else { "Accepted connection from " };
    let line = lines.iter().find_map(|line| line.strip_prefix(prefix)).expect("the greeting");
    let (host, port) = line.split_once(", port ").expect("a port");
    let mss = lines.iter().find_map(|line| number_after(line, "TCP MSS: ").or(number_after(line, "connection MSS ")));
    ConnectionEstablished {
        side,
        host: host.to_owned(),
        port: Port::new(port.parse().expect("a port")).expect("not 0"),
        control_mss: mss.map(|mss| Mss::new(mss.parse().expect("a size"))),
        session: None,
        request: None,
    }
}

/// The start, and this end's role where it has one only.
fn test_start(lines: &[&str], side: EndpointRole) -> (TestStart, StreamRole) {
    let after = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix));
    let header = *lines.iter().find(|line| line.starts_with("[ ID]")).expect("a header");
    let bidirectional = header.contains("[Role]");
    let udp = lines.iter().any(|line| line.contains("Datagrams"));
    let sends = match side {
        EndpointRole::Client => after("Reverse mode").is_none(),
        EndpointRole::Server => {
            header.contains("Cwnd") || header.contains("Total Datagrams") && !header.contains("Lost")
        }
    };
    let role = if sends { StreamRole::Sender } else { StreamRole::Receiver };
    let forward = sends == (side == EndpointRole::Client);
    let direction = match (bidirectional, forward) {
        (true, _) => TestDirection::Bidirectional,
        (false, true) => TestDirection::Forward,
        (false, false) => TestDirection::Reverse,
    };
    let streams = streams(lines, side, bidirectional, role);
    let parallel = if bidirectional { streams.len() / 2 } else { streams.len() };
    let plan = after("Starting Test: ").unwrap_or_default();
    let seconds = number_after(plan, "omitting ").map_or(0, |_| {
        plan.split(", ").find_map(|part| part.strip_suffix(" second test")).expect("a time").parse().expect("a number")
    });
    let block = number_after(plan, "streams, ").map_or(131_072, |size| size.parse().expect("a size"));
    let parameters = TestParameters {
        protocol: if udp { TestProtocol::Udp } else { TestProtocol::Tcp },
        direction,
        parallel: StreamCount::new(parallel as u64),
        end: EndCondition::Time(Duration::from_secs(seconds)),
        block_size: ByteCount::new(block),
        ..TestParameters::default()
    };
    let mut test_start = start(side, parameters, streams);
    let number = |prefix: &str| after(prefix).map(|text| text.parse::<u32>().expect("a number"));
    test_start.target_rate = BitRate::from_bits_per_second(number("      Target Bitrate: ").map_or(0.0, f64::from));
    test_start.derived_block_size = number("Setting UDP block size to ").map(|size| ByteCount::new(size.into()));
    test_start.cookie = after("      Cookie: ").map_or_else(String::new, str::to_owned);
    test_start.at = after("Time: Fri, 20 Nov 2026 ").map_or(WallTime::default(), |time| {
        let parts: Vec<u64> = time[..8].split(':').map(|part| part.parse().expect("a number")).collect();
        let midnight = 1_795_132_800;
        WallTime::from_unix(Duration::from_secs(midnight + parts[0] * 3600 + parts[1] * 60 + parts[2]))
    });
    (test_start, role)
}

fn streams(lines: &[&str], side: EndpointRole, bidirectional: bool, role: StreamRole) -> Vec<StreamDescription> {
    let found: Vec<_> = lines.iter().filter(|line| line.contains("] local ")).collect();
    let half = found.len() / 2;
    let describe = |(index, line): (usize, &&&str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "local").expect("local");
        let port = |word: usize| words[at + word].parse::<u16>().expect("a port");
        let role = match (bidirectional, side, index < half) {
            (false, ..) => role,
            (true, EndpointRole::Client, true) | (true, EndpointRole::Server, false) => StreamRole::Sender,
            (true, ..) => StreamRole::Receiver,
        };
        let socket = line[1..4].trim().parse().expect("a socket");
        let mut description = stream(index, socket, port(3), role);
        description.remote = ([127, 0, 0, 1], port(8)).into();
        description
    };
    found.iter().enumerate().map(describe).collect()
}

fn interval_reports(start: &TestStart, rows: &[Row]) -> Vec<IntervalReport> {
    let first = rows[0].socket;
    let beginnings: Vec<_> = (0..rows.len()).filter(|&at| rows[at].socket == first).collect();
    let ends = beginnings.iter().skip(1).copied().chain([rows.len()]);
    beginnings.iter().zip(ends).map(|(&from, to)| interval_report(start, &rows[from..to])).collect()
}

fn interval_report(start: &TestStart, rows: &[Row]) -> IntervalReport {
    let (duration, bytes) = solve(rows);
    let begin = micros(rows[0].start);
    let jitter_shift = jitter_shift(rows);
    let streams = start.streams.iter().map(|stream| {
        let at = rows.iter().position(|row| row.socket == Some(stream.socket)).expect("a row");
        stream_interval(start, stream, &rows[at], bytes[at], jitter_shift)
    });
    IntervalReport {
        start: begin,
        end: begin + duration,
        omitted: rows[0].is_tagged("(omitted)"),
        streams: streams.collect(),
    }
}

/// Term added to each jitter so that their mean is rounded to the one shown.
fn jitter_shift(rows: &[Row]) -> f64 {
    let Some(sum) = rows.iter().find(|row| row.socket.is_none() && row.jitter_ms().is_some()) else { return 0.0 };
    let shown = sum.jitter_ms().expect("checked");
    let parts = rows
        .iter()
        .filter(|row| {
            row.socket.is_some() && row.role == sum.role && row.is_tagged("receiver") == sum.is_tagged("receiver")
        })
        .filter_map(Row::jitter_ms);
    let (total, count) = parts.fold((0.0, 0.0), |(total, count), part| (total + part, count + 1.0));
    let mean = total / count;
    ((shown - mean) * 0.6).clamp(-0.000_4, 0.000_4)
}

fn stream_interval(
    start: &TestStart,
    stream: &StreamDescription,
    row: &Row,
    bytes: ByteCount,
    jitter_shift: f64,
) -> StreamInterval {
    let sends = stream.role == StreamRole::Sender;
    let tcp = (start.parameters.protocol == TestProtocol::Tcp && sends).then(|| {
        let window = format!("{} {}", row.rest[1], row.rest[2].trim_end_matches('s'));
        let (low, high) = rounding_range(&window);
        TcpInterval {
            retransmits: Some(SegmentCount::new(row.rest[0].parse().expect("a count"))),
            congestion_window: Some(ByteCount::from_f64(f64::midpoint(low, high))),
            ..TcpInterval::default()
        }
    });
    let udp = (start.parameters.protocol == TestProtocol::Udp).then(|| match row.loss() {
        Some((lost, packets)) => UdpInterval {
            packets: PacketCount::new(packets),
            lost: Some(PacketCount::new(lost)),
            jitter: row.jitter_ms().map(|jitter| milliseconds(jitter + jitter_shift)),
            ..UdpInterval::default()
        },
        None => {
            UdpInterval { packets: PacketCount::new(row.rest[0].parse().expect("a count")), ..UdpInterval::default() }
        }
    });
    StreamInterval { stream: stream.id, role: stream.role, bytes, tcp, udp, socket: None }
}

fn stream_reports(start: &TestStart, rows: &[Row]) -> Vec<StreamReport> {
    let of = |tag: &str| rows.iter().filter(|row| row.is_tagged(tag)).cloned().collect::<Vec<_>>();
    let sides = if start.side == EndpointRole::Server {
        // A server uses its first stream's times for all.
        let (all, tags) = (solve(rows), ["sender", "receiver"]);
        tags.map(|tag| {
            let bytes = rows.iter().zip(&all.1).filter(|(row, _)| row.is_tagged(tag)).map(|(_, bytes)| *bytes);
            SideRows { rows: of(tag), duration: all.0, bytes: bytes.collect() }
        })
    } else {
        ["sender", "receiver"].map(|tag| {
            let rows = of(tag);
            let (duration, bytes) = solve(&rows);
            SideRows { rows, duration, bytes }
        })
    };
    start.streams.iter().map(|stream| stream_end(start, stream, &sides)).collect()
}

/// Counts of one side on all streams.
struct SideRows {
    rows: Vec<Row>,
    duration: Duration,
    bytes: Vec<ByteCount>,
}

impl SideRows {
    fn find(&self, stream: &StreamDescription) -> Option<(&Row, SideReport)> {
        let at = self.rows.iter().position(|row| row.socket == Some(stream.socket))?;
        Some((&self.rows[at], side(self.bytes[at], self.duration)))
    }
}

fn stream_end(start: &TestStart, stream: &StreamDescription, [senders, receivers]: &[SideRows; 2]) -> StreamReport {
    let mut report = stream_report(stream.clone());
    let (from, to) = (senders.find(stream), receivers.find(stream));
    report.sent = from.map(|(_, side)| side);
    report.received = to.map(|(_, side)| side);
    if start.parameters.protocol == TestProtocol::Tcp {
        let retransmits = from.and_then(|(row, _)| row.rest[0].parse().ok()).map(SegmentCount::new);
        report.tcp = Some(TcpReport { retransmits, ..TcpReport::default() });
        return report;
    }
    report.udp = Some(UdpReport {
        sent: from.map(|(row, _)| PacketCount::new(row.loss().expect("packets").1)),
        received: to.map(|(row, _)| {
            let (lost, expected) = row.loss().expect("loss");
            let group: Vec<_> = receivers.rows.iter().filter(|other| other.role == row.role).cloned().collect();
            UdpReceived {
                expected: PacketCount::new(expected),
                lost: Some(PacketCount::new(lost)),
                jitter: milliseconds(row.jitter_ms().expect("jitter") + jitter_shift(&group)),
                ..UdpReceived::default()
            }
        }),
    });
    report
}

fn cpu(lines: &[&str]) -> (Option<CpuUtilization>, Option<CpuUtilization>) {
    let Some(line) = lines.iter().find_map(|line| line.strip_prefix("CPU Utilization: ")) else { return (None, None) };
    let numbers: Vec<f64> =
        line.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect();
    let figures = |at: usize| {
        let figure = |offset: usize| percent(numbers[at + offset]);
        Some(CpuUtilization { total: figure(0), user: figure(1), system: figure(2) })
    };
    (figures(0), figures(3))
}
