//! The lines at the end of a test (iperf3's `iperf_print_results`).

use std::io::{self, Write};

use linerate_model::parameters::TestProtocol;
use linerate_model::report::{FileReport, ServerOutput, StreamReport, TestReport, TestTermination};
use linerate_model::stream::{EndpointRole, StreamRole};
use linerate_units::iperf3::{UnitFormat, format_bytes};
use linerate_units::{ByteCount, PacketCount, SegmentCount, StreamCount};

use super::TextOptions;
use super::lines::{self, MetricColumns, RowFigures, RowLabel};
use crate::escape;
use crate::figures::{
    DirectionEnd, EndTimes, TestContext, UdpEnd, bytes_received, bytes_sent, percent, remote_congestion, retransmits,
    whole_percent,
};
use crate::iperf3_json::OrderedValue;

pub(super) fn write(
    options: &TextOptions,
    context: &TestContext,
    report: &TestReport,
    out: &mut dyn Write,
) -> io::Result<()> {
    let directions: Vec<_> = context.roles().iter().map(|&role| DirectionEnd::of(report, context, role)).collect();
    writeln!(out, "{}", lines::SEPARATOR)?;
    if options.verbose {
        writeln!(out, "Test Complete. Summary Results:")?;
    }
    let columns = match context.protocol {
        TestProtocol::Udp => MetricColumns::JitterAndLoss,
        TestProtocol::Tcp if directions.iter().any(|direction| direction.has_retransmits) => MetricColumns::Retransmits,
        TestProtocol::Tcp => MetricColumns::Plain,
    };
    writeln!(out, "{}", lines::table_header(columns, context.is_bidirectional()))?;
    for direction in &directions {
        let section = DirectionSection { options, context, report, direction, times: EndTimes::of(report) };
        section.write(out)?;
    }
    write_server_output(report, out)?;
    write_overlap(context, report, out)?;
    if context.side == EndpointRole::Client && report.termination == TestTermination::Complete {
        writeln!(out, "\niperf Done.")?;
    }
    Ok(())
}

/// One direction of the summary.
struct DirectionSection<'a> {
    options: &'a TextOptions,
    context: &'a TestContext,
    report: &'a TestReport,
    direction: &'a DirectionEnd<'a>,
    times: EndTimes,
}

impl DirectionSection<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for stream in &self.direction.streams {
            self.write_stream(stream, out)?;
        }
        if self.context.parallel > StreamCount::new(1) {
            self.write_sums(out)?;
        }
        if self.options.verbose { self.write_hosts(out) } else { Ok(()) }
    }

    fn write_stream(&self, stream: &StreamReport, out: &mut dyn Write) -> io::Result<()> {
        let label = RowLabel::Stream(stream.description.socket);
        let sent = stream.sent.map(|_| match self.context.protocol {
            TestProtocol::Tcp => self.sender_line(label, bytes_sent(stream), retransmits(stream)),
            TestProtocol::Udp => self.udp_sender_line(label, bytes_sent(stream), UdpEnd::of(stream).sent),
        });
        self.write_side(StreamRole::Sender, label, sent, true, out)?;
        let udp = UdpEnd::of(stream);
        if self.direction.role == StreamRole::Receiver && !udp.out_of_order.is_zero() {
            writeln!(out, "{}", lines::out_of_order(self.role_label(), self.times.sender, udp.out_of_order))?;
        }
        if let Some(file) = &self.report.file {
            self.write_file(file, stream, out)?;
        }
        let received = stream.received.map(|_| match self.context.protocol {
            TestProtocol::Tcp => self.receiver(label, bytes_received(stream)).plain("receiver"),
            TestProtocol::Udp => self.udp_receiver_line(label, bytes_received(stream), udp),
        });
        self.write_side(StreamRole::Receiver, label, received, true, out)
    }

    fn write_sums(&self, out: &mut dyn Write) -> io::Result<()> {
        let direction = self.direction;
        let (sent, received) = (direction.bytes_sent(), direction.bytes_received());
        let (sender_line, receiver_line) = match self.context.protocol {
            TestProtocol::Tcp => (
                self.sender_line(RowLabel::Sum, sent, direction.has_retransmits.then(|| direction.retransmits())),
                self.receiver(RowLabel::Sum, received).plain("receiver"),
            ),
            TestProtocol::Udp => {
                (self.udp_sender_line(RowLabel::Sum, sent, direction.packets_sent()), self.udp_receiver_sum(received))
            }
        };
        let known = |side: fn(&StreamReport) -> bool| direction.streams.iter().any(|stream| side(stream));
        let sender_line = known(|stream| stream.sent.is_some()).then_some(sender_line);
        let receiver_line = known(|stream| stream.received.is_some()).then_some(receiver_line);
        // iperf3 reports a missing sum for TCP only.
        let mention = self.context.protocol == TestProtocol::Tcp;
        self.write_side(StreamRole::Sender, RowLabel::Sum, sender_line, mention, out)?;
        self.write_side(StreamRole::Receiver, RowLabel::Sum, receiver_line, mention, out)
    }

    /// One side's line. A server shows its own side only and mentions the other one with `-V`; a client shows both and
    /// mentions the one that did not report.
    fn write_side(
        &self,
        who: StreamRole,
        label: RowLabel,
        line: Option<String>,
        mention: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let shown = self.context.side == EndpointRole::Client || who == self.direction.role;
        match line.filter(|_| shown) {
            Some(line) => writeln!(out, "{line}"),
            None if mention && (shown || self.options.verbose) => {
                let who = if who == StreamRole::Sender { "sender" } else { "receiver" };
                writeln!(out, "{}", lines::not_available(label, who))
            }
            None => Ok(()),
        }
    }

    fn role_label(&self) -> &'static str {
        let bidirectional = self.context.is_bidirectional();
        if bidirectional { lines::role_label(self.direction.role, self.context.side) } else { "" }
    }

    fn figures(&self, label: RowLabel, bytes: ByteCount, seconds: f64) -> RowFigures<'static> {
        let format = self.options.format;
        RowFigures { label, role: self.role_label(), start: 0.0, end: seconds, bytes, seconds, format }
    }

    fn receiver(&self, label: RowLabel, bytes: ByteCount) -> RowFigures<'static> {
        self.figures(label, bytes, self.times.receiver)
    }

    fn sender_line(&self, label: RowLabel, bytes: ByteCount, retransmits: Option<SegmentCount>) -> String {
        let figures = self.figures(label, bytes, self.times.sender);
        match retransmits {
            Some(retransmits) => figures.with_retransmits(retransmits, "sender"),
            None => figures.plain("sender"),
        }
    }

    fn udp_sender_line(&self, label: RowLabel, bytes: ByteCount, packets: PacketCount) -> String {
        self.figures(label, bytes, self.times.sender).with_loss(0.0, PacketCount::ZERO, packets, 0.0, "sender")
    }

    fn udp_receiver_line(&self, label: RowLabel, bytes: ByteCount, udp: UdpEnd) -> String {
        let figures = self.receiver(label, bytes);
        match udp.lost {
            Some(lost) => figures.with_loss(udp.jitter_ms, lost, udp.expected, percent(lost, udp.expected), "receiver"),
            None => figures.with_unknown_loss(udp.jitter_ms, udp.expected, "receiver"),
        }
    }

    fn udp_receiver_sum(&self, bytes: ByteCount) -> String {
        let direction = self.direction;
        let figures = self.receiver(RowLabel::Sum, bytes);
        let (jitter_ms, expected) = (direction.jitter_ms(self.context.parallel), direction.packets_expected());
        match direction.lost() {
            Some(lost) => figures.with_loss(jitter_ms, lost, expected, percent(lost, direction.packets()), "receiver"),
            None => figures.with_unknown_loss(jitter_ms, expected, "receiver"),
        }
    }

    /// Share of the file of `-F` that was transferred, in whole percent; 100 for an empty file.
    fn write_file(&self, file: &FileReport, stream: &StreamReport, out: &mut dyn Write) -> io::Result<()> {
        let moved = if self.direction.role == StreamRole::Sender { bytes_sent(stream) } else { bytes_received(stream) };
        writeln!(
            out,
            "        Sent {} / {} ({}%) of {}",
            format_bytes(moved, UnitFormat::AdaptiveBytes),
            format_bytes(file.size, UnitFormat::AdaptiveBytes),
            whole_percent(moved, file.size),
            escape::line(&file.name)
        )
    }

    /// The lines of `-V` about processors and congestion control. iperf3 leaves the processors out where this end only
    /// receives, and prints them twice where it does both.
    fn write_hosts(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = self.report;
        let sends = self.direction.role == StreamRole::Sender;
        if let (true, Some(local)) = (sends, report.local_cpu) {
            let remote = report.remote_cpu.unwrap_or_default();
            writeln!(out, "{}", lines::cpu(StreamRole::Sender, local, remote))?;
            if self.context.is_bidirectional() {
                writeln!(out, "{}", lines::cpu(StreamRole::Receiver, local, remote))?;
            }
        }
        if self.context.protocol == TestProtocol::Tcp {
            let (local, remote) = (report.local_congestion.as_ref(), remote_congestion(self.context, report));
            let (sender, receiver) = if sends { (local, remote) } else { (remote, local) };
            for (name, algorithm) in [("snd", sender), ("rcv", receiver)] {
                if let Some(algorithm) = algorithm {
                    writeln!(out, "{name}_tcp_congestion {}", escape::line(algorithm))?;
                }
            }
        }
        Ok(())
    }
}

fn write_server_output(report: &TestReport, out: &mut dyn Write) -> io::Result<()> {
    match &report.server_output {
        Some(ServerOutput::Text(text)) => writeln!(out, "\nServer output:\n{}", escape::text(text)),
        Some(ServerOutput::Json(text)) => {
            let pretty = OrderedValue::parse(text).map_or_else(|_| text.clone(), |value| value.to_pretty());
            writeln!(out, "\nServer JSON output:\n{}", escape::text(&pretty))
        }
        None => Ok(()),
    }
}

/// The one line that iperf3 does not have: it serves one client at a time.
fn write_overlap(context: &TestContext, report: &TestReport, out: &mut dyn Write) -> io::Result<()> {
    let others = match context.side {
        EndpointRole::Server => report.overlapping_tests,
        EndpointRole::Client => report.far.as_ref().map(|far| far.overlapping_tests),
    };
    match others {
        None | Some(0) => Ok(()),
        Some(1) => {
            writeln!(out, "warning: 1 other test ran on this server at the same time; the figures disturb each other")
        }
        Some(others) => writeln!(
            out,
            "warning: {others} other tests ran on this server at the same time; the figures disturb each other"
        ),
    }
}
