//! Streams that a session receives and sends.

use std::collections::HashMap;
use std::sync::Arc;

use linerate_sys::poll::Waker;
use linerate_units::ByteCount;
use linerate_wire::probe::{
    MAX_SESSION_STREAMS, ProbeResponse, RateOrder, ReceiveOrder, RecordBatch, RecordDetail, SendOrder, StreamNumber,
    StreamRef,
};

use super::{AnswerOutbox, RequestOutcome, error_text};
use crate::probe::datagrams::DatagramSocket;
use crate::probe::recorder::RecordQuota;
use crate::probe::stream::StreamAllowance;
use crate::probe::{PacketArrivals, SendingThread, StreamReception};
use crate::resources::ResourceAccount;

/// Traffic limit of all streams of a session together: an hour at 25 Gbit/s has ten times as much.
const MOST_BYTES: ByteCount = ByteCount::new(1 << 40);

const NO_CHANNEL: &str = "there is no datagram channel yet: request \"open\" first, and send the token";

pub(super) struct SessionStreams {
    receptions: HashMap<StreamNumber, StreamReception>,
    sendings: HashMap<StreamNumber, SendingThread>,
    room: Arc<RecordQuota>,
    allowance: Arc<StreamAllowance>,
    waker: Arc<Waker>,
}

impl SessionStreams {
    pub(super) fn new(waker: Arc<Waker>, account: ResourceAccount) -> Self {
        Self {
            receptions: HashMap::new(),
            sendings: HashMap::new(),
            room: RecordQuota::new(account.clone()),
            allowance: StreamAllowance::new(MOST_BYTES, account),
            waker,
        }
    }

    pub(super) fn are_sending(&self) -> bool {
        !self.sendings.is_empty()
    }

    /// True when a stream is sent or received.
    pub(super) fn exist(&self) -> bool {
        !self.sendings.is_empty() || !self.receptions.is_empty()
    }

    pub(super) fn are_counting(&self) -> bool {
        self.receptions.values().any(|reception| reception.detail() == RecordDetail::Counts)
    }

    /// True when streams are received.
    pub(super) fn are_receiving(&self) -> bool {
        !self.receptions.is_empty()
    }

    fn admit(&self, stream: StreamNumber) -> RequestOutcome {
        if self.receptions.contains_key(&stream) || self.sendings.contains_key(&stream) {
            return Err(format!("stream {stream} is in use"));
        }
        if self.receptions.len() + self.sendings.len() >= MAX_SESSION_STREAMS {
            return Err(format!("a session has at most {MAX_SESSION_STREAMS} streams at once"));
        }
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        order: ReceiveOrder,
        way: Option<&Arc<DatagramSocket>>,
        outbox: &mut AnswerOutbox,
    ) -> RequestOutcome {
        self.admit(order.stream)?;
        let way = way.ok_or(NO_CHANNEL)?;
        let reception =
            StreamReception::start(way, order.stream, order.detail, &self.room).map_err(|error| error_text(&error))?;
        self.receptions.insert(order.stream, reception);
        outbox.say(ProbeResponse::Receiving(StreamRef { stream: order.stream }));
        Ok(())
    }

    pub(super) fn collect(&mut self, stream: StreamNumber, outbox: &mut AnswerOutbox) -> RequestOutcome {
        let reception = self.receptions.remove(&stream).ok_or_else(|| format!("stream {stream} is not received"))?;
        let (_, PacketArrivals { packets, not_kept, dropped_in_host }, memory) = reception.finish_leased();
        outbox.hold(memory);
        let batches = packets.len().div_ceil(RecordBatch::MOST).max(1);
        for index in 0..batches {
            let from = index * RecordBatch::MOST;
            let packets = packets[from..packets.len().min(from + RecordBatch::MOST)].to_vec();
            let last = index + 1 == batches;
            outbox.say(ProbeResponse::Records(RecordBatch { stream, packets, last, not_kept, dropped_in_host }));
        }
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        order: SendOrder,
        way: Option<&Arc<DatagramSocket>>,
        outbox: &mut AnswerOutbox,
    ) -> RequestOutcome {
        self.admit(order.stream)?;
        let way = way.ok_or(NO_CHANNEL)?;
        let sending = SendingThread::start(way, order, &self.allowance, Some(Arc::clone(&self.waker)));
        self.sendings.insert(order.stream, sending.map_err(|error| error_text(&error))?);
        outbox.say(ProbeResponse::Sending(StreamRef { stream: order.stream }));
        Ok(())
    }

    /// Changes the rate of a stream; one that is over has none to change.
    pub(super) fn set_rate(&mut self, order: RateOrder) {
        if let Some(sending) = self.sendings.get(&order.stream) {
            sending.set_rate(order.rate);
        }
    }

    /// Ends a stream. A sent one may just have ended by itself: the client already has its report.
    pub(super) fn stop(&mut self, stream: StreamNumber, outbox: &mut AnswerOutbox) -> RequestOutcome {
        if let Some(sending) = self.sendings.remove(&stream) {
            outbox.say(ProbeResponse::Sent(sending.stop()));
        } else if let Some(reception) = self.receptions.remove(&stream) {
            outbox.say(ProbeResponse::Feedback(reception.finish().0));
        } else {
            return Err(format!("stream {stream} is neither sent nor received"));
        }
        Ok(())
    }

    /// Reports the streams that are complete.
    pub(super) fn follow(&mut self, outbox: &mut AnswerOutbox) {
        let over: Vec<StreamNumber> =
            self.sendings.iter().filter(|(_, sending)| sending.is_over()).map(|(stream, _)| *stream).collect();
        for stream in over {
            if let Some(sending) = self.sendings.remove(&stream) {
                outbox.say(ProbeResponse::Sent(sending.stop()));
            }
        }
    }

    /// Records no further datagram of received streams; those recorded can still be collected.
    pub(super) fn stop_recording(&self) {
        self.receptions.values().for_each(StreamReception::stop_recording);
    }

    /// Ends all sent streams.
    pub(super) fn cease(&mut self, outbox: &mut AnswerOutbox) {
        for (_, sending) in self.sendings.drain() {
            outbox.say(ProbeResponse::Sent(sending.stop()));
        }
    }

    pub(super) fn send_feedback(&self, outbox: &mut AnswerOutbox) {
        let counted = self.receptions.values().filter(|reception| reception.detail() == RecordDetail::Counts);
        counted.for_each(|reception| outbox.say(ProbeResponse::Feedback(reception.feedback())));
    }
}
