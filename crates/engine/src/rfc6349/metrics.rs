//! Step 3: the three metrics of a transfer.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::formulas::{buffer_delay, tcp_efficiency, transfer_time_ratio};
use linerate_documents::rfc6349::{LoadedDirections, TcpTest};
use linerate_model::report::{StreamReport, TestReport};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::StreamRole;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, Ratio};

use super::baseline::bottleneck;
use super::meaning;
use super::record::Rfc6349Record;
use super::transfer::{self, TransferKind, TransferResult, direction_of};
use crate::phases::AbortReason;

/// Runs a transfer, and adds the metrics of each of its directions.
pub(super) fn measure(record: &mut Rfc6349Record<'_>, kind: TransferKind, left: usize) -> Result<(), AbortReason> {
    let directions: &[Direction] = match kind.flows {
        LoadedDirections::Up => &[Direction::Up],
        LoadedDirections::Down => &[Direction::Down],
        LoadedDirections::Both => &[Direction::Up, Direction::Down],
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

fn failed(kind: TransferKind, direction: Direction, problem: String) -> TcpTest {
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
        meaning: "The transfer failed.".to_owned(),
        problem: Some(problem),
    }
}

/// Streams of one direction.
pub(super) fn streams(report: &TestReport, direction: Direction) -> impl Iterator<Item = &StreamReport> {
    report.streams.iter().filter(move |stream| direction_of(stream.description.role) == direction)
}

/// Bytes that arrived in one direction, and their time.
pub(super) fn arrived(report: &TestReport, direction: Direction) -> Option<(ByteCount, Duration)> {
    let sides: Vec<_> = streams(report, direction).map(|stream| stream.received).collect::<Option<_>>()?;
    let time = sides.iter().map(|side| side.duration).max().filter(|time| !time.is_zero())?;
    Some((sides.iter().map(|side| side.bytes).sum(), time))
}

fn test(record: &Rfc6349Record<'_>, kind: TransferKind, direction: Direction, transfer: &TransferResult) -> TcpTest {
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

/// Limits of the senders; the first stream represents all.
fn limits(report: &TestReport, direction: Direction) -> Option<linerate_model::limit::LimitShares> {
    streams(report, direction).find_map(|stream| stream.tcp.as_ref()?.limits)
}

/// Efficiency by the senders' kernels: of an upload this one, of a download the far one, where it is a linerate.
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

/// Mean over the seconds of the transfer (§4.3), each second being the mean of the sender's samples in it.
fn mean_round_trip(transfer: &TransferResult, direction: Direction) -> Option<Duration> {
    let intervals: &[IntervalReport] = match direction {
        Direction::Up => &transfer.intervals,
        Direction::Down => &transfer.report.far.as_ref()?.intervals,
    };
    let samples = intervals.iter().filter(|interval| !interval.omitted).flat_map(|interval| &interval.streams);
    let means: Vec<Duration> = samples
        .filter(|stream| stream.role == StreamRole::Sender)
        .filter_map(|stream| {
            let tcp = stream.tcp.as_ref()?;
            tcp.rtt_samples.as_ref().map(|samples| samples.mean).or(tcp.rtt)
        })
        .collect();
    let count = u32::try_from(means.len()).ok().filter(|count| *count > 0)?;
    Some(means.iter().sum::<Duration>() / count)
}

#[cfg(test)]
mod tests {
    use linerate_model::report::FarReport;
    use linerate_model::summary::DurationDistribution;
    use linerate_units::StreamCount;

    use super::super::test_support::{options, report, second, sent, stream, transfer, with_path};
    use super::*;

    const UP: TransferKind = TransferKind {
        flows: LoadedDirections::Up,
        connections: StreamCount::new(1),
        window: None,
        time: Duration::from_secs(10),
    };
    const DOWN: TransferKind = TransferKind { flows: LoadedDirections::Down, ..UP };

    /// Metrics on a path of 30 Mbit/s up, 150 Mbit/s down and 20 ms.
    fn metrics(kind: TransferKind, direction: Direction, transfer: &TransferResult) -> TcpTest {
        with_path(&options(), |record| test(record, kind, direction, transfer)).0
    }

    #[track_caller]
    fn assert_near(found: Option<f64>, expected: f64) {
        let found = found.expect("known");
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found}, expected {expected}");
    }

    #[test]
    fn the_metrics_of_an_upload_are_those_of_the_rfc() {
        // 28.96 Mbit/s of payload for ten seconds are 36.2 MB; at half of that rate they take twice the time.
        let mut one = stream(StreamRole::Sender, 18_100_000, 10_000);
        one.tcp.as_mut().expect("TCP").last_info = Some(sent(102_000, 2000));
        let intervals = vec![
            second(0, true, &[(StreamRole::Sender, 1, Some(500))]),
            second(0, false, &[(StreamRole::Sender, 1, Some(25))]),
            second(1, false, &[(StreamRole::Sender, 1, Some(31))]),
        ];
        let found = metrics(UP, Direction::Up, &transfer(vec![one], intervals));
        assert_near(found.goodput_bits_per_second, 14.48e6);
        assert_near(found.share_of_achievable, 0.5);
        assert_near(found.transfer_time_ratio, 2.0);
        // The RFC's example: 2000 bytes retransmitted of 102 000.
        assert_near(found.efficiency, 100.0 / 102.0);
        // The mean of 25 and 31 ms, against 20 ms: the omitted second does not count.
        assert_eq!(found.mean_rtt_ns, Some(28_000_000));
        assert_near(found.buffer_delay, 0.4);
        assert_eq!((found.bytes, found.duration_ns), (Some(18_100_000), Some(10_000_000_000)));
        assert!(found.meaning.starts_with("Loss limits the transfer: 1.96 % of the bytes"), "{}", found.meaning);
    }

    #[test]
    fn the_metrics_of_a_download_need_the_far_ends_figures() {
        let mut one = stream(StreamRole::Receiver, 181_000_000, 10_000);
        one.tcp.as_mut().expect("TCP").last_info = Some(sent(1000, 999));
        let mut run = transfer(vec![one], vec![second(0, false, &[(StreamRole::Receiver, 1, Some(90))])]);
        let found = metrics(DOWN, Direction::Down, &run);
        assert_near(found.transfer_time_ratio, 1.0);
        assert_eq!((found.efficiency, found.mean_rtt_ns, found.buffer_delay), (None, None, None));
        run.report.streams[0].tcp.as_mut().expect("TCP").far_info = Some(sent(1000, 0));
        let intervals = vec![second(0, false, &[(StreamRole::Sender, 1, Some(30))])];
        run.report.far = Some(FarReport { intervals, ..FarReport::default() });
        let found = metrics(DOWN, Direction::Down, &run);
        assert_near(found.efficiency, 1.0);
        assert_near(found.buffer_delay, 0.5);
        assert!(found.meaning.starts_with("The transfer fills the path; a queue adds 50 %"), "{}", found.meaning);
    }

    #[test]
    fn connections_are_summed_and_the_longest_time_counts() {
        let mut streams = vec![
            stream(StreamRole::Sender, 1000, 900),
            stream(StreamRole::Sender, 3000, 1000),
            stream(StreamRole::Receiver, 7000, 5000),
        ];
        assert_eq!(
            arrived(&report(streams.clone()), Direction::Up),
            Some((ByteCount::new(4000), Duration::from_secs(1)))
        );
        assert_eq!(
            arrived(&report(streams.clone()), Direction::Down),
            Some((ByteCount::new(7000), Duration::from_secs(5)))
        );
        for (stream, (all, again)) in streams.iter_mut().zip([(1000, 10), (3000, 30), (100, 100)]) {
            stream.tcp.as_mut().expect("TCP").last_info = Some(sent(all, again));
        }
        assert_eq!(efficiency(&report(streams.clone()), Direction::Up), Ratio::new(0.99));
        // One unknown part makes the sum unknown.
        streams[1].received = None;
        assert_eq!(arrived(&report(streams.clone()), Direction::Up), None);
        streams[1].tcp.as_mut().expect("TCP").last_info.as_mut().expect("set").bytes_retransmitted = None;
        assert_eq!(efficiency(&report(streams.clone()), Direction::Up), None);
        streams[2].received.as_mut().expect("set").duration = Duration::ZERO;
        assert_eq!(arrived(&report(streams), Direction::Down), None);
    }

    #[test]
    fn a_seconds_round_trip_is_the_mean_of_its_samples_where_there_are_any() {
        let mut intervals = vec![
            second(0, false, &[(StreamRole::Sender, 1, Some(10)), (StreamRole::Receiver, 1, Some(1000))]),
            second(1, false, &[(StreamRole::Sender, 1, None)]),
            second(2, false, &[(StreamRole::Sender, 1, Some(20))]),
        ];
        let of =
            |intervals: &[IntervalReport]| mean_round_trip(&transfer(Vec::new(), intervals.to_vec()), Direction::Up);
        assert_eq!(of(&intervals), Some(Duration::from_millis(15)));
        let samples = [40, 50].map(Duration::from_millis);
        intervals[0].streams[0].tcp.as_mut().expect("TCP").rtt_samples =
            DurationDistribution::of(&mut samples.to_vec());
        assert_eq!(of(&intervals), Some(Duration::from_micros(32_500)), "45 and 20 ms");
        assert_eq!(of(&intervals[1..2]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_faster_loaded_path_has_no_buffer_delay() {
        let intervals = vec![second(0, false, &[(StreamRole::Sender, 1, Some(19))])];
        let found = metrics(UP, Direction::Up, &transfer(vec![stream(StreamRole::Sender, 1000, 1000)], intervals));
        assert_eq!((found.mean_rtt_ns, found.buffer_delay), (Some(19_000_000), None));
    }

    #[test]
    fn a_failed_transfer_has_its_problem_and_no_figures() {
        let found = failed(DOWN, Direction::Down, "refused".to_owned());
        assert_eq!((found.problem.as_deref(), found.meaning.as_str()), (Some("refused"), "The transfer failed."));
        assert_eq!((found.bytes, found.goodput_bits_per_second, found.efficiency), (None, None, None));
    }
}
