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

#[cfg(test)]
mod tests {
    use linerate_model::direction::Direction;
    use linerate_units::BitRate;

    use super::*;
    use crate::session::WebSession;
    use crate::test_support::{Loopback, access, client};

    /// Next part of a body.
    fn next(loopback: &Loopback, body: &mut ResponseBody) -> Poll<Option<io::Result<Bytes>>> {
        let frame = loopback.poll_once(core::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)));
        frame.map_ok(|frame| frame.into_data().expect("no trailers"))
    }

    fn data(loopback: &Loopback, body: &mut ResponseBody) -> Option<Bytes> {
        let Poll::Ready(part) = next(loopback, body) else { panic!("it waits") };
        part.map(|part| part.expect("no error"))
    }

    fn session() -> Arc<WebSession> {
        WebSession::open(&access(|_| ()), client(1), None, 4, false).expect("a free session")
    }

    fn download(session: &Arc<WebSession>, connection: &Arc<Connection>, bytes: u64) -> ResponseBody {
        ResponseBody::download(bytes, session.begin(Direction::Down, connection).expect("a free transfer"))
    }

    #[test]
    fn a_text_is_one_part_of_known_length() {
        let loopback = Loopback::new();
        let mut body = ResponseBody::text("four");
        assert_eq!((body.size_hint().exact(), body.text_length(), body.is_end_stream()), (Some(4), Some(4), false));
        assert_eq!(data(&loopback, &mut body).as_deref(), Some(&b"four"[..]));
        assert!(body.is_end_stream());
        assert_eq!(data(&loopback, &mut body), None);
    }

    #[test]
    fn a_download_has_exactly_its_length_in_parts_that_leave_others_their_turn() {
        let (loopback, session) = (Loopback::new(), session());
        let (connection, _client) = loopback.connect(1);
        for length in [0, 1, FRAME, FRAME + 1, BLOCK as u64 + 1000, 3 << 20] {
            let mut body = download(&session, &connection, length);
            assert_eq!((body.size_hint().exact(), body.text_length()), (Some(length), None));
            let mut sent = 0;
            while let Some(part) = data(&loopback, &mut body) {
                let at = usize::try_from(sent).expect("small") % BLOCK;
                assert!((1..=FRAME).contains(&(part.len() as u64)), "{length}");
                assert!(part == block()[at..at + part.len()], "random bytes, again after each block");
                sent += part.len() as u64;
            }
            assert_eq!((sent, body.is_end_stream()), (length, true));
        }
    }

    #[test]
    fn a_download_ends_with_its_session() {
        let (loopback, session) = (Loopback::new(), session());
        let (connection, _client) = loopback.connect(1);
        let mut body = download(&session, &connection, 1 << 20);
        assert!(data(&loopback, &mut body).is_some());
        session.end("the server is terminating");
        let Poll::Ready(Some(Err(error))) = next(&loopback, &mut body) else { panic!("no error") };
        assert_eq!(error.to_string(), "the server is terminating");
    }

    #[test]
    fn a_download_waits_where_the_rate_of_the_server_is_used_up() {
        let loopback = Loopback::new();
        let (connection, _client) = loopback.connect(1);
        // One byte per second: the first segment uses up 24 minutes.
        let rate = BitRate::from_bits_per_second(8.0);
        let access = access(|options| options.limits.max_total_rate = Some(rate));
        let session = WebSession::open(&access, client(1), None, 4, false).expect("a free session");
        let mut body = download(&session, &connection, 1 << 20);
        let first = data(&loopback, &mut body).expect("a part");
        assert!(first.len() < 2000, "{} bytes", first.len());
        assert!(next(&loopback, &mut body).is_pending());
    }

    #[test]
    fn a_connection_is_busy_until_its_answer_is_gone() {
        let loopback = Loopback::new();
        let (connection, _client) = loopback.connect(1);
        let bodies = [0, 1].map(|_| ResponseBody::text("a").with_mark(BusyMark::new(&connection)));
        for body in bodies {
            assert!(connection.is_busy());
            drop(body);
        }
        assert!(!connection.is_busy());
    }
}
