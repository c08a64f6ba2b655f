//! Streams of a transfer: payload that is written until the end, and read as it comes.

use std::sync::Arc;

use bytes::Bytes;
use linerate_engine::server::TrafficShare;
use linerate_units::ByteCount;
use linerate_wire::cookie::{SessionToken, TOKEN_LENGTH};
use linerate_wire::frame::JsonFrameDecoder;
use quinn::{Connection, RecvStream, SendStream, VarInt};

use crate::error::QuicError;
use crate::gaps::StreamGaps;
use crate::meter::PayloadCounter;

/// Payload of one write.
const WRITE: ByteCount = ByteCount::from_kibibytes(256);

/// Largest read where a rate is limited: a share delays each by 50 ms at most.
const LIMITED_READ: ByteCount = ByteCount::from_kibibytes(16);

/// Code with which a stream of payload ends: the receiver has measured what it wanted.
const MEASURED: VarInt = VarInt::from_u32(0);

/// Content of the payload; the same bytes each time, encrypted.
pub(crate) fn payload() -> Bytes {
    Bytes::from(vec![0x5A; WRITE.to_usize()])
}

/// Writes payload on a new stream until the connection or the receiver ends it.
pub(crate) async fn write(
    connection: Connection,
    payload: Bytes,
    counter: Arc<PayloadCounter>,
    share: Option<TrafficShare>,
) {
    let Ok(mut stream) = connection.open_uni().await else { return };
    loop {
        let size = match share.as_ref().map(|share| share.claim(WRITE)) {
            None => payload.len(),
            Some(Ok(bytes)) => bytes.to_usize().min(payload.len()),
            Some(Err(wait)) => {
                tokio::time::sleep(wait).await;
                continue;
            }
        };
        if stream.write_chunk(payload.slice(..size)).await.is_err() {
            return;
        }
        counter.add(size);
    }
}

/// Gate of the streams that share a rate: each waits behind the others.
pub(crate) type RateGate = Arc<tokio::sync::Mutex<()>>;

/// Reads a stream of payload to its end.
pub(crate) async fn read(
    mut stream: RecvStream,
    counter: Arc<PayloadCounter>,
    share: Option<(TrafficShare, RateGate)>,
) {
    let largest = if share.is_some() { LIMITED_READ.to_usize() } else { usize::MAX };
    let mut gaps = StreamGaps::default();
    while let Ok(Some(chunk)) = stream.read_chunk(largest, false).await {
        let before = gaps.len();
        gaps.fill(chunk.offset, chunk.offset + chunk.bytes.len() as u64);
        if !counter.has_space_for_gaps(before, gaps.len()) {
            break;
        }
        counter.add(chunk.bytes.len());
        let Some((share, gate)) = &share else { continue };
        let _turn = gate.lock().await;
        if let Some(wait) = share.count_received(ByteCount::from_usize(chunk.bytes.len())) {
            tokio::time::sleep(wait).await;
        }
    }
    let _ = stream.stop(MEASURED);
}

/// Reads the token at the start of a connection's first stream.
pub(crate) async fn read_token(stream: &mut RecvStream) -> Result<SessionToken, QuicError> {
    let mut characters = [0; TOKEN_LENGTH];
    stream.read_exact(&mut characters).await.map_err(|cause| QuicError::lost(&cause))?;
    SessionToken::from_characters(characters).ok_or_else(|| QuicError::Lost("the token is invalid".to_owned()))
}

/// Reads a document with its length.
pub(crate) async fn read_document(stream: &mut RecvStream, limit: ByteCount) -> Result<Vec<u8>, QuicError> {
    let mut decoder = JsonFrameDecoder::new(limit);
    loop {
        let chunk = stream.read_chunk(limit.to_usize(), true).await.map_err(|cause| QuicError::lost(&cause))?;
        let Some(chunk) = chunk else { return Err(QuicError::Lost("the peer ended the stream early".to_owned())) };
        let mut bytes = &chunk.bytes[..];
        if let Some(document) = decoder.feed(&mut bytes).map_err(|cause| QuicError::lost(&cause))? {
            return Ok(document);
        }
    }
}

/// Writes a document, before the payload of other streams.
pub(crate) async fn write_document(stream: &mut SendStream, document: &[u8]) -> Result<(), QuicError> {
    let _ = stream.set_priority(1);
    stream.write_all(document).await.map_err(|cause| QuicError::lost(&cause))
}
