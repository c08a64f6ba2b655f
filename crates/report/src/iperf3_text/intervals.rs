//! The lines of one interval (iperf3's `iperf_print_intermediate`).

use std::io::{self, Write};

use linerate_model::parameters::TestProtocol;
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::stream::StreamRole;
use linerate_units::iperf3::UnitFormat;
use linerate_units::{ByteCount, StreamCount};

use super::lines::{self, MetricColumns, RowFigures, RowLabel};
use crate::figures::{IntervalSum, TestContext, interval_seconds, intervals_of, milliseconds, percent, seconds};

pub(super) fn write(
    format: UnitFormat,
    context: &TestContext,
    interval: &IntervalReport,
    first: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if first {
        writeln!(out, "{}", lines::table_header(columns(context, interval), context.is_bidirectional()))?;
    } else if context.parallel > StreamCount::new(1) {
        writeln!(out, "{}", lines::SEPARATOR)?;
    }
    for &role in context.roles() {
        let streams = intervals_of(interval, role);
        for stream in &streams {
            let figures = figures(format, context, interval, role);
            let figures =
                RowFigures { label: RowLabel::Stream(context.socket(stream.stream)), bytes: stream.bytes, ..figures };
            writeln!(out, "{}", stream_line(&figures, context, stream, tag(interval)))?;
        }
        if context.parallel > StreamCount::new(1) {
            let sum = IntervalSum::of(&streams, context.parallel);
            let figures = RowFigures { bytes: sum.bytes, ..figures(format, context, interval, role) };
            writeln!(out, "{}", sum_line(&figures, context, role, &sum, tag(interval)))?;
        }
    }
    Ok(())
}

/// iperf3 has one header for the whole test: with columns for a sender as soon as this end sends.
fn columns(context: &TestContext, interval: &IntervalReport) -> MetricColumns {
    let counts = |stream: &StreamInterval| stream.tcp.as_ref().is_some_and(|tcp| tcp.retransmits.is_some());
    match context.protocol {
        TestProtocol::Tcp if interval.streams.iter().any(counts) => MetricColumns::RetransmitsAndWindow,
        TestProtocol::Tcp => MetricColumns::Plain,
        TestProtocol::Udp if context.roles() == [StreamRole::Sender] => MetricColumns::Datagrams,
        TestProtocol::Udp => MetricColumns::JitterAndLoss,
    }
}

fn figures<'a>(
    format: UnitFormat,
    context: &TestContext,
    interval: &IntervalReport,
    role: StreamRole,
) -> RowFigures<'a> {
    RowFigures {
        label: RowLabel::Sum,
        role: if context.is_bidirectional() { lines::role_label(role, context.side) } else { "" },
        start: seconds(interval.start),
        end: seconds(interval.end),
        bytes: ByteCount::ZERO,
        seconds: interval_seconds(interval),
        format,
    }
}

const fn tag(interval: &IntervalReport) -> &'static str {
    if interval.omitted { "(omitted)" } else { "" }
}

fn stream_line(figures: &RowFigures<'_>, context: &TestContext, stream: &StreamInterval, tag: &str) -> String {
    if let Some(udp) = &stream.udp {
        if stream.role == StreamRole::Sender {
            return figures.with_datagrams(udp.packets, context.is_bidirectional(), tag);
        }
        let jitter = udp.jitter.map_or(0.0, milliseconds);
        return match udp.lost {
            Some(lost) => figures.with_loss(jitter, lost, udp.packets, percent(lost, udp.packets), tag),
            None => figures.with_unknown_loss(jitter, udp.packets, tag),
        };
    }
    let tcp = stream.tcp.as_ref();
    match (tcp.and_then(|tcp| tcp.retransmits), tcp.and_then(|tcp| tcp.congestion_window)) {
        (Some(retransmits), Some(window)) => figures.with_window(retransmits, window, tag),
        (Some(retransmits), None) => figures.with_retransmits(retransmits, tag),
        (None, _) => figures.plain(tag),
    }
}

fn sum_line(figures: &RowFigures<'_>, context: &TestContext, role: StreamRole, sum: &IntervalSum, tag: &str) -> String {
    match (context.protocol, role) {
        (TestProtocol::Udp, StreamRole::Sender) => figures.with_datagrams(sum.packets, context.is_bidirectional(), tag),
        (TestProtocol::Udp, StreamRole::Receiver) => {
            figures.with_loss(sum.jitter_ms, sum.lost, sum.packets, percent(sum.lost, sum.packets), tag)
        }
        (TestProtocol::Tcp, _) => match sum.retransmits {
            Some(retransmits) => figures.with_retransmits(retransmits, tag),
            None => figures.plain(tag),
        },
    }
}
