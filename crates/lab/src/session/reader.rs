//! A thread that takes what the guest says as soon as it says it, so that nobody who looks on holds the guest up.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use linerate_sys::poll::{self, Interest, PollItem, Waker};

use crate::frame::Decoder;
use crate::job::Frame;
use crate::session::SessionError;
use crate::session::launch::Streams;
use crate::session::orders::Report;

/// How much may wait to be taken. Beyond it the guest has to wait.
const MOST_WAITING: usize = 64 << 20;

/// How much is read at once.
const BLOCK: usize = 64 << 10;

/// Something that was read.
#[derive(Debug)]
pub(super) enum Piece {
    /// A frame of the guest.
    Frame(Frame),
    /// A piece of the kernel's log.
    Log(Vec<u8>),
    /// A report of the supervisor.
    Report(Report),
    /// The guest's stream is no frames.
    Damaged(String),
    /// The supervisor is gone.
    SupervisorGone,
    /// Everybody who could write is gone: the last piece.
    End,
}

/// What the thread has read, until it is taken.
#[derive(Debug)]
pub(super) struct Reader {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    taken: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: Vec<Piece>,
    bytes: usize,
    nobody_listens: bool,
}

impl Reader {
    /// Starts the thread, which ends when all three streams have, or with this reader.
    pub(super) fn start(streams: Streams) -> Result<Self, SessionError> {
        let waiting = Mutex::new(Waiting::default());
        let shared = Arc::new(Shared { waiting, taken: Condvar::new(), waker: Waker::new()? });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("lab-reader".into())
            .spawn(move || read_all(streams, &of_thread))
            .map_err(|cause| SessionError::File { operation: "starting a thread".into(), cause })?;
        Ok(Self { shared })
    }

    /// Readable when there is something to take.
    pub(super) fn waker(&self) -> &Waker {
        &self.shared.waker
    }

    /// Everything that was read since the last time, in the order of each stream.
    pub(super) fn take(&self) -> Vec<Piece> {
        self.shared.waker.drain();
        let mut waiting = self.shared.lock();
        waiting.bytes = 0;
        self.shared.taken.notify_one();
        core::mem::take(&mut waiting.pieces)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.lock().nobody_listens = true;
        self.shared.taken.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // What a thread that panicked has left is still a list of pieces.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds pieces, and waits while there are too many; whether somebody still listens.
    fn give(&self, pieces: Vec<Piece>, bytes: usize) -> bool {
        if pieces.is_empty() {
            return true;
        }
        let mut waiting = self.lock();
        waiting.pieces.extend(pieces);
        waiting.bytes += bytes;
        self.waker.wake();
        while waiting.bytes > MOST_WAITING && !waiting.nobody_listens {
            waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        !waiting.nobody_listens
    }
}

/// A stream, and what to do with what comes from it.
struct Source {
    pipe: Option<PipeReader>,
    kind: Kind,
}

enum Kind {
    Frames(Decoder),
    Log,
    Reports(Vec<u8>),
}

fn read_all(streams: Streams, shared: &Shared) {
    let mut sources = [
        Source { pipe: Some(streams.frames), kind: Kind::Frames(Decoder::new()) },
        Source { pipe: Some(streams.log), kind: Kind::Log },
        Source { pipe: Some(streams.reports), kind: Kind::Reports(Vec::new()) },
    ];
    let mut block = vec![0; BLOCK];
    while sources.iter().any(|source| source.pipe.is_some()) {
        let pipes = sources.iter().filter_map(|source| source.pipe.as_ref());
        let mut items: Vec<_> = pipes.map(|pipe| PollItem::new(pipe, Interest::READ)).collect();
        if poll::wait(&mut items, None).is_err() {
            break;
        }
        for source in &mut sources {
            let (pieces, bytes) = source.read(&mut block);
            if !shared.give(pieces, bytes) {
                return;
            }
        }
    }
    shared.give(vec![Piece::End], 0);
}

impl Source {
    /// Reads what is there, at most one block, so that no stream holds another up; the pieces and their size.
    fn read(&mut self, block: &mut [u8]) -> (Vec<Piece>, usize) {
        let Some(pipe) = &mut self.pipe else { return (Vec::new(), 0) };
        match pipe.read(block) {
            Err(error) if poll::would_block(&error) || error.kind() == io::ErrorKind::Interrupted => (Vec::new(), 0),
            Ok(length @ 1..) => (self.kind.pieces(&block[..length]), length),
            Ok(0) | Err(_) => {
                self.pipe = None;
                (self.kind.last(), 0)
            }
        }
    }
}

impl Kind {
    fn pieces(&mut self, bytes: &[u8]) -> Vec<Piece> {
        match self {
            Self::Frames(decoder) => frames(decoder, bytes),
            Self::Log => vec![Piece::Log(bytes.to_vec())],
            Self::Reports(begun) => {
                begun.extend_from_slice(bytes);
                let end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                let whole: Vec<u8> = begun.drain(..end).collect();
                whole.split(|byte| *byte == b'\n').filter_map(Report::parse).map(Piece::Report).collect()
            }
        }
    }

    fn last(&self) -> Vec<Piece> {
        if matches!(self, Self::Reports(_)) { vec![Piece::SupervisorGone] } else { Vec::new() }
    }
}

/// The frames that these bytes complete, and the damage where the stream is none.
fn frames(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Piece> {
    decoder.push(bytes);
    let mut pieces = Vec::new();
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => pieces.push(Piece::Frame(frame)),
            Ok(None) => return pieces,
            Err(error) => {
                pieces.push(Piece::Damaged(error.to_string()));
                return pieces;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::{PipeWriter, Write};

    use linerate_sys::poll::wait_for;
    use linerate_sys::supervise::set_nonblocking;

    use super::*;
    use crate::frame;

    struct Writers {
        frames: PipeWriter,
        log: PipeWriter,
        reports: PipeWriter,
    }

    fn start() -> (Reader, Writers) {
        let pipe = || {
            let (reader, writer) = io::pipe().expect("descriptors");
            set_nonblocking(&reader).expect("a pipe");
            (reader, writer)
        };
        let ((frames, to_frames), (log, to_log), (reports, to_reports)) = (pipe(), pipe(), pipe());
        let reader = Reader::start(Streams { frames, log, reports }).expect("a thread");
        (reader, Writers { frames: to_frames, log: to_log, reports: to_reports })
    }

    fn all(reader: &Reader) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while !pieces.iter().any(|piece| matches!(piece, Piece::End)) {
            let woken = wait_for(reader.waker(), Interest::READ, Some(Duration::from_secs(20))).expect("poll");
            assert!(woken, "no end after {} pieces", pieces.len());
            pieces.extend(reader.take());
        }
        pieces
    }

    #[test]
    fn a_guest_does_not_wait_for_who_looks_on() {
        let (reader, mut writers) = start();
        let output = frame::encode(&Frame::Output(vec![7; 100_000])).expect("short");
        // 20 MB, which no pipe holds, are written before anything is taken.
        for _ in 0..200 {
            writers.frames.write_all(&output).expect("it is read");
        }
        drop(writers);
        let frames = all(&reader).into_iter().filter(|piece| matches!(piece, Piece::Frame(_))).count();
        assert_eq!(frames, 200);
    }

    #[test]
    fn each_stream_has_its_own_pieces() {
        let (reader, mut writers) = start();
        writers.log.write_all(b"Linux version").expect("it is read");
        let report = Report::Ended { code: 3 }.line();
        let (first, second) = report.split_at(5);
        writers.reports.write_all(first).expect("it is read");
        writers.reports.write_all(second).expect("it is read");
        writers.frames.write_all(b"no frame").expect("it is read");
        drop(writers);
        let pieces = all(&reader);
        let has = |wanted: fn(&Piece) -> bool| pieces.iter().filter(|piece| wanted(piece)).count();
        assert_eq!(has(|piece| matches!(piece, Piece::Log(bytes) if bytes == b"Linux version")), 1);
        assert_eq!(has(|piece| matches!(piece, Piece::Report(Report::Ended { code: 3 }))), 1);
        assert_eq!(has(|piece| matches!(piece, Piece::SupervisorGone)), 1);
        assert_eq!(has(|piece| matches!(piece, Piece::Damaged(_))), 1);
    }
}
