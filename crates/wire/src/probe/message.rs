//! The messages and their frames.

use linerate_model::json;
use serde::{Deserialize, Serialize};

use super::facts::FarFacts;
use super::load::{LoadEnd, LoadProgress, LoadSamples};
use super::orders::{
    self, ConnectionRef, DatagramsReady, EmptyContent, LoadOrder, LoadReady, RateOrder, ReceiveOrder, ReflectorOpened,
    RequestRefused, SendOrder, StreamRef,
};
use super::records::{RecordBatch, SentReport, StreamFeedback};
use super::rr::{RrOrder, RrReady, RrReport};
use super::{MARKER, MAX_REQUEST_LENGTH, MAX_RESPONSE_LENGTH, ServerHello, UnreadableMessage};
use crate::frame::{self, JsonFrameError};
use crate::quic::{QuicOrder, QuicReady};

/// Defines the messages of one direction: an enum, and the JSON object with exactly one key.
macro_rules! messages {
    ($(#[$doc:meta])* $name:ident, $envelope:ident: $($(#[$variant_doc:meta])* $key:ident $variant:ident($content:ty),)+) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant($content),)+
        }

        #[derive(Default, Serialize, Deserialize)]
        #[serde(default)]
        struct $envelope {
            $(#[serde(skip_serializing_if = "Option::is_none")] $key: Option<$content>,)+
        }

        impl $name {
            /// Name of the message.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($key),)+
                }
            }

            /// Encodes the message with its marker and length.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                let mut envelope = $envelope::default();
                match self {
                    $(Self::$variant(content) => envelope.$key = Some(content.clone()),)+
                }
                let document = serde_json::to_string(&envelope).expect("plain data without map keys is JSON");
                let mut bytes = vec![MARKER];
                bytes.extend_from_slice(&frame::encode(&document));
                bytes
            }

            /// Decodes a message without its marker and length; `None` for an unknown kind.
            pub fn decode(document: &[u8]) -> Result<Option<Self>, UnreadableMessage> {
                let envelope: $envelope = json::from_slice(document).map_err(UnreadableMessage::new)?;
                let mut found = None;
                $(if let Some(content) = envelope.$key {
                    if found.is_some() {
                        return Err(UnreadableMessage::new("several messages in one"));
                    }
                    found = Some(Self::$variant(content));
                })+
                if let Some(message) = &found {
                    message.check().map_err(|reason| {
                        UnreadableMessage::new(format_args!("\"{}\": {reason}", message.name()))
                    })?;
                }
                Ok(found)
            }
        }
    };
}

messages! {
    /// A request of the client.
    StreamRequest, RequestEnvelope:
    /// Request facts about the host: answered by [`ProbeResponse::Facts`].
    facts Facts(EmptyContent),
    /// Open a path for datagrams: answered by [`ProbeResponse::Opened`], later by [`ProbeResponse::Ready`].
    open Open(EmptyContent),
    /// Receive a stream: answered by [`ProbeResponse::Receiving`].
    receive Receive(ReceiveOrder),
    /// End a received stream and collect its records: answered by several [`ProbeResponse::Records`].
    collect Collect(StreamRef),
    /// Send a stream: answered by [`ProbeResponse::Sending`], later by [`ProbeResponse::Sent`].
    send Send(SendOrder),
    /// Change a rate: not answered.
    rate Rate(RateOrder),
    /// End a stream: answered by [`ProbeResponse::Sent`] for a sent stream, else by the last [`ProbeResponse::Feedback`].
    stop Stop(StreamRef),
    /// Expect a load connection: answered by [`ProbeResponse::LoadExpected`], once connected by [`ProbeResponse::LoadReady`].
    load Load(LoadOrder),
    /// Begin to send on the load connection, or to count: not answered.
    load_start LoadStart(ConnectionRef),
    /// End the load connection: answered by several [`ProbeResponse::LoadSamples`] and [`ProbeResponse::LoadEnd`].
    load_stop LoadStop(ConnectionRef),
    /// Answer requests: answered by [`ProbeResponse::RrReady`].
    rr Rr(RrOrder),
    /// End the test of requests: answered by [`ProbeResponse::RrEnd`].
    rr_stop RrStop(EmptyContent),
    /// Expect QUIC connections: answered by [`ProbeResponse::QuicReady`].
    quic Quic(QuicOrder),
    /// Keepalive of the client, every few seconds: not answered.
    alive Alive(EmptyContent),
}

messages! {
    /// A message of the server.
    ProbeResponse, AnswerEnvelope:
    /// The server's hello, whose features name probe sessions. First message, once.
    hello Hello(ServerHello),
    /// Facts about the host.
    facts Facts(Box<FarFacts>),
    /// Port and token for datagrams.
    opened Opened(ReflectorOpened),
    /// Datagrams have arrived.
    ready Ready(DatagramsReady),
    /// The server is ready to receive the stream.
    receiving Receiving(StreamRef),
    /// Part of a stream's records.
    records Records(RecordBatch),
    /// Progress of a received stream.
    feedback Feedback(StreamFeedback),
    /// The stream is being sent.
    sending Sending(StreamRef),
    /// A sent stream is over.
    sent Sent(SentReport),
    /// The server expects the load connection.
    load_expected LoadExpected(ConnectionRef),
    /// The load connection is established.
    load_ready LoadReady(LoadReady),
    /// Progress of the load connections.
    load_progress LoadProgress(Vec<LoadProgress>),
    /// Part of the samples of a load connection.
    load_samples LoadSamples(LoadSamples),
    /// A load connection is over.
    load_end LoadEnd(LoadEnd),
    /// The server expects the connections or flows of requests.
    rr_ready RrReady(RrReady),
    /// A test of requests is over.
    rr_end RrEnd(RrReport),
    /// The server expects the session's QUIC connections.
    quic_ready QuicReady(QuicReady),
    /// A request is refused.
    refused Refused(RequestRefused),
}

impl StreamRequest {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Receive(order) if order.stream.is_reflected() => {
                Err("a stream to receive has a number of 1000 or more")
            }
            Self::Send(order) => order.check(),
            Self::Rate(order) => orders::check_rate(order.rate),
            Self::Load(order) => order.check(),
            Self::Rr(order) => order.check(),
            _ => Ok(()),
        }
    }
}

impl ProbeResponse {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Facts(facts) => facts.check(),
            Self::Feedback(feedback) => feedback.check(),
            Self::LoadSamples(samples) => samples.check(),
            Self::LoadProgress(progress) if progress.len() > super::MAX_SESSION_STREAMS => {
                Err("a session has at most 64 load connections")
            }
            _ => Ok(()),
        }
    }
}

/// Assembles messages from pieces of any size.
#[derive(Clone, Debug)]
pub struct ProbeMessageDecoder {
    frame: frame::JsonFrameDecoder,
    /// True when the marker of the present message has been received.
    marked: bool,
}

/// Invalid bytes in place of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeDecodeError {
    /// Another byte than [`MARKER`].
    #[error("the peer sends byte {0} where a message of a probe session should begin")]
    NoMarker(u8),
    /// An invalid length.
    #[error(transparent)]
    Frame(#[from] JsonFrameError),
}

impl ProbeMessageDecoder {
    /// Decoder for a client's messages.
    #[must_use]
    pub const fn of_requests() -> Self {
        Self { frame: frame::JsonFrameDecoder::new(MAX_REQUEST_LENGTH), marked: false }
    }

    /// Decoder for a server's messages.
    #[must_use]
    pub const fn of_answers() -> Self {
        Self { frame: frame::JsonFrameDecoder::new(MAX_RESPONSE_LENGTH), marked: false }
    }

    /// Consumes the bytes of the next message from the front of `bytes`; returns its document once it is complete.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, ProbeDecodeError> {
        if !self.marked {
            let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
            if *first != MARKER {
                return Err(ProbeDecodeError::NoMarker(*first));
            }
            (self.marked, *bytes) = (true, rest);
        }
        let document = self.frame.feed(bytes)?;
        self.marked = document.is_none();
        Ok(document)
    }

    /// True when nothing of a message has been received yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.marked
    }

    /// Memory held for an incomplete message.
    #[must_use]
    pub fn buffered(&self) -> linerate_units::ByteCount {
        self.frame.buffered()
    }
}
