//! Connection that stays open: requests leave when they are due, each on a stream of its own, as those of HTTP/3.
//!
//! The runtime has a thread of its own, so that neither a request nor a response waits for the thread that orders them.

use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use linerate_engine::rr::{QuicTransactionFailure, RequestConnection, ResponseSink};
use linerate_sys::clock;
use linerate_units::MonotonicTime;
use linerate_wire::cookie::TOKEN_LENGTH;
use quinn::{Connection, VarInt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::{ExchangeFlow, FILTERED, exchange_on};

/// Time for the packet that closes a connection to leave.
const CLOSING_TIME: Duration = Duration::from_millis(50);

/// Number of a request and the arrival of its response, or the reason why the connection ended.
type RequestResult = Result<(u64, MonotonicTime), String>;

/// Connection with its thread.
pub(super) struct OpenConnection {
    /// Numbers of requests; as many as its user has in flight. Its end closes the connection.
    orders: Option<UnboundedSender<u64>>,
    results: Receiver<RequestResult>,
    thread: Option<JoinHandle<()>>,
}

impl OpenConnection {
    /// Performs the handshake and one request, which has the session's token.
    pub(super) fn start(
        flow: ExchangeFlow,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<Self, QuicTransactionFailure> {
        let first = async {
            let connection = flow.connect().await?;
            exchange_on(&connection, flow.request.clone(), flow.target.response).await?;
            Ok(connection)
        };
        let port = flow.target.ready.port;
        let connection = flow.run_within(first, timeout, is_stopping, |limit| {
            format!("a QUIC handshake and a request were not complete within {limit} (UDP port {port}): {FILTERED}")
        })?;
        let (orders, numbers) = tokio::sync::mpsc::unbounded_channel();
        let (sender, results) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("requests".to_owned());
        let thread = thread.spawn(move || flow.runtime.block_on(perform(&flow, connection, numbers, sender)));
        let failed = |cause| format!("starting a thread: {}", linerate_sys::describe_os_error(&cause));
        let thread = thread.map_err(|cause| QuicTransactionFailure::Failed(failed(cause)))?;
        Ok(Self { orders: Some(orders), results, thread: Some(thread) })
    }
}

/// Performs requests until there are no more orders, or one fails.
async fn perform(
    flow: &ExchangeFlow,
    connection: Connection,
    mut numbers: UnboundedReceiver<u64>,
    results: Sender<RequestResult>,
) {
    let request = flow.request.slice(TOKEN_LENGTH..);
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            number = numbers.recv() => {
                let Some(number) = number else { break };
                let (connection, request, response) = (connection.clone(), request.clone(), flow.target.response);
                running.spawn(async move {
                    let exchanged = exchange_on(&connection, request, response).await;
                    exchanged.map(|()| (number, clock::monotonic_now())).map_err(|error| error.to_string())
                });
            }
            Some(Ok(result)) = running.join_next() => {
                let is_over = result.is_err();
                if results.send(result).is_err() || is_over {
                    break;
                }
            }
        }
    }
    connection.close(VarInt::from_u32(0), b"");
    let _ = tokio::time::timeout(CLOSING_TIME, flow.endpoint.wait_idle()).await;
}

impl RequestConnection for OpenConnection {
    fn send(&mut self, number: u64) -> Result<(), String> {
        // A thread that has ended has left its reason among the results.
        let _ = self.orders.as_ref().is_some_and(|orders| orders.send(number).is_ok());
        Ok(())
    }

    fn wait_until(&mut self, deadline: MonotonicTime, responses: ResponseSink<'_>) -> Result<(), String> {
        loop {
            match self.results.recv_timeout(deadline.since(clock::monotonic_now())) {
                Ok(result) => {
                    let (number, arrived) = result?;
                    responses(number, arrived);
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err("the thread of the connection ended".to_owned()),
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
