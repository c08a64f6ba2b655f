//! Reflection of a packet.

use linerate_units::{ByteCount, MonotonicTime, TypeOfService, WallTime};

use super::limiter::RateLimiter;
use super::options::{self, OptionFacts};
use super::sessions::{SessionKey, SessionTable};
use super::{IgnoredReason, ReceivedDatagram, ReflectorClock, ReflectorOptions, is_answerable};
use crate::stamp::{
    AUTHENTICATED_LENGTH, AuthenticationMode, BASE_LENGTH, HmacKey, MIN_SENDER_LENGTH, PacketError, ReflectorPacket,
    SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat, packet,
};

/// Time to live in the answer when it is unknown (RFC 5357 §4.2.1).
const UNKNOWN_TTL: u8 = 255;

/// A Session-Reflector: see the module.
#[derive(Debug)]
pub struct StampReflector {
    options: ReflectorOptions,
    clock: ReflectorClock,
    pub(super) sessions: SessionTable,
    limiter: RateLimiter,
}

/// An answer that lacks only its transmit timestamp ([`StampReflector::finish`]). It is sent to the source of the packet,
/// from the address and port where the packet arrived.
#[derive(Clone, Debug)]
pub struct ProbeResponse {
    bytes: Vec<u8>,
    type_of_service: TypeOfService,
    sequence: u32,
    format: TimestampFormat,
    /// Index of the key; in the authenticated mode only.
    key: Option<usize>,
    /// Session, when the reflector is stateful.
    session: Option<SessionKey>,
}

impl ProbeResponse {
    /// The datagram.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Type of service, or traffic class, of the answer. Its ECN bits are zero unless the probe requests others: an answer does not
    /// belong to a flow with congestion control.
    #[must_use]
    pub fn type_of_service(&self) -> TypeOfService {
        self.type_of_service
    }
}

impl StampReflector {
    /// Creates a reflector without sessions.
    #[must_use]
    pub fn new(options: ReflectorOptions, clock: ReflectorClock) -> Self {
        let sessions = SessionTable::new(options.session_idle, options.most_sessions);
        let limiter = RateLimiter::new(options.rate_per_source);
        Self { options, clock, sessions, limiter }
    }

    /// Updates the facts about the clock.
    pub fn set_clock(&mut self, clock: ReflectorClock) {
        self.clock = clock;
    }

    /// Reflects a datagram, or returns the reason for ignoring it. `now` is monotonic time, for idle sessions and the
    /// rate limit of each source.
    pub fn handle(
        &mut self,
        now: MonotonicTime,
        received: &ReceivedDatagram<'_>,
    ) -> Result<ProbeResponse, IgnoredReason> {
        if !is_answerable(received) {
            return Err(IgnoredReason::Address);
        }
        let mode = self.options.mode;
        let shortest = if mode == AuthenticationMode::Authenticated { AUTHENTICATED_LENGTH } else { MIN_SENDER_LENGTH };
        if received.bytes.len() < shortest.to_usize() {
            return Err(IgnoredReason::TooShort);
        }
        // Before the HMAC, which is expensive.
        if !self.limiter.admits(received.source.ip(), ByteCount::from_usize(received.bytes.len()), now) {
            return Err(IgnoredReason::TooMany);
        }
        let (packet, key) = self.read(received.bytes)?;
        if is_answer(received.bytes, mode) {
            return Err(IgnoredReason::IsAnswer);
        }
        self.answer(now, received, &packet, key)
    }

    /// Writes the transmit timestamp, which should be the present time, and seals the answer, which is then sent.
    pub fn finish<'a>(&mut self, answer: &'a mut ProbeResponse, leaves_at: WallTime) -> &'a [u8] {
        let timestamp = StampTimestamp::from_wall(leaves_at, answer.format);
        ReflectorPacket::write_timestamp(&mut answer.bytes, timestamp, self.options.mode);
        if let Some(key) = answer.key.and_then(|index| self.options.keys.get(index)) {
            packet::seal(&mut answer.bytes, key);
        }
        if let Some(session) = answer.session.and_then(|key| self.sessions.get_mut(&key)) {
            session.previous = Some((answer.sequence, timestamp));
        }
        &answer.bytes
    }

    fn read(&self, datagram: &[u8]) -> Result<(SenderPacket, Option<usize>), IgnoredReason> {
        if self.options.mode == AuthenticationMode::Unauthenticated {
            let packet = SenderPacket::decode(datagram).map_err(|_| IgnoredReason::TooShort)?;
            return Ok((packet, None));
        }
        for (index, key) in self.options.keys.iter().enumerate() {
            match SenderPacket::decode_authenticated(datagram, key) {
                Ok(packet) => return Ok((packet, Some(index))),
                Err(PacketError::TooShort { .. }) => return Err(IgnoredReason::TooShort),
                Err(PacketError::NotAuthentic) => {}
            }
        }
        Err(IgnoredReason::NotAuthentic)
    }

    fn answer(
        &mut self,
        now: MonotonicTime,
        received: &ReceivedDatagram<'_>,
        packet: &SenderPacket,
        key: Option<usize>,
    ) -> Result<ProbeResponse, IgnoredReason> {
        let mode = self.options.mode;
        let light = mode == AuthenticationMode::Unauthenticated && SenderPacket::is_padded(received.bytes);
        // Random padding is not an identifier, and would make each packet a new session.
        let identifier = if light { SessionIdentifier::NONE } else { packet.session };
        let session = SessionKey { source: received.source, destination: received.destination, identifier };
        // Beyond the maximum number of sessions, answers repeat the sender's numbers: forged sources silence nobody.
        let counted = if self.options.stateful { self.sessions.find_or_create(session, now) } else { None };
        let counted = counted.map(|session| {
            session.packets = session.packets.wrapping_add(1);
            (session.packets, session.previous)
        });
        let sequence = counted.map_or(packet.sequence, |(packets, _)| packets.wrapping_sub(1));
        let mut bytes = received.bytes.to_vec();
        bytes.resize(bytes.len().max(mode.base_length().to_usize()), 0);
        self.base(received, packet, sequence).encode_into(&mut bytes, mode).map_err(|_| IgnoredReason::TooShort)?;
        let facts = OptionFacts {
            received,
            mode,
            key: key.and_then(|index| self.options.keys.get(index)).or_else(|| self.options_key(received.bytes)),
            clock_source: self.clock.source,
            session: counted,
        };
        let wanted = options::fill_in(&mut bytes, &facts);
        let arrived = received.type_of_service.unwrap_or_default().dscp().type_of_service();
        Ok(ProbeResponse {
            bytes,
            type_of_service: wanted.unwrap_or(arrived),
            sequence,
            format: self.clock.error_estimate.format(),
            key,
            session: counted.map(|_| session),
        })
    }

    /// Returns the key of the options' HMAC, which may exist without authentication of the base packet (RFC 8972 §4.8).
    fn options_key(&self, datagram: &[u8]) -> Option<&HmacKey> {
        use crate::stamp::tlv::{TlvIntegrity, check_integrity};
        let fits = |key: &&HmacKey| check_integrity(datagram, self.options.mode, Some(key)) == TlvIntegrity::Good;
        self.options.keys.iter().find(fits)
    }

    fn base(&self, received: &ReceivedDatagram<'_>, packet: &SenderPacket, sequence: u32) -> ReflectorPacket {
        ReflectorPacket {
            sequence,
            timestamp: StampTimestamp::UNKNOWN,
            error_estimate: self.clock.error_estimate,
            session: packet.session,
            received_at: StampTimestamp::from_wall(received.at, self.clock.error_estimate.format()),
            sender_sequence: packet.sequence,
            sender_timestamp: packet.timestamp,
            sender_error_estimate: packet.error_estimate,
            sender_ttl: received.ttl.unwrap_or(UNKNOWN_TTL),
        }
    }
}

/// True when a packet is a reflector's: in place of a sender's zeros, or padding, it has a receive timestamp at most a
/// second before its transmit timestamp, and zeros two fields later.
fn is_answer(datagram: &[u8], mode: AuthenticationMode) -> bool {
    let read = match mode {
        AuthenticationMode::Unauthenticated if datagram.len() < 41 => return false,
        AuthenticationMode::Unauthenticated => packet::read_field::<2>(datagram, 38) == [0; 2],
        AuthenticationMode::Authenticated => packet::read_field::<8>(datagram, 40) == [0; 8],
    };
    let (departure, arrival) = match mode {
        AuthenticationMode::Unauthenticated => {
            (packet::read_timestamp(datagram, 4), packet::read_timestamp(datagram, 16))
        }
        AuthenticationMode::Authenticated => {
            (packet::read_timestamp(datagram, 16), packet::read_timestamp(datagram, 32))
        }
    };
    let (departure, arrival_seconds) = (departure.bits() >> 32, arrival.bits() >> 32);
    read && arrival != StampTimestamp::UNKNOWN && departure.wrapping_sub(arrival_seconds) <= 1
}

const _: () = assert!(BASE_LENGTH.get() > MIN_SENDER_LENGTH.get());
