//! Tests of the diagnosis rules: each rule has a case that fires and stays silent on a healthy transfer, and no
//! observation, however odd, makes it fail.

mod bursts;
mod chance;
mod consistency;
mod hosts;
mod kernel_events;
mod limits;
mod outages;
mod pairs;
mod queues;
mod transfers;
mod waits;
mod windows;

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::diagnosis::{
    BoundKind, Cause, CauseLocation, Confidence, ObservedConnection, PathEvidence, SocketInterval, TransferObservation,
};
use linerate_model::far::{
    HostEvidence, InterruptedProcessor, LinkEvidence, ProcessorLoad, QueueEvidence, QueueRateLimit, ReceivingEvidence,
};
use linerate_model::path::{
    CapacityMeasurement, CapacityMethod, PacketMetrics, PathDirection, PathMtu, PolicerDetection,
};
use linerate_model::sample::SocketSample;
use linerate_model::socket::{LockedBuffers, SocketMemory};
use linerate_model::tcp_info::{NegotiatedWindowScale, TcpInfo};
use linerate_rules::diagnosis::{RULES, TransferEvidence, diagnose};
use linerate_rules::tuning::{TUNING_RULES, TuningGoal, TuningHost, TuningInputs, propose};
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio, SegmentCount};
use proptest::prelude::*;

use hosts::host_cases;
use waits::{after_early_loss, reading, waiting_window};
use windows::small_window;

const SAMPLES: u32 = 40;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
const SEGMENT: u64 = 1448;

/// Parameters of a transfer of ten seconds; the default is one of 300 Mbit/s over 20 ms that fills the path.
#[derive(Clone)]
struct TransferShape {
    megabits: f64,
    capacity: f64,
    round_trip: Duration,
    queue: Duration,
    control: &'static str,
    window: u64,
    in_flight: u64,
    congestion_window: u64,
    /// Shares of the time.
    idle: f64,
    send_buffer: f64,
    receive_window: f64,
    retransmits: u64,
    unread: f64,
    buffers: (u64, bool),
    send_fill: f64,
    connections: usize,
}

impl Default for TransferShape {
    fn default() -> Self {
        Self {
            megabits: 283.0,
            capacity: 287.0,
            round_trip: Duration::from_millis(20),
            queue: Duration::from_millis(15),
            control: "cubic",
            window: 3_932_160,
            in_flight: 1_200_000,
            congestion_window: 1_300_000,
            idle: 0.0,
            send_buffer: 0.0,
            receive_window: 0.0,
            retransmits: 0,
            unread: 0.0,
            buffers: (6_291_456, true),
            send_fill: 0.1,
            connections: 1,
        }
    }
}

fn bytes(count: f64) -> ByteCount {
    ByteCount::from_f64(count)
}

fn capacity(megabits: f64) -> CapacityMeasurement {
    CapacityMeasurement {
        bits_per_second: megabits * 1e6,
        low_bits_per_second: None,
        high_bits_per_second: None,
        at_least: false,
        limited_by: None,
        shared: Some(false),
        packet_bytes: 1500,
        loss: None,
        loss_below: None,
        packets_below: None,
        queueing_ns: None,
        sent_bytes: 1_000_000,
        duration_ns: 1,
        method: CapacityMethod::UdpSearch,
    }
}

impl TransferShape {
    fn observation(&self) -> TransferObservation {
        let direction = |megabits: f64| PathDirection {
            mtu: Some(PathMtu {
                bytes: 1500,
                black_hole_bytes: None,
                icmp_bytes: None,
                interface_bytes: Some(1500),
                limited_by_interface: true,
            }),
            capacity: Some(capacity(megabits)),
            packets: Some(PacketMetrics::default()),
            policer: Some(PolicerDetection {
                present: false,
                bits_per_second: None,
                burst_bytes: None,
                evidence: String::new(),
            }),
            ..PathDirection::default()
        };
        let host = || {
            let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let settings = [
                setting("net.ipv4.tcp_rmem", "4096 131072 6291456"),
                setting("net.ipv4.tcp_wmem", "4096 16384 4194304"),
                setting("net.ipv4.tcp_mem", "100000 200000 300000"),
            ];
            HostEvidence { settings: settings.into(), busy: Some(0.1), ..HostEvidence::default() }
        };
        TransferObservation {
            elapsed: SAMPLE_INTERVAL * SAMPLES,
            received: bytes(self.megabits * 1e6 / 8.0 * 10.0),
            congestion_control: Some(self.control.to_owned()),
            connections: vec![self.connection(); self.connections],
            sender: Some(host()),
            receiver: Some(host()),
            path: Some(PathEvidence {
                round_trip: Some(self.round_trip),
                usual_round_trip: Some((self.round_trip, self.round_trip)),
                with_data: direction(self.capacity * 1500.0 / 1448.0),
                with_acknowledgements: direction(self.capacity * 1500.0 / 1448.0),
            }),
            ..TransferObservation::default()
        }
    }

    fn connection(&self) -> ObservedConnection {
        let share = 1.0 / SegmentCount::new(self.connections as u64).as_f64();
        let each = self.megabits * 1e6 / 8.0 * SAMPLE_INTERVAL.as_secs_f64() * share;
        let moment = |index: u32, sender: bool| SocketInterval {
            from: SAMPLE_INTERVAL * index,
            to: SAMPLE_INTERVAL * (index + 1),
            bytes: bytes(each),
            socket: SocketSample { info: self.info(index, each, sender), memory: Some(self.memory(index)) },
        };
        ObservedConnection {
            sender: (0..SAMPLES).map(|index| moment(index, true)).collect(),
            receiver: (0..SAMPLES).map(|index| moment(index, false)).collect(),
            sender_processor: Ratio::new(0.2),
            receiver_processor: Ratio::new(0.2),
            sender_wait: Ratio::new(0.01),
            receiver_wait: Ratio::new(0.01),
        }
    }

    fn memory(&self, index: u32) -> SocketMemory {
        let (buffer, grows) = self.buffers;
        let buffer = if grows && index == 0 { buffer / 4 } else { buffer };
        SocketMemory {
            receive_allocated: bytes(ByteCount::new(buffer).as_f64() * self.unread),
            receive_buffer: ByteCount::new(buffer),
            send_buffer: ByteCount::new(buffer),
            send_queued: bytes(ByteCount::new(buffer).as_f64() * self.send_fill),
            ..SocketMemory::default()
        }
    }

    fn info(&self, index: u32, each: f64, sender: bool) -> TcpInfo {
        let elapsed = SAMPLE_INTERVAL * (index + 1);
        let progress = f64::from(index + 1) / f64::from(SAMPLES);
        let again = SegmentCount::new(self.retransmits).as_f64() * progress;
        let total = each * f64::from(index + 1);
        TcpInfo {
            rtt: Some(self.round_trip + self.queue),
            min_rtt: Some(self.round_trip),
            send_mss: Some(Mss::new(1448)),
            path_mtu: Some(Mtu::new(1500)),
            congestion_window: Some(ByteCount::new(self.congestion_window)),
            slow_start_threshold: Some(SegmentCount::new(400)),
            send_window: Some(ByteCount::new(self.window)),
            unacknowledged: Some(SegmentCount::new(self.in_flight / SEGMENT)),
            retransmits: Some(SegmentCount::new(bytes(again).get())),
            bytes_sent: Some(bytes(total + again * 1448.0)),
            bytes_retransmitted: Some(bytes(again * 1448.0)),
            bytes_acknowledged: Some(bytes(total)),
            data_segments_sent: Some(SegmentCount::new(bytes(total / 1448.0).get())),
            busy_time: Some(elapsed.mul_f64(1.0 - self.idle)),
            receive_window_limited: Some(elapsed.mul_f64(self.receive_window)),
            send_buffer_limited: Some(elapsed.mul_f64(self.send_buffer)),
            not_sent: Some(ByteCount::new(100_000)),
            delivery_rate_application_limited: Some(false),
            timestamps: Some(true),
            selective_acknowledgements: Some(true),
            window_scale: Some(NegotiatedWindowScale { send: 7, receive: 7 }),
            explicit_congestion_notification: Some(false),
            congestion_notification_seen: Some(!sender),
            backoff: Some(0),
            reordering_seen: Some(SegmentCount::ZERO),
            duplicate_sacks: Some(SegmentCount::ZERO),
            delivered_with_congestion_mark: Some(SegmentCount::ZERO),
            ..TcpInfo::default()
        }
    }
}

fn full() -> TransferObservation {
    TransferShape::default().observation()
}

fn shaped(change: impl FnOnce(&mut TransferShape)) -> TransferObservation {
    let mut shape = TransferShape { megabits: 90.0, queue: Duration::from_micros(200), ..TransferShape::default() };
    change(&mut shape);
    shape.observation()
}

/// Changes every sample of every sender.
fn senders(observation: &mut TransferObservation, change: impl Fn(&mut TcpInfo)) {
    for connection in &mut observation.connections {
        connection.sender.iter_mut().for_each(|moment| change(&mut moment.socket.info));
    }
}

fn counters(host: &mut Option<HostEvidence>, names: &[(&str, u64)]) {
    let host = host.as_mut().expect("there");
    host.counters.extend(names.iter().map(|(name, count)| ((*name).to_owned(), *count)));
}

fn changed(mut observation: TransferObservation, change: impl FnOnce(&mut TransferObservation)) -> TransferObservation {
    change(&mut observation);
    observation
}

/// Causes of the verdicts, in their order.
fn causes(observation: &TransferObservation) -> Vec<Cause> {
    diagnose(observation).verdicts.iter().map(|verdict| verdict.cause).collect()
}

/// Sets the loss of a stream below the capacity.
fn below(observation: &mut TransferObservation, loss: f64) {
    let capacity = path(observation).with_data.capacity.as_mut().expect("there");
    (capacity.loss_below, capacity.packets_below) = (Some(loss), Some(5000));
}

fn path(observation: &mut TransferObservation) -> &mut PathEvidence {
    observation.path.as_mut().expect("there")
}

/// Observations with the expected cause of the first verdict.
#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<(Cause, TransferObservation)> {
    let losing = |change: fn(&mut TransferShape)| {
        shaped(|shape| {
            (shape.megabits, shape.in_flight, shape.congestion_window) = (25.0, 60_000, 60_000);
            shape.retransmits = 22;
            change(shape);
        })
    };
    let stalled = |mut observation: TransferObservation| {
        senders(&mut observation, |info| {
            info.bytes_acknowledged = Some(ByteCount::new(1));
            info.backoff = Some(5);
        });
        observation.received = ByteCount::ZERO;
        observation
    };
    let no_option =
        |remove: fn(&mut TcpInfo), observation: TransferObservation| changed(observation, |o| senders(o, remove));
    vec![
        (Cause::LinkRate, full()),
        (Cause::NotEnoughData, changed(shaped(|_| ()), |o| o.connections = vec![ObservedConnection::default()])),
        // Seen from the receiving host alone.
        (
            Cause::SlowReader,
            changed(shaped(|shape| shape.unread = 0.6), |o| {
                o.connections[0].sender.clear();
                (o.sender, o.path) = (None, None);
            }),
        ),
        (
            Cause::BlackHole,
            changed(stalled(shaped(|_| ())), |o| {
                path(o).with_data.mtu.as_mut().expect("there").black_hole_bytes = Some(1401);
            }),
        ),
        (Cause::PathDead, stalled(shaped(|_| ()))),
        (
            Cause::Outage,
            changed(shaped(|shape| shape.in_flight = 60_000), |o| {
                // Nothing is acknowledged for three seconds.
                let samples = &mut o.connections[0].sender;
                let before = samples[10].socket.info.bytes_acknowledged;
                samples[11..23].iter_mut().for_each(|sample| sample.socket.info.bytes_acknowledged = before);
            }),
        ),
        (Cause::BlackHole, changed(stalled(shaped(|_| ())), |o| o.path = None)),
        (Cause::KernelMemory, changed(shaped(|_| ()), |o| counters(&mut o.sender, &[("TcpExtTCPMemoryPressures", 3)]))),
        // The program waits for memory, and seems to write too slowly.
        (
            Cause::KernelMemory,
            changed(shaped(|shape| shape.idle = 0.6), |o| {
                counters(&mut o.sender, &[("TcpExtTCPMemoryPressures", 3)]);
                senders(o, |info| info.delivery_rate_application_limited = Some(true));
            }),
        ),
        (
            Cause::WindowScalingOff,
            no_option(
                |info| info.window_scale = None,
                shaped(|shape| (shape.megabits, shape.window, shape.in_flight) = (25.0, 65_535, 65_000)),
            ),
        ),
        // BBR does not mind the losses, and the repairs took most of the time.
        (
            Cause::SackOff,
            no_option(
                |info| info.selective_acknowledgements = Some(false),
                losing(|shape| (shape.control, shape.retransmits) = ("bbr", 450)),
            ),
        ),
        // What slow start alone loses would cost little, repaired at once.
        (
            Cause::SackOff,
            no_option(
                |info| {
                    info.selective_acknowledgements = Some(false);
                    info.retransmits = Some(SegmentCount::new(60));
                },
                losing(|shape| shape.retransmits = 60),
            ),
        ),
        // A buffer that goes on to drop packets limits with selective acknowledgements, too.
        (
            Cause::BufferTooSmall,
            no_option(
                |info| info.selective_acknowledgements = Some(false),
                changed(losing(|shape| shape.retransmits = 450), |o| below(o, 0.0)),
            ),
        ),
        // Random losses cost the same with selective acknowledgements.
        (
            Cause::Loss,
            changed(losing(|_| ()), |o| {
                senders(o, |info| info.selective_acknowledgements = Some(false));
                counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 20)]);
            }),
        ),
        (Cause::TimestampsOff, no_option(|info| info.timestamps = Some(false), full())),
        (Cause::ShortTransfer, changed(shaped(|_| ()), |o| o.asked.bytes = Some(ByteCount::new(1_000_000)))),
        (
            Cause::Incast,
            shaped(|shape| {
                (shape.connections, shape.congestion_window, shape.in_flight, shape.retransmits) = (64, 2896, 2896, 5);
            }),
        ),
        (
            Cause::SocketPacing,
            no_option(|info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(95e6)), shaped(|_| ())),
        ),
        // A policer that drops nothing limits nothing.
        (
            Cause::SocketPacing,
            changed(shaped(|_| ()), |o| {
                senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(92e6)));
                path(o).with_data.policer = Some(PolicerDetection {
                    present: true,
                    bits_per_second: Some(100e6),
                    burst_bytes: Some(200_000),
                    evidence: "losses without a queue".to_owned(),
                });
            }),
        ),
        // A rate that the program was asked for, and keeps, whatever is repaired meanwhile.
        (
            Cause::ApplicationPacing,
            changed(losing(|_| ()), |o| o.asked.rate = Some(BitRate::from_bits_per_second(25e6))),
        ),
        // It makes up for its start: the mean of the whole transfer is that rate.
        (
            Cause::ApplicationPacing,
            changed(losing(|shape| shape.megabits = 26.0), |o| {
                o.asked.rate = Some(BitRate::from_bits_per_second(25e6));
                o.received = bytes(25e6 / 8.0 * 10.0);
            }),
        ),
        // Nor does pacing above what the path carries.
        (
            Cause::LinkRate,
            changed(full(), |o| {
                senders(o, |info| info.max_pacing_rate = Some(BitRate::from_bits_per_second(320e6)));
            }),
        ),
        (Cause::Application, shaped(|shape| shape.idle = 0.6)),
        (
            Cause::ApplicationPacing,
            changed(shaped(|shape| shape.idle = 0.6), |observation| {
                observation.asked.rate = Some(BitRate::from_bits_per_second(90e6));
                senders(observation, |info| info.delivery_rate_application_limited = Some(true));
            }),
        ),
        // It keeps its rate by bursts and pauses.
        (
            Cause::Application,
            changed(shaped(|shape| shape.idle = 0.6), |observation| {
                observation.asked.rate = Some(BitRate::from_bits_per_second(90e6));
            }),
        ),
        (
            Cause::ApplicationPacing,
            no_option(
                |info| {
                    info.delivery_rate_application_limited = Some(true);
                    info.not_sent = Some(ByteCount::ZERO);
                },
                shaped(|shape| shape.in_flight = 200_000),
            ),
        ),
        (Cause::SenderProcessor, changed(shaped(|_| ()), |o| o.connections[0].sender_processor = Ratio::new(0.99))),
        (Cause::ReceiverProcessor, changed(shaped(|_| ()), |o| o.connections[0].receiver_processor = Ratio::new(0.99))),
        (Cause::SlowReader, shaped(|shape| (shape.unread, shape.receive_window) = (0.6, 0.97))),
        // By Little's law the unread data explains the whole wait, and the sender waits for the window.
        (Cause::SlowReader, waiting_window(0.3)),
        // Nothing is unread when the buffer is looked at, but a reading program lets the kernel acknowledge each second segment.
        (Cause::SlowReader, reading(0.3)),
        (Cause::BufferTooSmall, reading(0.52)),
        // The largest size would be too small for the path as well.
        (
            Cause::ReceiveWindow,
            changed(waiting_window(0.01), |o| {
                let settings = &mut o.receiver.as_mut().expect("there").settings;
                settings.insert("net.ipv4.tcp_moderate_rcvbuf".to_owned(), "0".to_owned());
                settings.insert("net.ipv4.tcp_rmem".to_owned(), "4096 131072 300000".to_owned());
            }),
        ),
        // What is in flight passes the path in 2 ms, and round trips take 300 ms longer.
        (
            Cause::Asymmetric,
            changed(waiting_window(0.0), |o| {
                path(o).with_acknowledgements.capacity = Some(capacity(1.0));
                senders(o, |info| info.rtt = Some(Duration::from_millis(320)));
            }),
        ),
        // The same where the reverse direction is so narrow that its capacity could not be measured.
        (
            Cause::Asymmetric,
            changed(losing(|shape| shape.retransmits = 0), |o| {
                path(o).with_acknowledgements.capacity = None;
                senders(o, |info| info.rtt = Some(Duration::from_secs(2)));
            }),
        ),
        (Cause::SlowReader, shaped(|shape| (shape.unread, shape.receive_window, shape.control) = (0.6, 0.16, "bbr"))),
        // A small window never fills the buffer: what is in flight waits in it, longer than the path's queue explains.
        (
            Cause::SlowReader,
            changed(small_window(0.01), |o| {
                let found = path(o).with_data.capacity.as_mut().expect("there");
                (found.loss, found.queueing_ns) = (Some(0.05), Some(1_000_000));
            }),
        ),
        (Cause::BufferTooSmall, small_window(0.01)),
        (
            Cause::BufferTooSmall,
            changed(small_window(0.001), |o| {
                let found = path(o).with_data.capacity.as_mut().expect("there");
                (found.loss, found.queueing_ns) = (Some(0.05), Some(1_000_000));
            }),
        ),
        (
            Cause::SocketBuffer,
            shaped(|shape| (shape.megabits, shape.buffers, shape.receive_window) = (30.0, (131_072, false), 0.8)),
        ),
        (
            Cause::SocketBuffer,
            shaped(|shape| (shape.megabits, shape.buffers, shape.send_buffer) = (30.0, (131_072, false), 0.8)),
        ),
        (Cause::SendBuffer, shaped(|shape| (shape.buffers, shape.send_buffer) = ((4_194_304, true), 0.8))),
        // On a 6.12 kernel the chronograph stays at zero.
        (
            Cause::SendBuffer,
            no_option(
                |info| info.not_sent = Some(ByteCount::ZERO),
                shaped(|shape| {
                    (shape.buffers, shape.send_fill, shape.in_flight) = ((4_194_304, true), 0.97, 700_000);
                }),
            ),
        ),
        // While much is repaired, a full send buffer holds data behind a loss.
        (
            Cause::BufferTooSmall,
            no_option(
                |info| info.not_sent = Some(ByteCount::ZERO),
                changed(small_window(0.0), |o| {
                    for moment in &mut o.connections[0].sender {
                        let memory = moment.socket.memory.as_mut().expect("there");
                        (memory.send_buffer, memory.send_queued) =
                            (ByteCount::new(4_194_304), ByteCount::new(4_000_000));
                    }
                }),
            ),
        ),
        (
            Cause::ReceiveWindow,
            shaped(|shape| (shape.window, shape.in_flight, shape.receive_window) = (232_960, 232_000, 0.76)),
        ),
        // The chronograph runs only while a send is blocked: the rate alone decides.
        (Cause::ReceiveWindow, shaped(|shape| (shape.window, shape.in_flight) = (232_960, 232_000))),
        (
            Cause::Policer,
            changed(losing(|_| ()), |o| {
                path(o).with_data.policer = Some(PolicerDetection {
                    present: true,
                    bits_per_second: Some(100e6),
                    burst_bytes: Some(200_000),
                    evidence: "losses without a queue".to_owned(),
                });
            }),
        ),
        (Cause::Corruption, changed(losing(|_| ()), |o| counters(&mut o.receiver, &[("TcpInCsumErrors", 20)]))),
        (
            Cause::EcnBleached,
            changed(full(), |o| {
                senders(o, |info| info.explicit_congestion_notification = Some(true));
                for moment in &mut o.connections[0].receiver {
                    moment.socket.info.congestion_notification_seen = Some(false);
                }
            }),
        ),
        (
            Cause::EcnMarking,
            changed(full(), |o| {
                senders(o, |info| {
                    info.explicit_congestion_notification = Some(true);
                    info.delivered_with_congestion_mark = Some(SegmentCount::new(400));
                });
            }),
        ),
        (
            Cause::CrossTraffic,
            changed(shaped(|_| ()), |o| {
                o.receiver.as_mut().expect("there").interface_bytes = Some((370_000_000, 1_000_000));
            }),
        ),
        // A fair queue leaves the search and the transfer the same rate, but the path queues at rest.
        (
            Cause::CrossTraffic,
            changed(full(), |o| {
                o.receiver.as_mut().expect("there").interface_bytes = Some((870_000_000, 1_000_000));
                path(o).usual_round_trip = Some((Duration::from_millis(21), Duration::from_millis(24)));
            }),
        ),
        // The search came to the same rate: it passes elsewhere.
        (
            Cause::LinkRate,
            changed(full(), |o| {
                o.receiver.as_mut().expect("there").interface_bytes = Some((870_000_000, 1_000_000));
            }),
        ),
        (
            Cause::HostDrops,
            changed(losing(|shape| shape.queue = Duration::from_millis(9)), |o| {
                counters(&mut o.receiver, &[("TcpExtTCPBacklogDrop", 20)]);
            }),
        ),
        (
            Cause::Asymmetric,
            changed(shaped(|shape| shape.queue = Duration::from_millis(9)), |o| {
                path(o).with_acknowledgements.capacity = Some(capacity(3.0));
            }),
        ),
        (Cause::LinkRate, changed(full(), |o| path(o).with_acknowledgements.capacity = Some(capacity(3.0)))),
        // While nothing arrives, acknowledgements limit nothing.
        (
            Cause::Loss,
            changed(losing(|shape| shape.queue = Duration::from_millis(9)), |o| {
                path(o).with_acknowledgements.capacity = Some(capacity(3.0));
                below(o, 0.001);
                counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 20)]);
                let samples = &mut o.connections[0].sender;
                let before = samples[10].socket.info.bytes_acknowledged;
                samples[10..35].iter_mut().for_each(|sample| sample.socket.info.bytes_acknowledged = before);
            }),
        ),
        (Cause::SmallPackets, changed(losing(|_| ()), |o| path(o).with_data.mtu.as_mut().expect("there").bytes = 9000)),
        (
            Cause::CongestionControl,
            losing(|shape| {
                (shape.control, shape.capacity, shape.round_trip) = ("reno", 960.0, Duration::from_millis(59));
                (shape.megabits, shape.in_flight) = (200.0, 1_400_000);
            }),
        ),
        // The first of forty samples has the only loss, at a fifth of the product: the window grows ever since.
        (Cause::CongestionControl, after_early_loss(1)),
        // A delay that grew ended slow start before.
        (
            Cause::SlowStartExit,
            changed(after_early_loss(1), |o| counters(&mut o.sender, &[("TcpExtTCPHystartDelayDetect", 1)])),
        ),
        // An overflow loses many at once.
        (Cause::BufferTooSmall, after_early_loss(40)),
        (Cause::BurstyLoss, changed(losing(|_| ()), |o| counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 2)]))),
        (
            Cause::BufferTooSmall,
            changed(losing(|shape| (shape.megabits, shape.in_flight) = (240.0, 740_000)), |o| {
                counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 15)]);
            }),
        ),
        (Cause::Loss, changed(losing(|_| ()), |o| counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 20)]))),
        // A stream below the capacity lost nothing: the same losses are those of a buffer that no burst fits into.
        (
            Cause::BufferTooSmall,
            changed(losing(|shape| shape.retransmits = 60), |o| {
                counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 60)]);
                below(o, 0.0);
            }),
        ),
        // It lost as much: chance, although packets queue.
        (
            Cause::Loss,
            changed(losing(|shape| shape.queue = Duration::from_millis(9)), |o| {
                counters(&mut o.sender, &[("TcpExtTCPSackRecovery", 20)]);
                below(o, 0.001);
            }),
        ),
        // One of three quarters of it keeps the link busy: CUBIC needs less.
        (
            Cause::LinkRate,
            shaped(|shape| {
                (shape.megabits, shape.queue, shape.retransmits) = (245.0, Duration::from_millis(15), 60);
                (shape.in_flight, shape.congestion_window) = (1_000_000, 1_000_000);
            }),
        ),
        // Packets are dropped at a queue of a fifth of the product, and the path is not full.
        (
            Cause::BufferTooSmall,
            shaped(|shape| {
                (shape.megabits, shape.queue, shape.retransmits) = (240.0, Duration::from_millis(7), 60);
                (shape.in_flight, shape.congestion_window) = (800_000, 800_000);
            }),
        ),
        // More was sent than passed, and no packet waited as long as one takes to send.
        (
            Cause::Policer,
            changed(TransferShape { retransmits: 60, ..TransferShape::default() }.observation(), |o| {
                let found = path(o).with_data.capacity.as_mut().expect("there");
                (found.loss, found.queueing_ns) = (Some(0.05), Some(1000));
            }),
        ),
        (
            Cause::SlowStartExit,
            changed(shaped(|shape| (shape.congestion_window, shape.in_flight) = (60_000, 59_000)), |o| {
                senders(o, |info| info.slow_start_threshold = Some(SegmentCount::new(40)));
                counters(&mut o.sender, &[("TcpExtTCPHystartDelayDetect", 1)]);
            }),
        ),
        (
            Cause::Reordering,
            changed(full(), |o| {
                senders(o, |info| info.reordering_seen = Some(SegmentCount::new(40)));
                path(o).with_data.packets.as_mut().expect("there").reordering = Some(0.2);
            }),
        ),
        // Rarer than a few hundred probes show, but TCP saw it without a loss.
        (
            Cause::Reordering,
            changed(full(), |o| senders(o, |info| info.reordering_seen = Some(SegmentCount::new(9000)))),
        ),
        (
            Cause::Duplication,
            changed(full(), |o| path(o).with_data.packets.as_mut().expect("there").duplication = Some(0.01)),
        ),
        (
            Cause::Bufferbloat,
            TransferShape { queue: Duration::from_millis(500), ..TransferShape::default() }.observation(),
        ),
        (
            Cause::DelayVariation,
            changed(full(), |o| {
                path(o).usual_round_trip = Some((Duration::from_millis(24), Duration::from_millis(31)));
            }),
        ),
        (Cause::Unclear, shaped(|shape| shape.queue = Duration::from_millis(9))),
    ]
}

#[test]
fn each_cause_is_named_first() {
    let mut others = Vec::new();
    for (cause, observation) in cases().into_iter().chain(host_cases()) {
        let diagnosis = diagnose(&observation);
        let found: Vec<String> = diagnosis
            .verdicts
            .iter()
            .map(|verdict| {
                let without = verdict.without.map(|without| without.expected.bits_per_second() / 1e6);
                format!("{} {:?} {without:?}", verdict.cause, verdict.confidence)
            })
            .collect();
        if diagnosis.verdicts[0].cause != cause {
            others.push(format!("{cause}: {found:?}"));
        }
        others.extend(diagnosis.contradictions.iter().map(|text| format!("{cause}: {text}")));
        let first = &diagnosis.verdicts[0];
        assert!(!first.text.is_empty() && !first.text.contains("  ") && first.text.ends_with('.'), "{}", first.text);
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn each_cause_and_each_rule_has_a_case() {
    let observations: Vec<_> = cases().into_iter().chain(host_cases()).collect();
    let named: BTreeSet<Cause> = observations.iter().map(|(cause, _)| *cause).collect();
    let missing: Vec<&Cause> = Cause::ALL.iter().filter(|cause| !named.contains(cause)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for rule in RULES {
        let fires = observations
            .iter()
            .any(|(_, observation)| (rule.check)(&TransferEvidence::from_observation(observation)).is_some());
        assert!(fires, "{} never fires", rule.id);
        let speaks = (rule.check)(&TransferEvidence::from_observation(&full())).is_some();
        assert_eq!(speaks, rule.id == "link-rate", "{} on a full path", rule.id);
        assert!(!rule.test.is_empty() && !rule.citation.is_empty());
    }
    let identifiers: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(identifiers.len(), RULES.len());
}

#[test]
fn no_samples_are_not_enough_data() {
    let nothing = diagnose(&TransferObservation::default());
    assert_eq!(nothing.verdicts[0].cause, Cause::NotEnoughData);
    assert!(nothing.states.is_empty() && nothing.bounds.is_empty() && nothing.next.is_none());
}

#[test]
fn the_next_bound_is_not_the_present_one() {
    let small = shaped(|shape| (shape.window, shape.in_flight, shape.receive_window) = (232_960, 232_000, 0.76));
    let diagnosis = diagnose(&small);
    assert!(diagnosis.bounds.is_sorted_by(|one, other| one.rate.bits_per_second() <= other.rate.bits_per_second()));
    let next = diagnosis.next.expect("the path is known");
    assert_eq!(next.kind, BoundKind::Path);
    assert!((next.rate.bits_per_second() / 287e6 - 1.0).abs() < 0.01, "{next:?}");
    let whole: f64 = diagnosis.states.iter().map(|one| one.share.get()).sum();
    assert!((whole - 1.0).abs() < 0.01, "{:?}", diagnosis.states);
}

proptest! {
    /// Any report of a far end leads to a verdict.
    #[test]
    fn odd_observations_have_an_answer(
        megabits in 0.0..1e6_f64,
        capacity in 0.0..1e6_f64,
        nanoseconds in 0_u64..10_000_000_000,
        queue in 0_u64..10_000_000_000,
        window in any::<u64>(),
        in_flight in any::<u64>(),
        shares in (0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64),
        retransmits in any::<u32>(),
        connections in 0_usize..4,
    ) {
        let shape = TransferShape {
            megabits, capacity, window, in_flight, connections,
            round_trip: Duration::from_nanos(nanoseconds),
            queue: Duration::from_nanos(queue),
            idle: shares.0, send_buffer: shares.1, receive_window: shares.2,
            retransmits: retransmits.into(),
            ..TransferShape::default()
        };
        let diagnosis = diagnose(&shape.observation());
        prop_assert!(!diagnosis.verdicts.is_empty());
    }
}

/// The same with buffer limits below the path's need.
fn with_small_buffers((cause, mut observation): (Cause, TransferObservation)) -> (Cause, TransferObservation) {
    if matches!(cause, Cause::ReceiveWindow | Cause::SendBuffer) {
        for host in [&mut observation.sender, &mut observation.receiver].into_iter().flatten() {
            host.settings.insert("net.ipv4.tcp_rmem".into(), "4096 131072 375000".into());
            host.settings.insert("net.ipv4.tcp_wmem".into(), "4096 16384 375000".into());
        }
    }
    (cause, observation)
}

#[test]
fn the_last_advice_is_the_command_that_tries_it() {
    let mut advised = BTreeSet::new();
    for (cause, observation) in cases().into_iter().chain(host_cases()).map(with_small_buffers) {
        let first = &diagnose(&observation).verdicts[0];
        let command = first.advice.last().filter(|advice| advice.starts_with("`linerate tune HOST"));
        assert!(
            first.advice.iter().rev().skip(1).all(|advice| !advice.contains("linerate tune")),
            "{:?}",
            first.advice
        );
        let Some(command) = command else { continue };
        advised.insert(cause);
        assert!(TUNING_RULES.iter().any(|rule| rule.causes.contains(&cause)), "{cause:?}: {command}");
        assert_eq!(
            command.contains("--work-around"),
            cause.location() == CauseLocation::Network,
            "{cause:?}: {command}"
        );
        // The same with the data in the opposite direction.
        let back = changed(observation, |o| o.asked.from_far = true);
        let back = diagnose(&back).verdicts[0].advice.last().cloned().unwrap_or_default();
        assert!(back.contains(" -- -R`") && !command.contains(" -R"), "{cause:?}: {back}");
        match cause.location() {
            CauseLocation::Receiver => {
                assert!(command.contains("--far ssh:") && !back.contains("--far"), "{command}, {back}");
            }
            CauseLocation::Sender | CauseLocation::Network => {
                assert!(!command.contains("--far") && back.contains("--far ssh:"), "{command}, {back}");
            }
            _ => {}
        }
    }
    // Processor causes need counters that a transfer does not have; a program's own buffer needs a limit.
    let counted = [Cause::SenderProcessor, Cause::HostDrops, Cause::SocketBuffer];
    let causes = TUNING_RULES.iter().flat_map(|rule| rule.causes).filter(|cause| !counted.contains(cause));
    let missing: Vec<&Cause> = causes.filter(|cause| !advised.contains(cause)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_socket_buffer_limit_is_raised_where_it_was_reached() {
    let socket = |limit: &str| {
        let own = |shape: &mut TransferShape| {
            (shape.window, shape.in_flight, shape.receive_window) = (232_960, 232_000, 0.76);
            shape.buffers = (425_984, false);
        };
        let observation = changed(shaped(own), |o| {
            let receiver = o.receiver.get_or_insert_default();
            receiver.settings.insert("net.core.rmem_max".into(), limit.into());
        });
        let first = diagnose(&observation).verdicts.swap_remove(0);
        assert_eq!(first.cause, Cause::SocketBuffer);
        first
            .advice
            .iter()
            .any(|advice| advice.contains("`linerate tune HOST --far ssh:USER@HOST` tries a higher limit"))
    };
    assert!(socket("212992"), "the kernel doubles the request");
    assert!(!socket("4194304"), "the program requested little");
}

#[test]
fn diagnosis_and_tuning_name_the_same_number() {
    let mut compared = 0;
    for (cause, observation) in cases().into_iter().map(with_small_buffers) {
        if !matches!(cause, Cause::ReceiveWindow | Cause::SendBuffer) {
            continue;
        }
        let diagnosis = diagnose(&observation);
        let advice = diagnosis.verdicts[0].advice.join("; ");
        let key = if cause == Cause::ReceiveWindow { "net.ipv4.tcp_rmem" } else { "net.ipv4.tcp_wmem" };
        let inputs =
            TuningInputs::from_measurement(TuningGoal::WanBulk, (TuningHost::default(), None), &observation, diagnosis);
        let proposal = propose(&inputs);
        let Some(change) = proposal.changes.iter().find(|one| one.change.target.to_string() == key) else {
            panic!("{cause:?}: {proposal:?}")
        };
        let third = change.change.to.split(' ').next_back().unwrap_or_default();
        assert!(
            advice.contains(&format!("{key}: ")) && advice.contains(&format!("rounded up to {third} B")),
            "{advice}"
        );
        compared += 1;
    }
    assert!(compared > 2, "cases of both buffers");
    // Where the setting allows it already, there is nothing to try.
    let roomy = diagnose(&shaped(|shape| (shape.window, shape.in_flight) = (232_960, 232_000)));
    let advice = roomy.verdicts[0].advice.join("; ");
    assert!(advice.contains("covers the path's need") && !advice.contains("linerate tune"), "{advice}");
}
