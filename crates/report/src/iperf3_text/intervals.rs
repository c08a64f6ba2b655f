//! The lines of one interval (iperf3's `iperf_print_intermediate`).

use std::io::{self, Write};

use linerate_model::parameters::Protocol;
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::stream::Role;
use linerate_units::iperf3::Format;
use linerate_units::{ByteCount, StreamCount};

use super::lines::{self, Columns, Figures, Label};
use crate::figures::{Context, IntervalSum, interval_seconds, intervals_of, milliseconds, percent, seconds};

pub(super) fn write(
    format: Format,
    context: &Context,
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
                Figures { label: Label::Stream(context.socket(stream.stream)), bytes: stream.bytes, ..figures };
            writeln!(out, "{}", stream_line(&figures, context, stream, tag(interval)))?;
        }
        if context.parallel > StreamCount::new(1) {
            let sum = IntervalSum::of(&streams, context.parallel);
            let figures = Figures { bytes: sum.bytes, ..figures(format, context, interval, role) };
            writeln!(out, "{}", sum_line(&figures, context, role, &sum, tag(interval)))?;
        }
    }
    Ok(())
}

/// iperf3 has one header for the whole test: with columns for a sender as soon as this end sends.
fn columns(context: &Context, interval: &IntervalReport) -> Columns {
    let counts = |stream: &StreamInterval| stream.tcp.as_ref().is_some_and(|tcp| tcp.retransmits.is_some());
    match context.protocol {
        Protocol::Tcp if interval.streams.iter().any(counts) => Columns::RetransmitsAndWindow,
        Protocol::Tcp => Columns::Plain,
        Protocol::Udp if context.roles() == [Role::Sender] => Columns::Datagrams,
        Protocol::Udp => Columns::JitterAndLoss,
    }
}

fn figures<'a>(format: Format, context: &Context, interval: &IntervalReport, role: Role) -> Figures<'a> {
    Figures {
        label: Label::Sum,
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

fn stream_line(figures: &Figures<'_>, context: &Context, stream: &StreamInterval, tag: &str) -> String {
    if let Some(udp) = &stream.udp {
        if stream.role == Role::Sender {
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

fn sum_line(figures: &Figures<'_>, context: &Context, role: Role, sum: &IntervalSum, tag: &str) -> String {
    match (context.protocol, role) {
        (Protocol::Udp, Role::Sender) => figures.with_datagrams(sum.packets, context.is_bidirectional(), tag),
        (Protocol::Udp, Role::Receiver) => {
            figures.with_loss(sum.jitter_ms, sum.lost, sum.packets, percent(sum.lost, sum.packets), tag)
        }
        (Protocol::Tcp, _) => match sum.retransmits {
            Some(retransmits) => figures.with_retransmits(retransmits, tag),
            None => figures.plain(tag),
        },
    }
}
