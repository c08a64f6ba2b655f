//! Bodies of requests: small ones are read whole, large ones are counted and discarded.

use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use tokio::time::{sleep, timeout};

use crate::session::Transfer;

/// Most bytes of a body that is read whole.
pub(crate) const MAX_BODY: usize = 96 << 10;

/// Time limit of a body that is read whole.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    TooSlow,
    Broken,
}

async fn next(body: &mut Incoming) -> Option<Result<Bytes, BodyError>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers say nothing here.
            Ok(Err(_)) => {}
            Err(_) => return Some(Err(BodyError::Broken)),
        }
    }
}

/// Reads a small body whole.
pub(crate) async fn read(mut body: Incoming) -> Result<Vec<u8>, BodyError> {
    let whole = async {
        let mut bytes = Vec::new();
        while let Some(data) = next(&mut body).await {
            let data = data?;
            if bytes.len() + data.len() > MAX_BODY {
                return Err(BodyError::TooLarge);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Reads and discards a body at the rate of the server; returns its bytes, or why the transfer ended early.
pub(crate) async fn discard(mut body: Incoming, transfer: &Transfer) -> Result<u64, String> {
    let mut bytes = 0_u64;
    while let Some(data) = next(&mut body).await {
        let data = data.map_err(|_| "the connection broke".to_owned())?;
        transfer.may_go_on()?;
        bytes += data.len() as u64;
        if let Some(wait) = transfer.count_received(data.len() as u64) {
            sleep(wait).await;
        }
    }
    Ok(bytes)
}
