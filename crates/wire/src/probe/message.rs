//! The messages and their frames.

use serde::{Deserialize, Serialize};

use super::facts::FarFacts;
use super::load::{LoadEnd, LoadProgress, LoadSamples};
use super::orders::{
    self, ConnectionRef, Empty, LoadOrder, LoadReady, Opened, RateOrder, Ready, ReceiveOrder, Refused, SendOrder,
    StreamRef,
};
use super::records::{Feedback, Records, SentReport};
use super::{ANSWER_LIMIT, Hello, MARKER, REQUEST_LIMIT, UnreadableMessage};
use crate::frame::{self, FrameError};

/// Makes the messages of one direction: an enum, and the object of which exactly one key is there.
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
            /// The message's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($key),)+
                }
            }

            /// The message with its marker and length.
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

            /// Reads a message, without its marker and length; `None` when it is of a kind that this version does not
            /// know.
            pub fn decode(document: &[u8]) -> Result<Option<Self>, UnreadableMessage> {
                // A structure may also be read from an array of its values: no message is written so.
                if document.trim_ascii_start().first() != Some(&b'{') {
                    return Err(UnreadableMessage::new("is not a JSON object"));
                }
                let envelope: $envelope = serde_json::from_slice(document).map_err(UnreadableMessage::new)?;
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
    /// What the client asks for.
    Request, RequestEnvelope:
    /// Facts about the host: answered by [`Answer::Facts`].
    facts Facts(Empty),
    /// A way for datagrams: answered by [`Answer::Opened`], later by [`Answer::Ready`].
    open Open(Empty),
    /// Receive a stream: answered by [`Answer::Receiving`].
    receive Receive(ReceiveOrder),
    /// The records of a received stream, which is over then: answered by several [`Answer::Records`].
    collect Collect(StreamRef),
    /// Send a stream: answered by [`Answer::Sending`], later by [`Answer::Sent`].
    send Send(SendOrder),
    /// Change a rate: not answered.
    rate Rate(RateOrder),
    /// End a stream: answered by [`Answer::Sent`] if it is one that is sent, else by the last [`Answer::Feedback`].
    stop Stop(StreamRef),
    /// Expect a load connection: answered by [`Answer::LoadExpected`], once it is there by [`Answer::LoadReady`].
    load Load(LoadOrder),
    /// Begin to send on it, or to count: not answered.
    load_start LoadStart(ConnectionRef),
    /// End it: answered by several [`Answer::LoadSamples`] and [`Answer::LoadEnd`].
    load_stop LoadStop(ConnectionRef),
    /// The client is still there: said at least every few seconds, not answered.
    alive Alive(Empty),
}

messages! {
    /// What the server says.
    Answer, AnswerEnvelope:
    /// It has probe sessions, if its features say so. Comes first, once.
    hello Hello(Hello),
    /// The facts.
    facts Facts(Box<FarFacts>),
    /// Where to send datagrams.
    opened Opened(Opened),
    /// Datagrams have come.
    ready Ready(Ready),
    /// The stream will be received.
    receiving Receiving(StreamRef),
    /// Part of a stream's records.
    records Records(Records),
    /// How a received stream stands.
    feedback Feedback(Feedback),
    /// The stream is being sent.
    sending Sending(StreamRef),
    /// A sent stream is over.
    sent Sent(SentReport),
    /// The load connection may come.
    load_expected LoadExpected(ConnectionRef),
    /// The load connection is there.
    load_ready LoadReady(LoadReady),
    /// How the load connections stand.
    load_progress LoadProgress(Vec<LoadProgress>),
    /// Part of what was read on a load connection.
    load_samples LoadSamples(LoadSamples),
    /// A load connection is over.
    load_end LoadEnd(LoadEnd),
    /// A request is refused.
    refused Refused(Refused),
}

impl Request {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Receive(order) if order.stream.is_reflected() => {
                Err("a stream to receive has a number of 1000 or more")
            }
            Self::Send(order) => order.check(),
            Self::Rate(order) => orders::check_rate(order.rate),
            Self::Load(order) => order.check(),
            _ => Ok(()),
        }
    }
}

impl Answer {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Facts(facts) => facts.check(),
            Self::Feedback(feedback) => feedback.check(),
            Self::LoadSamples(samples) => samples.check(),
            Self::LoadProgress(progress) if progress.len() > super::MOST_STREAMS => {
                Err("a session has at most 64 load connections")
            }
            _ => Ok(()),
        }
    }
}

/// Puts messages together from pieces of any size.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: frame::Decoder,
    /// The marker of the present message has come.
    marked: bool,
}

/// What a peer sends where a message should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Another byte than [`MARKER`].
    #[error("the peer sends byte {0} where a message of a probe session should begin")]
    NoMarker(u8),
    /// A length that is not acceptable.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl Decoder {
    /// Waits for a client's messages.
    #[must_use]
    pub const fn of_requests() -> Self {
        Self { frame: frame::Decoder::new(REQUEST_LIMIT), marked: false }
    }

    /// Waits for a server's messages.
    #[must_use]
    pub const fn of_answers() -> Self {
        Self { frame: frame::Decoder::new(ANSWER_LIMIT), marked: false }
    }

    /// Takes what belongs to the next message off the front of `bytes`; returns its document once it is complete.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
        if !self.marked {
            let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
            if *first != MARKER {
                return Err(DecodeError::NoMarker(*first));
            }
            (self.marked, *bytes) = (true, rest);
        }
        let document = self.frame.feed(bytes)?;
        self.marked = document.is_none();
        Ok(document)
    }

    /// Whether nothing of a message has come yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.marked
    }

    /// Memory held for an unfinished message.
    #[must_use]
    pub fn buffered(&self) -> linerate_units::ByteCount {
        self.frame.buffered()
    }
}
