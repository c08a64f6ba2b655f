//! A connection at the server: one request, and its reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_model::quic::QuicEnd;
use linerate_wire::quic::{MAX_REQUEST_LENGTH, QuicReply, QuicRequest, QuicTransferOrder};
use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::QuicError;
use crate::meter::{PayloadCounter, TransferMeter};
use crate::server::SessionEntry;
use crate::socket::CountingSocket;
use crate::stream::{self, RateGate};
use crate::transport::{self, IDLE_TIMEOUT};

/// Time that a sender goes on after the measured time, for a receiver that began later.
const GRACE: core::time::Duration = core::time::Duration::from_secs(30);

/// Connection of a session that a server has accepted.
pub(crate) struct ServedConnection {
    pub(crate) connection: Connection,
    /// Ends once the handshake is complete.
    pub(crate) confirmed: Option<JoinHandle<()>>,
    pub(crate) session: Arc<SessionEntry>,
    pub(crate) socket: Arc<CountingSocket>,
    pub(crate) endpoint: Endpoint,
}

impl ServedConnection {
    /// Serves the request to its end.
    pub(crate) async fn serve(mut self) {
        if let Err(error) = self.answer().await {
            // A reason is sent encrypted only after the handshake.
            self.confirm().await;
            self.connection.close(VarInt::from_u32(1), error.reason().as_bytes());
        }
    }

    /// Waits for the end of the handshake.
    async fn confirm(&mut self) {
        if let Some(confirmed) = self.confirmed.take() {
            let _ = tokio::time::timeout(IDLE_TIMEOUT, confirmed).await;
        }
    }

    async fn answer(&mut self) -> Result<(), QuicError> {
        let opened = tokio::time::timeout(IDLE_TIMEOUT, self.connection.accept_bi()).await;
        let (mut reply, mut request) = opened
            .map_err(|_| QuicError::Lost("no request arrived".to_owned()))?
            .map_err(|cause| QuicError::lost(&cause))?;
        let token = stream::read_token(&mut request).await?;
        if token != self.session.token {
            return Err(QuicError::Refused("the token is not this session's".to_owned()));
        }
        if let Some(served) = &self.session.exchange {
            if served.exchange.keeps_open {
                return self.exchange_all(request, reply).await;
            }
            exchange(Arc::clone(&self.session), request, reply).await?;
            let _ = tokio::time::timeout(IDLE_TIMEOUT, self.connection.closed()).await;
            return Ok(());
        }
        let document = stream::read_document(&mut request, MAX_REQUEST_LENGTH).await?;
        let parsed = QuicRequest::decode(&document).map_err(|cause| QuicError::lost(&cause))?;
        // Early data may be a repetition: only an echo is answered before the handshake is complete.
        if parsed != QuicRequest::Echo {
            self.confirm().await;
        }
        let answer = match parsed {
            QuicRequest::Echo => QuicReply::Echo,
            QuicRequest::Up(order) => QuicReply::End(Box::new(self.receive(order, request).await)),
            QuicRequest::Down(order) => QuicReply::End(Box::new(self.send(order, request).await)),
        };
        self.conclude(&mut reply, &answer).await
    }

    /// Answers requests as they arrive, each on a stream of its own, until the client closes.
    async fn exchange_all(&self, request: RecvStream, reply: SendStream) -> Result<(), QuicError> {
        let mut exchanges = JoinSet::new();
        exchanges.spawn(exchange(Arc::clone(&self.session), request, reply));
        loop {
            tokio::select! {
                opened = self.connection.accept_bi() => {
                    let Ok((reply, request)) = opened else { return Ok(()) };
                    exchanges.spawn(exchange(Arc::clone(&self.session), request, reply));
                }
                Some(Ok(ended)) = exchanges.join_next() => ended?,
            }
        }
    }

    /// Sends the reply, and waits until the client has closed.
    async fn conclude(&self, reply: &mut SendStream, answer: &QuicReply) -> Result<(), QuicError> {
        stream::write_document(reply, &answer.encode()).await?;
        let _ = reply.finish();
        let _ = tokio::time::timeout(IDLE_TIMEOUT, self.connection.closed()).await;
        Ok(())
    }

    /// Receives until the time is over, or the client finishes the stream of its request.
    async fn receive(&self, order: QuicTransferOrder, request: RecvStream) -> QuicEnd {
        self.connection.set_receive_window(transport::transfer_window(self.connection.rtt(), self.session.window));
        let payload = Arc::<PayloadCounter>::default();
        let mut readers = JoinSet::new();
        let (connection, counter) = (self.connection.clone(), Arc::clone(&payload));
        let share = self.session.share.traffic_share().map(|share| (share, RateGate::default()));
        readers.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok(opened) = connection.accept_uni().await {
                streams.spawn(stream::read(opened, Arc::clone(&counter), share.clone()));
            }
        });
        self.measure(order, payload, false, finished(request)).await
    }

    /// Sends until the client finishes the stream of its request.
    async fn send(&self, order: QuicTransferOrder, request: RecvStream) -> QuicEnd {
        let payload = Arc::<PayloadCounter>::default();
        let (content, mut writers) = (stream::payload(), JoinSet::new());
        for _ in 0..order.streams {
            let share = self.session.share.traffic_share();
            writers.spawn(stream::write(self.connection.clone(), content.clone(), Arc::clone(&payload), share));
        }
        let longer = QuicTransferOrder { time: order.time + GRACE, ..order };
        self.measure(longer, payload, true, finished(request)).await
    }

    async fn measure(
        &self,
        order: QuicTransferOrder,
        payload: Arc<PayloadCounter>,
        sends: bool,
        ended: impl Future<Output = ()>,
    ) -> QuicEnd {
        let _active = ActiveTransfer::start(&self.session.active);
        let peer = self.socket.watch(self.connection.remote_address());
        let sender = sends.then_some(self.session.order.congestion_control);
        let meter = TransferMeter { connection: &self.connection, peer: &peer, payload, order, sender };
        // A client that keeps the connection and sends nothing does not occupy its session for ever.
        let measured = tokio::time::timeout(order.total() + GRACE, meter.measure(ended, &mut |_| {})).await;
        let end = measured.unwrap_or_default();
        QuicEnd { connections: self.endpoint.open_connections() as u64, ..end }
    }
}

/// Waits until the client finishes the stream of its request, or its connection is closed.
async fn finished(mut request: RecvStream) {
    while let Ok(Some(_)) = request.read_chunk(64, true).await {}
}

/// Answers one request of a session that has an exchange.
async fn exchange(session: Arc<SessionEntry>, mut request: RecvStream, mut reply: SendStream) -> Result<(), QuicError> {
    let Some(served) = &session.exchange else { return Ok(()) };
    let share = session.share.traffic_share();
    let answer = served.answer(&mut request, &mut reply, share.as_ref());
    let answered = tokio::time::timeout(IDLE_TIMEOUT + GRACE, answer).await;
    answered.map_err(|_| QuicError::Lost("the client is too slow".to_owned()))?
}

/// Transfer that runs.
struct ActiveTransfer<'a>(&'a AtomicUsize);

impl<'a> ActiveTransfer<'a> {
    fn start(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for ActiveTransfer<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
