//! From a packet to its answer.

use linerate_units::{MonotonicTime, TypeOfService, WallTime};

use super::limiter::Limiter;
use super::options::{self, Facts};
use super::sessions::{SessionKey, Sessions};
use super::{Clock, Ignored, Received, ReflectorOptions, may_be_answered};
use crate::stamp::{
    AUTHENTICATED_LENGTH, BASE_LENGTH, HmacKey, Mode, PacketError, ReflectorPacket, SHORTEST_LENGTH, SenderPacket,
    SessionIdentifier, Timestamp, TimestampFormat, packet,
};

/// The time to live in the answer when it is not known (RFC 5357 §4.2.1).
const UNKNOWN_TTL: u8 = 255;

/// The answering side: see the module.
#[derive(Debug)]
pub struct Reflector {
    options: ReflectorOptions,
    clock: Clock,
    pub(super) sessions: Sessions,
    limiter: Limiter,
}

/// An answer that lacks only the time at which it leaves ([`Reflector::finish`]). It goes to where the packet came from,
/// from the address and port where it arrived.
#[derive(Clone, Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    type_of_service: TypeOfService,
    sequence: u32,
    format: TimestampFormat,
    /// Of the keys; in the authenticated mode only.
    key: Option<usize>,
    /// Where the reflector keeps state.
    session: Option<SessionKey>,
}

impl Answer {
    /// The datagram.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The type of service, or traffic class, that it is to be sent with. Its ECN bits are zero: an answer is no part of
    /// a flow that reacts to congestion.
    #[must_use]
    pub fn type_of_service(&self) -> TypeOfService {
        self.type_of_service
    }
}

impl Reflector {
    /// A reflector that has met nobody.
    #[must_use]
    pub fn new(options: ReflectorOptions, clock: Clock) -> Self {
        let sessions = Sessions::new(options.session_idle, options.most_sessions);
        let limiter = Limiter::new(options.rate_per_source);
        Self { options, clock, sessions, limiter }
    }

    /// Says anew what is known of the clock.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Answers a datagram, or says why not. `now` is the time on the clock that only goes forward, by which idle sessions
    /// and each source's share are measured.
    pub fn handle(&mut self, now: MonotonicTime, received: &Received<'_>) -> Result<Answer, Ignored> {
        if !may_be_answered(received) {
            return Err(Ignored::Address);
        }
        let mode = self.options.mode;
        let shortest = if mode == Mode::Authenticated { AUTHENTICATED_LENGTH } else { SHORTEST_LENGTH };
        if received.bytes.len() < shortest.to_usize() {
            return Err(Ignored::TooShort);
        }
        // Before the HMAC, which takes time.
        if !self.limiter.admits(received.source.ip(), now) {
            return Err(Ignored::TooMany);
        }
        let (packet, key) = self.read(received.bytes)?;
        if is_answer(received.bytes, mode) {
            return Err(Ignored::IsAnswer);
        }
        self.answer(now, received, &packet, key)
    }

    /// Writes the time at which an answer leaves, which should be now, and seals it. Then it can be sent.
    pub fn finish<'a>(&mut self, answer: &'a mut Answer, leaves_at: WallTime) -> &'a [u8] {
        let timestamp = Timestamp::from_wall(leaves_at, answer.format);
        ReflectorPacket::write_timestamp(&mut answer.bytes, timestamp, self.options.mode);
        if let Some(key) = answer.key.and_then(|index| self.options.keys.get(index)) {
            packet::seal(&mut answer.bytes, key);
        }
        if let Some(session) = answer.session.and_then(|key| self.sessions.get_mut(&key)) {
            session.previous = Some((answer.sequence, timestamp));
        }
        &answer.bytes
    }

    fn read(&self, datagram: &[u8]) -> Result<(SenderPacket, Option<usize>), Ignored> {
        if self.options.mode == Mode::Unauthenticated {
            let packet = SenderPacket::decode(datagram).map_err(|_| Ignored::TooShort)?;
            return Ok((packet, None));
        }
        for (index, key) in self.options.keys.iter().enumerate() {
            match SenderPacket::decode_authenticated(datagram, key) {
                Ok(packet) => return Ok((packet, Some(index))),
                Err(PacketError::TooShort { .. }) => return Err(Ignored::TooShort),
                Err(PacketError::NotAuthentic) => {}
            }
        }
        Err(Ignored::NotAuthentic)
    }

    fn answer(
        &mut self,
        now: MonotonicTime,
        received: &Received<'_>,
        packet: &SenderPacket,
        key: Option<usize>,
    ) -> Result<Answer, Ignored> {
        let mode = self.options.mode;
        let light = mode == Mode::Unauthenticated && SenderPacket::is_padded(received.bytes);
        // Random padding is no name, and would make each packet a session of its own.
        let identifier = if light { SessionIdentifier::NONE } else { packet.session };
        let session = SessionKey { source: received.source, destination: received.destination, identifier };
        let counted = if self.options.stateful {
            let session = self.sessions.find(session, now).ok_or(Ignored::NoRoom)?;
            session.packets = session.packets.wrapping_add(1);
            Some((session.packets, session.previous))
        } else {
            None
        };
        let sequence = counted.map_or(packet.sequence, |(packets, _)| packets.wrapping_sub(1));
        let mut bytes = received.bytes.to_vec();
        bytes.resize(bytes.len().max(mode.base_length().to_usize()), 0);
        self.base(received, packet, sequence).encode_into(&mut bytes, mode).map_err(|_| Ignored::TooShort)?;
        let facts = Facts {
            received,
            mode,
            key: key.and_then(|index| self.options.keys.get(index)).or_else(|| self.options_key(received.bytes)),
            clock_source: self.clock.source,
            session: counted,
        };
        let wanted = options::fill_in(&mut bytes, &facts);
        let arrived = received.type_of_service.unwrap_or_default().dscp();
        Ok(Answer {
            bytes,
            type_of_service: wanted.unwrap_or(arrived).type_of_service(),
            sequence,
            format: self.clock.error_estimate.format(),
            key,
            session: self.options.stateful.then_some(session),
        })
    }

    /// Without authentication of the base packet, options may have an HMAC nonetheless (RFC 8972 §4.8).
    fn options_key(&self, datagram: &[u8]) -> Option<&HmacKey> {
        use crate::stamp::tlv::{Integrity, check_integrity};
        let fits = |key: &&HmacKey| check_integrity(datagram, self.options.mode, Some(key)) == Integrity::Good;
        self.options.keys.iter().find(fits)
    }

    fn base(&self, received: &Received<'_>, packet: &SenderPacket, sequence: u32) -> ReflectorPacket {
        ReflectorPacket {
            sequence,
            timestamp: Timestamp::UNKNOWN,
            error_estimate: self.clock.error_estimate,
            session: packet.session,
            received_at: Timestamp::from_wall(received.at, self.clock.error_estimate.format()),
            sender_sequence: packet.sequence,
            sender_timestamp: packet.timestamp,
            sender_error_estimate: packet.error_estimate,
            sender_ttl: received.ttl.unwrap_or(UNKNOWN_TTL),
        }
    }
}

/// Whether a packet is a reflector's answer: where a sender has zeros, or padding, it has an arrival time at most a second
/// before its time of departure, and zeros two fields later.
fn is_answer(datagram: &[u8], mode: Mode) -> bool {
    let read = match mode {
        Mode::Unauthenticated if datagram.len() < 41 => return false,
        Mode::Unauthenticated => packet::read::<2>(datagram, 38) == [0; 2],
        Mode::Authenticated => packet::read::<8>(datagram, 40) == [0; 8],
    };
    let (departure, arrival) = match mode {
        Mode::Unauthenticated => (packet::read_timestamp(datagram, 4), packet::read_timestamp(datagram, 16)),
        Mode::Authenticated => (packet::read_timestamp(datagram, 16), packet::read_timestamp(datagram, 32)),
    };
    let (departure, arrival_seconds) = (departure.bits() >> 32, arrival.bits() >> 32);
    read && arrival != Timestamp::UNKNOWN && departure.wrapping_sub(arrival_seconds) <= 1
}

const _: () = assert!(BASE_LENGTH.get() > SHORTEST_LENGTH.get());
