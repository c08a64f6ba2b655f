//! The probes that run through the whole measurement: UDP best effort, UDP marked EF, ICMP, and on request UDP with both
//! codepoints of ECN.

use core::time::Duration;
use linerate_analysis::ippm::{ClockRelation, RoundTrip};
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_model::header_mark::HeaderMark;
use std::net::SocketAddr;

use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Dscp, MonotonicTime, WallTime};
use linerate_wire::stamp::BASE_LENGTH;

use super::echo::{self, EchoProber};
use super::evidence::{ClassSamples, Ect1Arrivals, ProbeFate, ProbeReading};
use super::record::LoadRecord;
use super::requests::{self, RequestProber};
use crate::phases::AbortReason;
use crate::probe::{ProbeOrder, ProbeResult, ProbeSeries, ProbeSession};

/// Expedited forwarding (RFC 3246).
const DSCP_EF: u8 = 46;

/// Link and network headers of small packets: Ethernet 14, IPv6 40 or IPv4 20, UDP or ICMP 8.
const ETHERNET_HEADER: u64 = 14;

/// Largest share of a path's packets that probes may have: many queues count packets, and each small one in them
/// displaces a large one that would add its time.
const SHARE: f64 = 0.1;

/// Longest probe interval: a phase needs some probes.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Packets of one probe of each class, and of a message on a connection, in one direction.
const ROUND_PACKETS: f64 = 4.0;

/// Further packets of a round where ECN codepoints are probed.
const CODEPOINT_PACKETS: f64 = 2.0;

/// Payload of a large packet.
const LARGE_PAYLOAD: ByteCount = ByteCount::new(1448);

/// Reason why codepoints are not probed.
const NEEDED_FOR_CODEPOINTS: &str = "probes with ECN codepoints need a linerate at the far end that UDP reaches";

/// Age after which an unanswered probe is ignored while the measurement runs.
const MAX_PENDING_AGE: Duration = Duration::from_secs(12);

/// The running probes.
pub(super) struct RunningProbes {
    best_effort: Option<ProbeSeries>,
    expedited: Option<ProbeSeries>,
    ect0: Option<ProbeSeries>,
    ect1: Option<ProbeSeries>,
    echoes: Option<EchoProber>,
    /// Requests on connections of their own.
    requests: Vec<RequestProber>,
    interval: Duration,
    /// Bytes on the link of one probe of each class, and of one message on a connection, in one direction.
    round_bytes: ByteCount,
}

impl RunningProbes {
    /// Starts the probes that this host supports; with `session` only where datagrams get through.
    pub(super) fn start(
        record: &mut LoadRecord<'_>,
        session: Option<&ProbeSession>,
        peer: SocketAddr,
    ) -> Result<Self, AbortReason> {
        let interval = record.options.probe_interval;
        let codepoints = record.options.codepoints && session.is_some();
        if record.options.codepoints && session.is_none() {
            record.note(format!("No dual queue can be found: {NEEDED_FOR_CODEPOINTS}."));
            record.unknown("dual_queues", NEEDED_FOR_CODEPOINTS);
        }
        let mut probes = Self {
            best_effort: None,
            expedited: None,
            ect0: None,
            ect1: None,
            echoes: None,
            requests: Vec::new(),
            interval,
            round_bytes: round_bytes(peer, codepoints),
        };
        if let Some(session) = session {
            // Of one size, so that they differ in their codepoint only.
            let size = if codepoints { ProbeOrder::MARKED_SIZE } else { BASE_LENGTH };
            let order = ProbeOrder { size, ..ProbeOrder::every(interval) };
            probes.best_effort = Some(session.probe(order)?);
            record.wait(interval / 4)?;
            let type_of_service = Dscp::new(DSCP_EF).map(Dscp::type_of_service).unwrap_or_default();
            probes.expedited = Some(session.probe(ProbeOrder { type_of_service, ..order })?);
            record.wait(interval / 4)?;
            if codepoints {
                let marked = |mark: HeaderMark| ProbeOrder { type_of_service: mark.octet(), ..order };
                probes.ect0 = Some(session.probe(marked(HeaderMark::Ect0))?);
                record.wait(interval / 8)?;
                probes.ect1 = Some(session.probe(marked(HeaderMark::Ect1))?);
                record.wait(interval / 8)?;
            }
        }
        match EchoProber::start(&record.options.target, peer, interval) {
            Ok(echoes) => probes.echoes = Some(echoes),
            Err(reason) => record.unknown("classes.icmp", reason),
        }
        Ok(probes)
    }

    /// Adds requests on connections of their own.
    pub(super) fn add_requests(&mut self, record: &mut LoadRecord<'_>) -> Result<(), AbortReason> {
        self.requests = RequestProber::start_all(record)?;
        self.round_bytes += requests::BYTES * self.requests.len() as u64;
        Ok(())
    }

    /// Ends the requests; their class and, where a connection ended early, the reason.
    pub(super) fn stop_requests(&mut self, record: &mut LoadRecord<'_>) -> Vec<ClassSamples> {
        self.requests.iter().for_each(RequestProber::stop_sending);
        let stop = |prober: RequestProber| {
            let (samples, failure) = prober.stop();
            if let Some((key, reason)) = failure {
                record.note(format!("From then on requests are missing: {reason}"));
                record.unknown(key, reason);
            }
            samples
        };
        self.requests.drain(..).map(stop).collect()
    }

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Number of probes of each class sent.
    pub(super) fn rounds(&self) -> u64 {
        match (&self.best_effort, &self.echoes) {
            (Some(prober), _) => prober.sent().get(),
            (None, Some(echoes)) => echoes.sent(),
            (None, None) => self.requests.first().map_or(0, RequestProber::requests),
        }
    }

    /// Bytes of all probes since `since` rounds, in one direction, estimated generously.
    pub(super) fn traffic(&self, since: u64) -> ByteCount {
        let rounds = self.rounds().saturating_sub(since) + 2;
        ByteCount::new(self.round_bytes.get() * rounds * 3 / 2)
    }

    /// The probes' share of the packets on a path with this goodput.
    pub(super) fn share_of(&self, goodput: BitRate) -> Option<f64> {
        let large = goodput / BitRate::from_bits_per_second(LARGE_PAYLOAD.as_f64() * 8.0);
        let requests: f64 = self.requests.iter().map(|_| requests::PACKETS).sum();
        let packets = ROUND_PACKETS + requests + if self.ect1.is_some() { CODEPOINT_PACKETS } else { 0.0 };
        let small = packets / self.interval.as_secs_f64();
        large.map(|large| small / (small + large.get()))
    }

    /// Increases the probe interval where probes are too many for a path with this goodput; returns `true` if so.
    pub(super) fn spare(&mut self, record: &LoadRecord<'_>, goodput: BitRate) -> Result<bool, AbortReason> {
        let Some(share) = self.share_of(goodput).filter(|share| *share > SHARE) else { return Ok(false) };
        // Dividing the number by this gives that share of the total.
        let fewer = (share / (1.0 - share).max(1e-6)) * ((1.0 - SHARE) / SHARE);
        let wanted = self.interval.mul_f64(fewer.min(1e4)).min(MAX_PROBE_INTERVAL);
        if wanted <= self.interval {
            return Ok(false);
        }
        self.interval = wanted;
        // Each restarts at once: they are reconfigured one after the other, so that they stay apart.
        for prober in [&self.best_effort, &self.expedited, &self.ect0, &self.ect1].into_iter().flatten() {
            prober.set_interval(wanted);
            record.wait(wanted.min(Duration::from_secs(1)) / 4)?;
        }
        if let Some(echoes) = &self.echoes {
            echoes.set_interval(wanted);
        }
        self.requests.iter().for_each(|requests| requests.set_interval(wanted));
        Ok(true)
    }

    /// Round trips of the best available class answered since `since`.
    pub(super) fn answered_since(&self, since: MonotonicTime) -> Vec<Duration> {
        let came = |reading: &ProbeReading| reading.round_trip().filter(|time| reading.sent + *time >= since);
        self.latest().iter().filter_map(came).collect()
    }

    /// Latest probes of the best available class, in the order of sending.
    pub(super) fn latest(&self) -> Vec<ProbeReading> {
        let now = clock::monotonic_now();
        let from = MonotonicTime::from_nanos(
            now.as_nanos().saturating_sub(u64::try_from(MAX_PENDING_AGE.as_nanos()).unwrap_or(0)),
        );
        if let Some(prober) = &self.best_effort {
            let many = MAX_PENDING_AGE.as_nanos() / self.interval.as_nanos().max(1);
            let first = prober.sent().get().saturating_sub(u64::try_from(many).unwrap_or(u64::MAX));
            let results = prober.since(usize::try_from(first).unwrap_or(0));
            return results.iter().map(plain).filter(|reading| reading.sent >= from).collect();
        }
        self.echoes.as_ref().map(|echoes| echoes.since(from)).unwrap_or_default()
    }

    /// Relation of the hosts' clocks, by all answered probes; `None` without any.
    pub(super) fn clocks(&self) -> Option<ClockRelation> {
        let monotonic = |time: WallTime| MonotonicTime::from_nanos(nanoseconds(time.since_unix_epoch()));
        let results = self.best_effort.as_ref()?.since(0);
        let round_trip = |probe: &ProbeResult| {
            let answer = probe.answer.as_ref()?;
            Some(RoundTrip {
                sent: monotonic(probe.sent.wall),
                far_received: monotonic(answer.far_received?),
                far_sent: monotonic(answer.far_sent?),
                received: monotonic(answer.received.wall),
            })
        };
        ClockRelation::of(&results.iter().filter_map(round_trip).collect::<Vec<_>>())
    }

    /// Ends the probes after a short wait for missing answers.
    pub(super) fn stop(self) -> (Vec<ClassSamples>, Option<Ect1Arrivals>) {
        const GRACE: Duration = Duration::from_secs(1);
        let Self { best_effort, expedited, ect0, ect1, echoes, .. } = self;
        if let Some(echoes) = &echoes {
            echoes.stop_sending();
        }
        let class = |class, readings| ClassSamples { class, readings, counts_losses: true };
        let mut classes = Vec::new();
        for (name, prober) in [
            (LatencyClass::UdpBestEffort, best_effort),
            (LatencyClass::UdpExpeditedForwarding, expedited),
            (LatencyClass::UdpEct0, ect0),
        ] {
            classes.extend(prober.map(|prober| class(name, readings(&prober.stop(GRACE)))));
        }
        let ect1 = ect1.map(|prober| prober.stop(GRACE));
        classes.extend(ect1.as_deref().map(|results| class(LatencyClass::UdpEct1, readings(results))));
        classes.extend(echoes.map(|echoes| class(LatencyClass::Icmp, echoes.stop())));
        (classes, ect1.as_deref().map(arrivals))
    }
}

/// Codepoints with which probes with ECT(1) and their answers arrived.
fn arrivals(results: &[ProbeResult]) -> Ect1Arrivals {
    let mut arrivals = Ect1Arrivals::default();
    for answer in results.iter().filter_map(|result| result.answer.as_ref()) {
        answer.up_type_of_service.into_iter().for_each(|octet| arrivals.up.count(octet));
        answer.down_type_of_service.into_iter().for_each(|octet| arrivals.down.count(octet));
    }
    arrivals
}

fn round_bytes(peer: SocketAddr, codepoints: bool) -> ByteCount {
    let network = ETHERNET_HEADER + if peer.is_ipv6() { 40 } else { 20 };
    let size = if codepoints { ProbeOrder::MARKED_SIZE } else { BASE_LENGTH };
    let datagram = network + 8 + size.get();
    let echo = network + 8 + echo::PAYLOAD.get();
    // TCP's header with time stamps, a frame of 13 bytes, and sometimes a pure acknowledgement.
    let message = 13 + 3 * (network + 32) / 2;
    let datagrams = if codepoints { 4 } else { 2 };
    ByteCount::new(datagrams * datagram + echo + message)
}

fn plain(result: &ProbeResult) -> ProbeReading {
    let Some(answer) = &result.answer else {
        return ProbeReading { sent: result.sent.monotonic, fate: ProbeFate::Lost(None), up: None, down: None };
    };
    let difference = |later: WallTime, earlier: WallTime| {
        let nanoseconds = |time: WallTime| i128::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
        i64::try_from(nanoseconds(later) - nanoseconds(earlier)).ok()
    };
    ProbeReading {
        sent: result.sent.monotonic,
        fate: ProbeFate::Answered(answer.round_trip),
        up: answer.far_received.and_then(|there| difference(there, result.sent.wall)),
        down: answer.far_sent.and_then(|there| difference(answer.received.wall, there)),
    }
}

/// Results of the probes that left this host. Of several unanswered ones in a row, the growth of the far end's own
/// count gives the number it answered: those were lost on the way down, the others on the way up. Which ones is
/// unknown; the numbers are right.
fn readings(results: &[ProbeResult]) -> Vec<ProbeReading> {
    let sent: Vec<&ProbeResult> = results.iter().filter(|result| !result.too_large && !result.no_room).collect();
    let mut readings: Vec<ProbeReading> = sent.iter().map(|result| plain(result)).collect();
    let answered: Vec<(usize, u32)> = sent
        .iter()
        .enumerate()
        .filter_map(|(index, result)| Some((index, result.answer.as_ref()?.far_sequence)))
        .collect();
    for pair in answered.windows(2) {
        let [(before, counted_before), (after, counted_after)] = pair else { continue };
        let missing = after - before - 1;
        let answered_there = i64::from(*counted_after) - i64::from(*counted_before) - 1;
        // Reordered or duplicated answers give no information.
        let Some(down) = usize::try_from(answered_there).ok().filter(|down| *down <= missing) else { continue };
        for (place, reading) in readings[before + 1..*after].iter_mut().enumerate() {
            reading.fate = ProbeFate::Lost(Some(if place < missing - down { Direction::Up } else { Direction::Down }));
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use linerate_sys::time_stamp::{StampSource, TimeStamp};
    use linerate_units::{Ratio, TypeOfService};

    use super::*;
    use crate::probe::ProbeAnswer;

    fn result(sequence: u32, far_sequence: Option<u32>) -> ProbeResult {
        let millis = |count: u64| TimeStamp {
            wall: WallTime::from_unix(Duration::from_millis(count)),
            monotonic: MonotonicTime::from_nanos(count * 1_000_000),
            source: StampSource::Program,
        };
        let sent = u64::from(sequence) * 50;
        let answer = far_sequence.map(|far_sequence| ProbeAnswer {
            received: millis(sent + 20),
            round_trip: Duration::from_millis(20),
            far_received: Some(WallTime::from_unix(Duration::from_millis(sent + 1012))),
            far_sent: Some(WallTime::from_unix(Duration::from_millis(sent + 1012))),
            far_sequence,
            up_time_to_live: None,
            down_time_to_live: None,
            up_type_of_service: None,
            down_type_of_service: None,
        });
        ProbeResult { sequence, sent: millis(sent), answer, too_large: false, no_room: false, duplicates: 0 }
    }

    #[test]
    fn the_far_count_shows_the_direction_of_a_loss() {
        // Of 1 to 3 the far end has answered one; 5 did not arrive there; 7 is too recent to decide.
        let results = [(0, Some(0)), (1, None), (2, None), (3, None), (4, Some(2)), (5, None), (6, Some(3)), (7, None)];
        let fates: Vec<ProbeFate> = readings(&results.map(|(sequence, far)| result(sequence, far)))
            .iter()
            .map(|reading| reading.fate)
            .collect();
        let answered = ProbeFate::Answered(Duration::from_millis(20));
        let (up, down) = (ProbeFate::Lost(Some(Direction::Up)), ProbeFate::Lost(Some(Direction::Down)));
        assert_eq!(fates, [answered, up, up, down, answered, up, answered, ProbeFate::Lost(None)]);
    }

    #[test]
    fn codepoints_on_arrival_are_counted_per_direction() {
        let arrived = |up: u8, down: u8| {
            let mut result = result(0, Some(0));
            if let Some(answer) = &mut result.answer {
                (answer.up_type_of_service, answer.down_type_of_service) =
                    (Some(TypeOfService::new(up)), Some(TypeOfService::new(down)));
            }
            result
        };
        let results = [arrived(1, 0), arrived(3, 2), arrived(0x29, 3), result(3, None), result(4, Some(1))];
        let Ect1Arrivals { up, down } = arrivals(&results);
        assert_eq!((up.unchanged, up.marked, up.changed), (2, 1, 0));
        assert_eq!((down.unchanged, down.marked, down.changed), (0, 1, 2));
        assert_eq!((down.all(), down.intact(), up.marked()), (3, Ratio::new(0.0), Ratio::of(1.0, 3.0)));
        assert_eq!(arrivals(&[result(0, None)]).up.intact(), None);
        assert_eq!(arrivals(&[arrived(3, 3)]).down.intact(), Ratio::new(1.0), "marked, not changed");
    }

    #[test]
    fn an_inconsistent_count_is_ignored() {
        let results = [result(0, Some(5)), result(1, None), result(2, Some(3))];
        assert_eq!(readings(&results)[1].fate, ProbeFate::Lost(None));
        let results = [result(0, Some(0)), result(1, None), result(2, Some(9))];
        assert_eq!(readings(&results)[1].fate, ProbeFate::Lost(None));
    }

    #[test]
    fn one_way_times_include_the_clock_offset() {
        let reading = plain(&result(1, Some(1)));
        assert_eq!((reading.up, reading.down), (Some(1_012_000_000), Some(-992_000_000)));
    }
}
