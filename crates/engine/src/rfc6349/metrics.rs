//! Step 3: the three metrics of a transfer.

use core::time::Duration;

use linerate_model::formulas::{buffer_delay, tcp_efficiency, transfer_time_ratio};
use linerate_model::report::{StreamReport, TestReport};
use linerate_model::sample::IntervalReport;
use linerate_model::schema::nanoseconds;
use linerate_model::schema::rfc6349::{Flows, TcpTest};
use linerate_model::schema::throughput::Direction;
use linerate_model::stream::Role;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::{ByteCount, Ratio};

use super::baseline::bottleneck;
use super::meaning;
use super::record::Record;
use super::transfer::{self, Kind, Transfer, direction_of};
use crate::course::Halt;

/// Runs a transfer, and notes the metrics of each of its directions.
pub(super) fn measure(record: &mut Record<'_>, kind: Kind, left: usize) -> Result<(), Halt> {
    let directions: &[Direction] = match kind.flows {
        Flows::Up => &[Direction::Up],
        Flows::Down => &[Direction::Down],
        Flows::Both => &[Direction::Up, Direction::Down],
    };
    let transfer = transfer::run(record, kind, left)?;
    for direction in directions {
        let test = match &transfer {
            Ok(transfer) => test(record, kind, *direction, transfer),
            Err(problem) => failed(kind, *direction, problem.clone()),
        };
        record.tests.push(test);
    }
    Ok(())
}

fn failed(kind: Kind, direction: Direction, problem: String) -> TcpTest {
    TcpTest {
        flows: kind.flows,
        direction,
        connections: kind.connections.get(),
        goodput_bits_per_second: None,
        share_of_achievable: None,
        transfer_time_ratio: None,
        efficiency: None,
        buffer_delay: None,
        mean_rtt_ns: None,
        bytes: None,
        duration_ns: None,
        meaning: "It could not be run.".to_owned(),
        problem: Some(problem),
    }
}

/// The streams of one direction.
pub(super) fn streams(report: &TestReport, direction: Direction) -> impl Iterator<Item = &StreamReport> {
    report.streams.iter().filter(move |stream| direction_of(stream.description.role) == direction)
}

/// What arrived in one direction, and in which time.
pub(super) fn arrived(report: &TestReport, direction: Direction) -> Option<(ByteCount, Duration)> {
    let sides: Vec<_> = streams(report, direction).map(|stream| stream.received).collect::<Option<_>>()?;
    let time = sides.iter().map(|side| side.duration).max().filter(|time| !time.is_zero())?;
    Some((sides.iter().map(|side| side.bytes).sum(), time))
}

fn test(record: &Record<'_>, kind: Kind, direction: Direction, transfer: &Transfer) -> TcpTest {
    let report = &transfer.report;
    let bottleneck = bottleneck(record, direction);
    let arrived = arrived(report, direction);
    let goodput = arrived.map(|(bytes, time)| bytes.rate_over(time));
    let ideal = arrived.zip(bottleneck).and_then(|((bytes, _), bottleneck)| bottleneck.ideal_time(bytes));
    let ratio = arrived.zip(ideal).and_then(|((_, time), ideal)| transfer_time_ratio(time, ideal));
    let efficiency = efficiency(report, direction);
    let mean_rtt = mean_round_trip(transfer, direction);
    let delay =
        mean_rtt.zip(record.baseline.rtt_ns).and_then(|(mean, base)| buffer_delay(mean, Duration::from_nanos(base)));
    let achievable = bottleneck.and_then(|bottleneck| bottleneck.achievable());
    TcpTest {
        flows: kind.flows,
        direction,
        connections: kind.connections.get(),
        goodput_bits_per_second: goodput.map(linerate_units::BitRate::bits_per_second),
        share_of_achievable: goodput.zip(achievable).and_then(|(rate, most)| rate / most).map(Ratio::get),
        transfer_time_ratio: ratio.map(Ratio::get),
        efficiency: efficiency.map(Ratio::get),
        buffer_delay: delay.map(Ratio::get),
        mean_rtt_ns: mean_rtt.map(nanoseconds),
        bytes: arrived.map(|(bytes, _)| bytes.get()),
        duration_ns: arrived.map(|(_, time)| nanoseconds(time)),
        meaning: meaning::of(ratio, efficiency, delay, limits(report, direction).as_ref()),
        problem: None,
    }
}

/// What held the senders back; the first stream stands for all.
fn limits(report: &TestReport, direction: Direction) -> Option<linerate_model::limit::LimitShares> {
    streams(report, direction).find_map(|stream| stream.tcp.as_ref()?.limits)
}

/// By the senders' kernels: of an upload this one, of a download the far one, where it is a linerate.
fn efficiency(report: &TestReport, direction: Direction) -> Option<Ratio> {
    let infos: Vec<&TcpInfo> = streams(report, direction)
        .map(|stream| {
            let tcp = stream.tcp.as_ref()?;
            match direction {
                Direction::Up => tcp.last_info.as_ref(),
                Direction::Down => tcp.far_info.as_ref(),
            }
        })
        .collect::<Option<_>>()?;
    let sum = |field: fn(&TcpInfo) -> Option<ByteCount>| {
        infos.iter().map(|info| field(info)).collect::<Option<Vec<ByteCount>>>().map(|all| all.into_iter().sum())
    };
    tcp_efficiency(sum(|info| info.bytes_sent)?, sum(|info| info.bytes_retransmitted)?)
}

/// The mean over the seconds of the transfer (§4.3), each second being the mean of what the sender sampled in it.
fn mean_round_trip(transfer: &Transfer, direction: Direction) -> Option<Duration> {
    let intervals: &[IntervalReport] = match direction {
        Direction::Up => &transfer.intervals,
        Direction::Down => &transfer.report.far.as_ref()?.intervals,
    };
    let samples = intervals.iter().filter(|interval| !interval.omitted).flat_map(|interval| &interval.streams);
    let means: Vec<Duration> = samples
        .filter(|stream| stream.role == Role::Sender)
        .filter_map(|stream| {
            let tcp = stream.tcp.as_ref()?;
            tcp.rtt_samples.as_ref().map(|samples| samples.mean).or(tcp.rtt)
        })
        .collect();
    let count = u32::try_from(means.len()).ok().filter(|count| *count > 0)?;
    Some(means.iter().sum::<Duration>() / count)
}
