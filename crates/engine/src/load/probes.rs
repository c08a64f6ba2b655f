//! The probes that run through the whole measurement: UDP best effort, UDP marked EF, and ICMP.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::schema::load::ClassName;
use linerate_model::schema::throughput::Direction;
use linerate_sys::clock;
use linerate_units::{BitRate, ByteCount, Dscp, MonotonicTime, WallTime};
use linerate_wire::stamp::BASE_LENGTH;

use super::echo::{self, Echoes};
use super::evidence::{ClassReadings, Fate, Reading};
use super::record::Record;
use crate::course::Halt;
use crate::probe::{ProbeOrder, ProbeResult, ProbeSession, Prober};

/// Expedited forwarding (RFC 3246).
const EXPEDITED: u8 = 46;

/// Link and network headers of small packets: Ethernet 14, IPv6 40 or IPv4 20, UDP or ICMP 8.
const ETHERNET: u64 = 14;

/// Probes shall be no more than this share of a path's packets: many queues count packets, and each small one in them
/// stands where a large one would add its time.
const SHARE: f64 = 0.1;

/// They do not become rarer than this: a phase needs some of them.
const RAREST: Duration = Duration::from_secs(2);

/// Packets of one probe of each class, and of a message on a connection, in one direction.
const ROUND_PACKETS: f64 = 4.0;

/// Payload of a large packet.
const LARGE: ByteCount = ByteCount::new(1448);

/// What is still out after this long is not looked for while the measurement runs.
const MEMORY: Duration = Duration::from_secs(12);

/// The running probes.
pub(super) struct Probes {
    best_effort: Option<Prober>,
    expedited: Option<Prober>,
    echoes: Option<Echoes>,
    interval: Duration,
    /// Bytes on the link of one probe of each class, and of one message on a connection, in one direction.
    round_bytes: ByteCount,
}

impl Probes {
    /// Begins what can be done on this host: `session` only where datagrams get through.
    pub(super) fn start(
        record: &mut Record<'_>,
        session: Option<&ProbeSession>,
        peer: SocketAddr,
    ) -> Result<Self, Halt> {
        let interval = record.options.probe_interval;
        let mut probes =
            Self { best_effort: None, expedited: None, echoes: None, interval, round_bytes: round_bytes(peer) };
        if let Some(session) = session {
            let order = ProbeOrder { size: BASE_LENGTH, ..ProbeOrder::every(interval) };
            probes.best_effort = Some(session.probe(order)?);
            record.wait(interval / 4)?;
            let type_of_service = Dscp::new(EXPEDITED).map(Dscp::type_of_service).unwrap_or_default();
            probes.expedited = Some(session.probe(ProbeOrder { type_of_service, ..order })?);
            record.wait(interval / 4)?;
        }
        match Echoes::start(&record.options.target, peer, interval) {
            Ok(echoes) => probes.echoes = Some(echoes),
            Err(reason) => record.unknown("classes.icmp", reason),
        }
        Ok(probes)
    }

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// How many probes of each class have been sent.
    pub(super) fn rounds(&self) -> u64 {
        match (&self.best_effort, &self.echoes) {
            (Some(prober), _) => prober.sent().get(),
            (None, Some(echoes)) => echoes.sent(),
            (None, None) => 0,
        }
    }

    /// What all probes have sent since there had been so many rounds, in one direction, estimated generously.
    pub(super) fn traffic(&self, since: u64) -> ByteCount {
        let rounds = self.rounds().saturating_sub(since) + 2;
        ByteCount::new(self.round_bytes.get() * rounds * 3 / 2)
    }

    /// The share of the packets of a path of this goodput that they are.
    pub(super) fn share_of(&self, goodput: BitRate) -> Option<f64> {
        let large = goodput / BitRate::from_bits_per_second(LARGE.as_f64() * 8.0);
        let small = ROUND_PACKETS / self.interval.as_secs_f64();
        large.map(|large| small / (small + large.get()))
    }

    /// Makes probes rarer where they are too many for a path of this goodput; whether that was needed.
    pub(super) fn spare(&mut self, record: &Record<'_>, goodput: BitRate) -> Result<bool, Halt> {
        let Some(share) = self.share_of(goodput).filter(|share| *share > SHARE) else { return Ok(false) };
        // So many times fewer make that share of the whole.
        let fewer = (share / (1.0 - share).max(1e-6)) * ((1.0 - SHARE) / SHARE);
        let wanted = self.interval.mul_f64(fewer.min(1e4)).min(RAREST);
        if wanted <= self.interval {
            return Ok(false);
        }
        self.interval = wanted;
        // Each begins anew at once: they are told one after the other, so that they stay apart.
        for prober in [&self.best_effort, &self.expedited].into_iter().flatten() {
            prober.set_interval(wanted);
            record.wait(wanted.min(Duration::from_secs(1)) / 4)?;
        }
        if let Some(echoes) = &self.echoes {
            echoes.set_interval(wanted);
        }
        Ok(true)
    }

    /// Round trips of the best class there is, whose answers came since then.
    pub(super) fn answered_since(&self, since: MonotonicTime) -> Vec<Duration> {
        let came = |reading: &Reading| reading.round_trip().filter(|time| reading.sent + *time >= since);
        self.latest().iter().filter_map(came).collect()
    }

    /// The latest probes of the best class there is, in the order of sending.
    pub(super) fn latest(&self) -> Vec<Reading> {
        let now = clock::monotonic_now();
        let from =
            MonotonicTime::from_nanos(now.as_nanos().saturating_sub(u64::try_from(MEMORY.as_nanos()).unwrap_or(0)));
        if let Some(prober) = &self.best_effort {
            let many = MEMORY.as_nanos() / self.interval.as_nanos().max(1);
            let first = prober.sent().get().saturating_sub(u64::try_from(many).unwrap_or(u64::MAX));
            let results = prober.since(usize::try_from(first).unwrap_or(0));
            return results.iter().map(plain).filter(|reading| reading.sent >= from).collect();
        }
        self.echoes.as_ref().map(|echoes| echoes.since(from)).unwrap_or_default()
    }

    /// Ends them, and waits a moment for the answers that are still missing.
    pub(super) fn stop(self) -> Vec<ClassReadings> {
        const GRACE: Duration = Duration::from_secs(1);
        let Self { best_effort, expedited, echoes, .. } = self;
        if let Some(echoes) = &echoes {
            echoes.fall_silent();
        }
        let class = |class, readings| ClassReadings { class, readings, counts_losses: true };
        let mut classes = Vec::new();
        for (name, prober) in [(ClassName::UdpBestEffort, best_effort), (ClassName::UdpExpeditedForwarding, expedited)]
        {
            classes.extend(prober.map(|prober| class(name, readings(&prober.stop(GRACE)))));
        }
        classes.extend(echoes.map(|echoes| class(ClassName::Icmp, echoes.stop())));
        classes
    }
}

fn round_bytes(peer: SocketAddr) -> ByteCount {
    let network = ETHERNET + if peer.is_ipv6() { 40 } else { 20 };
    let datagram = network + 8 + BASE_LENGTH.get();
    let echo = network + 8 + echo::PAYLOAD.get();
    // TCP's header with time stamps, a frame of 13 bytes, and now and then an acknowledgement alone.
    let message = 13 + 3 * (network + 32) / 2;
    ByteCount::new(2 * datagram + echo + message)
}

fn plain(result: &ProbeResult) -> Reading {
    let Some(answer) = &result.answer else {
        return Reading { sent: result.sent.monotonic, fate: Fate::Lost(None), up: None, down: None };
    };
    let difference = |later: WallTime, earlier: WallTime| {
        let nanoseconds = |time: WallTime| i128::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
        i64::try_from(nanoseconds(later) - nanoseconds(earlier)).ok()
    };
    Reading {
        sent: result.sent.monotonic,
        fate: Fate::Answered(answer.round_trip),
        up: answer.far_received.and_then(|there| difference(there, result.sent.wall)),
        down: answer.far_sent.and_then(|there| difference(answer.received.wall, there)),
    }
}

/// What became of each probe that left this host. Where several in a row have no answer, the growth of the far end's own
/// count tells how many of them it answered: those were lost on the way down, the others on the way up. Which of a row were
/// which is not known; their numbers are right.
fn readings(results: &[ProbeResult]) -> Vec<Reading> {
    let sent: Vec<&ProbeResult> = results.iter().filter(|result| !result.too_large && !result.no_room).collect();
    let mut readings: Vec<Reading> = sent.iter().map(|result| plain(result)).collect();
    let answered: Vec<(usize, u32)> = sent
        .iter()
        .enumerate()
        .filter_map(|(index, result)| Some((index, result.answer.as_ref()?.far_sequence)))
        .collect();
    for pair in answered.windows(2) {
        let [(before, counted_before), (after, counted_after)] = pair else { continue };
        let missing = after - before - 1;
        let answered_there = i64::from(*counted_after) - i64::from(*counted_before) - 1;
        // Answers that overtook each other, or were made twice, say nothing.
        let Some(down) = usize::try_from(answered_there).ok().filter(|down| *down <= missing) else { continue };
        for (place, reading) in readings[before + 1..*after].iter_mut().enumerate() {
            reading.fate = Fate::Lost(Some(if place < missing - down { Direction::Up } else { Direction::Down }));
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use linerate_sys::time_stamp::{StampSource, TimeStamp};

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
    fn the_far_count_tells_which_way_a_probe_was_lost() {
        // Of 1 to 3 the far end has answered one; 5 did not get there; 7 is too late to tell.
        let results = [(0, Some(0)), (1, None), (2, None), (3, None), (4, Some(2)), (5, None), (6, Some(3)), (7, None)];
        let fates: Vec<Fate> = readings(&results.map(|(sequence, far)| result(sequence, far)))
            .iter()
            .map(|reading| reading.fate)
            .collect();
        let answered = Fate::Answered(Duration::from_millis(20));
        let (up, down) = (Fate::Lost(Some(Direction::Up)), Fate::Lost(Some(Direction::Down)));
        assert_eq!(fates, [answered, up, up, down, answered, up, answered, Fate::Lost(None)]);
    }

    #[test]
    fn a_count_that_makes_no_sense_tells_nothing() {
        let results = [result(0, Some(5)), result(1, None), result(2, Some(3))];
        assert_eq!(readings(&results)[1].fate, Fate::Lost(None));
        let results = [result(0, Some(0)), result(1, None), result(2, Some(9))];
        assert_eq!(readings(&results)[1].fate, Fate::Lost(None));
    }

    #[test]
    fn one_way_times_have_the_difference_of_the_clocks_in_them() {
        let reading = plain(&result(1, Some(1)));
        assert_eq!((reading.up, reading.down), (Some(1_012_000_000), Some(-992_000_000)));
    }
}
