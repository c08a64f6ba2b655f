//! The streams that a session receives and sends.

use std::collections::HashMap;
use std::sync::Arc;

use linerate_sys::poll::Waker;
use linerate_units::{BitRate, ByteCount};
use linerate_wire::probe::{
    Answer, Detail, MOST_STREAMS, RateOrder, ReceiveOrder, Records, SendOrder, StreamNumber, StreamRef,
};

use super::{Outbox, Outcome, words};
use crate::probe::datagrams::Datagrams;
use crate::probe::recorder::Room;
use crate::probe::stream::Allowance;
use crate::probe::{Arrivals, Reception, Sending};

/// A session sends so much in all its streams together, at most: an hour at 25 Gbit/s has ten times as much.
const MOST_BYTES: ByteCount = ByteCount::new(1 << 40);

const NO_WAY: &str = "there is no way for datagrams yet: ask for \"open\" first, and send the token";

pub(super) struct Streams {
    receptions: HashMap<StreamNumber, Reception>,
    sendings: HashMap<StreamNumber, Sending>,
    room: Arc<Room>,
    allowance: Arc<Allowance>,
    waker: Arc<Waker>,
}

impl Streams {
    pub(super) fn new(waker: Arc<Waker>, most_rate: Option<BitRate>) -> Self {
        Self {
            receptions: HashMap::new(),
            sendings: HashMap::new(),
            room: Room::new(),
            allowance: Allowance::new(MOST_BYTES, most_rate),
            waker,
        }
    }

    pub(super) fn are_sending(&self) -> bool {
        !self.sendings.is_empty()
    }

    pub(super) fn are_counting(&self) -> bool {
        self.receptions.values().any(|reception| reception.detail() == Detail::Counts)
    }

    fn admit(&self, stream: StreamNumber) -> Outcome {
        if self.receptions.contains_key(&stream) || self.sendings.contains_key(&stream) {
            return Err(format!("stream {stream} is in use"));
        }
        if self.receptions.len() + self.sendings.len() >= MOST_STREAMS {
            return Err(format!("a session has at most {MOST_STREAMS} streams at once"));
        }
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        order: ReceiveOrder,
        way: Option<&Arc<Datagrams>>,
        outbox: &mut Outbox,
    ) -> Outcome {
        self.admit(order.stream)?;
        let way = way.ok_or(NO_WAY)?;
        let reception = Reception::start(way, order.stream, order.detail, &self.room).map_err(|error| words(&error))?;
        self.receptions.insert(order.stream, reception);
        outbox.say(Answer::Receiving(StreamRef { stream: order.stream }));
        Ok(())
    }

    pub(super) fn collect(&mut self, stream: StreamNumber, outbox: &mut Outbox) -> Outcome {
        let reception = self.receptions.remove(&stream).ok_or_else(|| format!("stream {stream} is not received"))?;
        let (_, Arrivals { packets, not_kept, dropped_in_host }) = reception.finish();
        let batches = packets.len().div_ceil(Records::MOST).max(1);
        for index in 0..batches {
            let from = index * Records::MOST;
            let packets = packets[from..packets.len().min(from + Records::MOST)].to_vec();
            let last = index + 1 == batches;
            outbox.say(Answer::Records(Records { stream, packets, last, not_kept, dropped_in_host }));
        }
        Ok(())
    }

    pub(super) fn send(&mut self, order: SendOrder, way: Option<&Arc<Datagrams>>, outbox: &mut Outbox) -> Outcome {
        self.admit(order.stream)?;
        let way = way.ok_or(NO_WAY)?;
        let sending = Sending::start(way, order, &self.allowance, Some(Arc::clone(&self.waker)));
        self.sendings.insert(order.stream, sending.map_err(|error| words(&error))?);
        outbox.say(Answer::Sending(StreamRef { stream: order.stream }));
        Ok(())
    }

    /// A stream that is over by now has no rate to change.
    pub(super) fn set_rate(&mut self, order: RateOrder) {
        if let Some(sending) = self.sendings.get(&order.stream) {
            sending.set_rate(order.rate);
        }
    }

    /// Ends a stream. One that is sent may just have ended by itself: that was told then, and its client has it by now.
    pub(super) fn stop(&mut self, stream: StreamNumber, outbox: &mut Outbox) -> Outcome {
        if let Some(sending) = self.sendings.remove(&stream) {
            outbox.say(Answer::Sent(sending.stop()));
        } else if let Some(reception) = self.receptions.remove(&stream) {
            outbox.say(Answer::Feedback(reception.finish().0));
        } else {
            return Err(format!("stream {stream} is neither sent nor received"));
        }
        Ok(())
    }

    /// Reports the streams that have sent all they should.
    pub(super) fn follow(&mut self, outbox: &mut Outbox) {
        let over: Vec<StreamNumber> =
            self.sendings.iter().filter(|(_, sending)| sending.is_over()).map(|(stream, _)| *stream).collect();
        for stream in over {
            if let Some(sending) = self.sendings.remove(&stream) {
                outbox.say(Answer::Sent(sending.stop()));
            }
        }
    }

    /// Ends all that is sent.
    pub(super) fn cease(&mut self, outbox: &mut Outbox) {
        for (_, sending) in self.sendings.drain() {
            outbox.say(Answer::Sent(sending.stop()));
        }
    }

    pub(super) fn give_feedback(&self, outbox: &mut Outbox) {
        let counted = self.receptions.values().filter(|reception| reception.detail() == Detail::Counts);
        counted.for_each(|reception| outbox.say(Answer::Feedback(reception.feedback())));
    }
}
