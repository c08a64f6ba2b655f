//! The lines of iperf3's tables, one function each (iperf3's `iperf_locale.c` has the layouts).

use linerate_model::parameters::TestProtocol;
use linerate_model::report::CpuUtilization;
use linerate_model::stream::{EndpointRole, StreamRole};
use linerate_units::iperf3::{UnitFormat, format_bytes, format_rate};
use linerate_units::{BitRate, ByteCount, PacketCount, SegmentCount, c_format};

use crate::figures::bits_per_second;

/// Between the intervals of several streams, and before the summary.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// Above and below the line with the port.
pub(super) const BANNER: &str = "-----------------------------------------------------------";

/// Columns after the bitrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricColumns {
    Plain,
    Retransmits,
    RetransmitsAndWindow,
    Datagrams,
    JitterAndLoss,
}

pub(super) fn table_header(columns: MetricColumns, bidirectional: bool) -> String {
    let role = if bidirectional { "[Role]" } else { "" };
    let rest = match columns {
        MetricColumns::Plain => "",
        MetricColumns::Retransmits => "         Retr",
        MetricColumns::RetransmitsAndWindow => "         Retr  Cwnd",
        MetricColumns::Datagrams => "         Total Datagrams",
        MetricColumns::JitterAndLoss => "         Jitter    Lost/Total Datagrams",
    };
    format!("[ ID]{role} Interval           Transfer     Bitrate{rest}")
}

/// `[TX-C]`: this end's role on a stream, and which end it is.
pub(super) const fn role_label(role: StreamRole, side: EndpointRole) -> &'static str {
    match (role, side) {
        (StreamRole::Sender, EndpointRole::Client) => "[TX-C]",
        (StreamRole::Receiver, EndpointRole::Client) => "[RX-C]",
        (StreamRole::Sender, EndpointRole::Server) => "[TX-S]",
        (StreamRole::Receiver, EndpointRole::Server) => "[RX-S]",
    }
}

/// Label in square brackets.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowLabel {
    Stream(i32),
    Sum,
}

impl RowLabel {
    pub(super) fn bracketed(self) -> String {
        match self {
            Self::Stream(socket) => format!("[{socket:3}]"),
            Self::Sum => "[SUM]".to_owned(),
        }
    }
}

/// Leading columns of all lines of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFigures<'a> {
    pub(super) label: RowLabel,
    /// Empty unless both directions are measured at once.
    pub(super) role: &'a str,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) bytes: ByteCount,
    /// Time over which the rate is computed.
    pub(super) seconds: f64,
    pub(super) format: UnitFormat,
}

impl RowFigures<'_> {
    fn head(&self) -> String {
        let rate = BitRate::from_bits_per_second(bits_per_second(self.bytes, self.seconds));
        format!(
            "{label}{role} {start:6.2}-{end:<6.2} sec  {bytes}s  {rate}s/sec",
            label = self.label.bracketed(),
            role = self.role,
            start = self.start,
            end = self.end,
            bytes = format_bytes(self.bytes, UnitFormat::AdaptiveBytes),
            rate = format_rate(rate, self.format),
        )
    }

    /// A TCP receiver, or a sender whose retransmissions are not known.
    pub(super) fn plain(&self, tag: &str) -> String {
        format!("{}                  {tag}", self.head())
    }

    /// A TCP sender during an interval.
    pub(super) fn with_window(&self, retransmits: SegmentCount, window: ByteCount, tag: &str) -> String {
        let window = format_bytes(window, UnitFormat::AdaptiveBytes);
        format!("{}  {:3}   {window}s       {tag}", self.head(), retransmits.get())
    }

    /// A TCP sender over the whole test; sums have one blank more.
    pub(super) fn with_retransmits(&self, retransmits: SegmentCount, tag: &str) -> String {
        let blank = if matches!(self.label, RowLabel::Sum) { " " } else { "" };
        format!("{}  {:3}            {blank}{tag}", self.head(), retransmits.get())
    }

    /// A UDP sender during an interval.
    pub(super) fn with_datagrams(&self, packets: PacketCount, bidirectional: bool, tag: &str) -> String {
        // In both directions at once the header is the receiver's: the count goes under its last column.
        let gap = if bidirectional { "          " } else { "" };
        format!("{} {gap} {}  {tag}", self.head(), packets.get())
    }

    /// A UDP receiver; and both sides in the summary.
    pub(super) fn with_loss(
        &self,
        jitter_ms: f64,
        lost: PacketCount,
        of: PacketCount,
        percent: f64,
        tag: &str,
    ) -> String {
        let percent = c_format::general(percent, 2);
        format!("{}  {jitter_ms:5.3} ms  {}/{} ({percent}%)  {tag}", self.head(), lost.get(), of.get())
    }

    /// A UDP receiver that does not know which losses belong to the omitted part (iperf3 before 3.16).
    pub(super) fn with_unknown_loss(&self, jitter_ms: f64, of: PacketCount, tag: &str) -> String {
        format!("{}  {jitter_ms:5.3} ms  Unknown/{}  {tag}", self.head(), of.get())
    }
}

/// iperf3 labels this line `[SUM]` also for one stream.
pub(super) fn out_of_order(role: &str, end: f64, count: PacketCount) -> String {
    format!("[SUM]{role} {:4.1}-{end:4.1} sec  {} datagrams received out-of-order", 0.0, count.get())
}

pub(super) fn not_available(label: RowLabel, who: &str) -> String {
    format!("{} ({who} statistics not available)", label.bracketed())
}

/// `CPU Utilization: local/sender 77.3% (0.3%u/76.9%s), remote/receiver 47.2% (1.0%u/46.2%s)`
pub(super) fn cpu(local_role: StreamRole, local: CpuUtilization, remote: CpuUtilization) -> String {
    let (here, there) = if local_role == StreamRole::Sender { ("sender", "receiver") } else { ("receiver", "sender") };
    format!("CPU Utilization: local/{here} {}, remote/{there} {}", cpu_figures(local), cpu_figures(remote))
}

fn cpu_figures(cpu: CpuUtilization) -> String {
    format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total.percent(), cpu.user.percent(), cpu.system.percent())
}

pub(super) const fn protocol(protocol: TestProtocol) -> &'static str {
    match protocol {
        TestProtocol::Tcp => "TCP",
        TestProtocol::Udp => "UDP",
    }
}
