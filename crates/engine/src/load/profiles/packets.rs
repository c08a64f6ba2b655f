//! Profiles of UDP packets in both directions.

use core::time::Duration;

use linerate_analysis::traffic_profiles::{PacketFlow, TrafficProfile};
use linerate_sys::clock;
use linerate_units::{ByteCount, PacketCount, TypeOfService};

use super::super::measure::LoadTest;
use super::super::record::LoadRecord;
use super::super::traffic::OwnBytes;
use super::{FlowEvidence, ProfileTraffic, Ticker, wait};
use crate::phases::AbortReason;
use crate::probe::messages::{
    BURSTS_FEATURE, PacketSpacing, RecordDetail, SendLimit, SendOrder, SentReport, StreamNumber,
};
use crate::probe::{PacketArrivals, ProbeError, ProbeSession, StreamReception};

/// Time for which the far end goes on sending unless it is stopped: the order to stop may wait in a queue.
const MAX_EXCESS: Duration = Duration::from_secs(60);

/// Time after this end's last packet in which the far end still sends: a game's last inputs have updates, too.
const OVERLAP: Duration = Duration::from_millis(300);

/// Longest lateness of a sender.
const MAX_LATENESS: Duration = Duration::from_secs(2);

/// Ethernet, IPv6 and UDP headers of a packet.
const HEADERS: ByteCount = ByteCount::new(14 + 40 + 8);

/// Packets whose records are still to be collected.
pub(super) struct PacketRun {
    up: StreamNumber,
    down: StreamReception,
    /// Packets of the profile in each direction.
    count_up: u64,
    count_down: u64,
}

/// Sends the packets of a profile in both directions.
pub(super) fn run(
    record: &mut LoadRecord<'_>,
    test: &mut LoadTest<'_>,
    profile: TrafficProfile,
    time: Duration,
    ticker: Ticker<'_>,
) -> Result<PacketRun, AbortReason> {
    let session = test.session;
    let Some((flow_up, flow_down)) = profile.flows() else {
        return Err(ProbeError::System(format!("the profile {} has no packets", profile.name())).into());
    };
    check_session(session, flow_up)?;
    let (up, down) = (session.new_stream(), session.new_stream());
    let reception = session.receive(down, RecordDetail::Arrivals)?;
    session.far_receive(up, RecordDetail::Arrivals)?;
    let limit = SendLimit { count: None, duration: Some(time + MAX_EXCESS) };
    session.far_send(order(down, flow_down, limit))?;
    let count = SendLimit { count: Some(PacketCount::new(flow_up.packets_in(time))), duration: None };
    let end = clock::monotonic_now() + time + MAX_LATENESS;
    let sending = session.send(order(up, flow_up, count))?;
    wait(record, test, end, ticker, &|| sending.is_over())?;
    record.wait(OVERLAP)?;
    let (sent_up, sent_down) = (sending.stop(), session.far_stop_sending(down)?);
    test.profile_bytes = test.profile_bytes.and(OwnBytes { sent: on_link(&sent_up), received: on_link(&sent_down) });
    let count_down = tried(&sent_down).min(flow_down.packets_in(time));
    Ok(PacketRun { up, down: reception, count_up: tried(&sent_up), count_down })
}

fn check_session(session: &ProbeSession, flow: PacketFlow) -> Result<(), ProbeError> {
    let refused = |reason: &str| ProbeError::Refused { request: "send".to_owned(), reason: reason.to_owned() };
    if session.datagram_addresses().is_none() {
        return Err(refused("UDP does not get through"));
    }
    if flow.burst > 1 && !session.features().iter().any(|feature| feature == BURSTS_FEATURE) {
        return Err(refused("it is a linerate that sends no bursts yet: update it"));
    }
    Ok(())
}

fn order(stream: StreamNumber, flow: PacketFlow, limit: SendLimit) -> SendOrder {
    let spacing = if flow.burst > 1 { PacketSpacing::Bursts { packets: flow.burst } } else { PacketSpacing::Periodic };
    SendOrder {
        stream,
        size: flow.size,
        rate: flow.rate(),
        spacing,
        limit,
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    }
}

/// Packets of a stream, including those that their host refused: they have numbers, too.
fn tried(report: &SentReport) -> u64 {
    (report.packets + report.refused_no_room + report.refused_too_large).get()
}

fn on_link(report: &SentReport) -> ByteCount {
    report.bytes + report.packets * HEADERS
}

impl PacketRun {
    /// Collects the records of both ends; the inner error is a reason why they say nothing.
    pub(super) fn collect(self, session: &ProbeSession) -> Result<Result<ProfileTraffic, String>, AbortReason> {
        let up = session.far_collect(self.up)?;
        let (_, down) = self.down.finish();
        Ok(flow(self.count_up, up)
            .and_then(|up| Ok(ProfileTraffic::Packets { up, down: flow(self.count_down, down)? })))
    }
}

fn flow(sent: u64, arrivals: PacketArrivals) -> Result<FlowEvidence, String> {
    if !arrivals.not_kept.is_zero() {
        return Err(format!(
            "{} packets exceed the records of a session: measure fewer phases",
            arrivals.not_kept.get()
        ));
    }
    Ok(FlowEvidence { sent, packets: arrivals.packets })
}
