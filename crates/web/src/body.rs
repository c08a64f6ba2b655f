//! Bodies of responses: a text, or bytes without meaning for a download.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::{Arc, OnceLock};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use linerate_units::ByteCount;
use tokio::time::{Sleep, sleep};

use crate::connection::Connection;
use crate::session::Transfer;

/// Bytes of the block that downloads repeat.
const BLOCK: usize = 1 << 20;

/// Bytes of one frame of a download.
const FRAME: u64 = 256 << 10;

/// Marks a connection as busy while a request is answered.
#[derive(Debug)]
pub(crate) struct BusyMark(Arc<Connection>);

impl BusyMark {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.begin_request();
        Self(Arc::clone(connection))
    }
}

impl Drop for BusyMark {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// Body of a response.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    content: BodyContent,
    busy: Option<BusyMark>,
}

#[derive(Debug)]
enum BodyContent {
    Text(Bytes),
    Download(Box<Download>),
}

/// A download in progress.
#[derive(Debug)]
struct Download {
    left: u64,
    offset: u64,
    transfer: Transfer,
    /// Pause that the rate of the server asks for.
    pause: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self { content: BodyContent::Text(text.into()), busy: None }
    }

    /// `bytes` bytes that do not compress.
    pub(crate) fn download(bytes: u64, transfer: Transfer) -> Self {
        let download = Download { left: bytes, offset: 0, transfer, pause: None };
        Self { content: BodyContent::Download(Box::new(download)), busy: None }
    }

    /// Length of a text; `None` for a download, which is paced.
    pub(crate) fn text_length(&self) -> Option<u64> {
        match &self.content {
            BodyContent::Text(text) => Some(text.len() as u64),
            BodyContent::Download(_) => None,
        }
    }

    /// Keeps the connection marked until the body has been sent.
    pub(crate) fn with_mark(self, mark: BusyMark) -> Self {
        Self { busy: Some(mark), ..self }
    }
}

/// Block of random bytes, made once.
pub(crate) fn block() -> &'static Bytes {
    static RANDOM: OnceLock<Bytes> = OnceLock::new();
    RANDOM.get_or_init(|| {
        let mut bytes = vec![0; BLOCK];
        // Without entropy the bytes compress; nothing on the path is expected to try.
        let _ = linerate_sys::host::random_bytes(&mut bytes);
        Bytes::from(bytes)
    })
}

impl Download {
    fn poll(&mut self, context: &mut Context<'_>, quantum: usize) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            if self.left == 0 {
                return Poll::Ready(None);
            }
            if let Err(reason) = self.transfer.may_go_on() {
                return Poll::Ready(Some(Err(io::Error::other(reason))));
            }
            let most = ByteCount::new(self.left.min(FRAME).min(quantum as u64).min(BLOCK as u64 - self.offset));
            match self.transfer.claim(most) {
                Err(wait) => self.pause = Some(Box::pin(sleep(wait))),
                Ok(granted) => return Poll::Ready(Some(Ok(Frame::data(self.next(granted.get()))))),
            }
        }
    }

    fn next(&mut self, count: u64) -> Bytes {
        let range = |at: u64| usize::try_from(at).unwrap_or(BLOCK).min(BLOCK);
        let bytes = block().slice(range(self.offset)..range(self.offset + count));
        self.left -= count;
        self.offset = (self.offset + count) % BLOCK as u64;
        bytes
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let quantum = self.busy.as_ref().map_or(usize::MAX, |busy| busy.0.quantum());
        match &mut self.content {
            BodyContent::Text(text) if text.is_empty() => Poll::Ready(None),
            BodyContent::Text(text) => Poll::Ready(Some(Ok(Frame::data(core::mem::take(text))))),
            BodyContent::Download(download) => download.poll(context, quantum),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            BodyContent::Text(text) => text.is_empty(),
            BodyContent::Download(download) => download.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodyContent::Text(text) => SizeHint::with_exact(text.len() as u64),
            BodyContent::Download(download) => SizeHint::with_exact(download.left),
        }
    }
}
