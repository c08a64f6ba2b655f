//! A thread that reads the guest's messages immediately, so that a slow observer does not delay the guest.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use linerate_sys::poll::{self, PollInterest, PollItem, Waker};

use crate::frame::FrameDecoder;
use crate::job::GuestFrame;
use crate::session::SessionError;
use crate::session::launch::GuestStreams;
use crate::session::orders::SupervisorReport;

/// Maximum of buffered bytes. Beyond it the guest has to wait.
const MAX_BUFFERED: usize = 64 << 20;

/// Size of a read.
const BLOCK: usize = 64 << 10;

/// A piece of input.
#[derive(Debug)]
pub(super) enum InputPiece {
    /// A frame of the guest.
    Frame(GuestFrame),
    /// A piece of the kernel's log.
    Log(Vec<u8>),
    /// A report of the supervisor.
    Report(SupervisorReport),
    /// The guest's stream has invalid frames.
    Damaged(String),
    /// The supervisor is gone.
    SupervisorGone,
    /// All writers are gone: the last piece.
    End,
}

/// Buffer of the pieces that the thread has read.
#[derive(Debug)]
pub(super) struct InputReader {
    shared: Arc<SharedBuffer>,
}

#[derive(Debug)]
struct SharedBuffer {
    waiting: Mutex<BufferedInput>,
    taken: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct BufferedInput {
    pieces: Vec<InputPiece>,
    bytes: usize,
    is_reader_gone: bool,
}

impl InputReader {
    /// Starts the thread, which ends when all three streams have, or with this reader.
    pub(super) fn start(streams: GuestStreams) -> Result<Self, SessionError> {
        let waiting = Mutex::new(BufferedInput::default());
        let shared = Arc::new(SharedBuffer { waiting, taken: Condvar::new(), waker: Waker::new()? });
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

    /// Returns everything read since the last call, in the order of each stream.
    pub(super) fn drain(&self) -> Vec<InputPiece> {
        self.shared.waker.drain();
        let mut waiting = self.shared.lock();
        waiting.bytes = 0;
        self.shared.taken.notify_one();
        core::mem::take(&mut waiting.pieces)
    }
}

impl Drop for InputReader {
    fn drop(&mut self) {
        self.shared.lock().is_reader_gone = true;
        self.shared.taken.notify_one();
    }
}

impl SharedBuffer {
    fn lock(&self) -> MutexGuard<'_, BufferedInput> {
        // The state of a thread that panicked is still a list of pieces.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds pieces, and waits while there are too many; returns whether the reader still exists.
    fn push(&self, pieces: Vec<InputPiece>, bytes: usize) -> bool {
        if pieces.is_empty() {
            return true;
        }
        let mut waiting = self.lock();
        waiting.pieces.extend(pieces);
        waiting.bytes += bytes;
        self.waker.wake();
        while waiting.bytes > MAX_BUFFERED && !waiting.is_reader_gone {
            waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        !waiting.is_reader_gone
    }
}

/// A stream, and its processing.
struct InputSource {
    pipe: Option<PipeReader>,
    kind: SourceKind,
}

enum SourceKind {
    Frames(FrameDecoder),
    Log,
    Reports(Vec<u8>),
}

fn read_all(streams: GuestStreams, shared: &SharedBuffer) {
    let mut sources = [
        InputSource { pipe: Some(streams.frames), kind: SourceKind::Frames(FrameDecoder::new()) },
        InputSource { pipe: Some(streams.log), kind: SourceKind::Log },
        InputSource { pipe: Some(streams.reports), kind: SourceKind::Reports(Vec::new()) },
    ];
    let mut block = vec![0; BLOCK];
    while sources.iter().any(|source| source.pipe.is_some()) {
        let pipes = sources.iter().filter_map(|source| source.pipe.as_ref());
        let mut items: Vec<_> = pipes.map(|pipe| PollItem::new(pipe, PollInterest::READ)).collect();
        if poll::wait(&mut items, None).is_err() {
            break;
        }
        for source in &mut sources {
            let (pieces, bytes) = source.read(&mut block);
            if !shared.push(pieces, bytes) {
                return;
            }
        }
    }
    shared.push(vec![InputPiece::End], 0);
}

impl InputSource {
    /// Reads at most one block, so that no stream delays another; returns the pieces and their size.
    fn read(&mut self, block: &mut [u8]) -> (Vec<InputPiece>, usize) {
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

impl SourceKind {
    fn pieces(&mut self, bytes: &[u8]) -> Vec<InputPiece> {
        match self {
            Self::Frames(decoder) => frames(decoder, bytes),
            Self::Log => vec![InputPiece::Log(bytes.to_vec())],
            Self::Reports(begun) => {
                begun.extend_from_slice(bytes);
                let end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                let whole: Vec<u8> = begun.drain(..end).collect();
                whole.split(|byte| *byte == b'\n').filter_map(SupervisorReport::parse).map(InputPiece::Report).collect()
            }
        }
    }

    fn last(&self) -> Vec<InputPiece> {
        if matches!(self, Self::Reports(_)) { vec![InputPiece::SupervisorGone] } else { Vec::new() }
    }
}

/// Frames that these bytes complete, and the damage in an invalid stream.
fn frames(decoder: &mut FrameDecoder, bytes: &[u8]) -> Vec<InputPiece> {
    decoder.push(bytes);
    let mut pieces = Vec::new();
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => pieces.push(InputPiece::Frame(frame)),
            Ok(None) => return pieces,
            Err(error) => {
                pieces.push(InputPiece::Damaged(error.to_string()));
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

    fn start() -> (InputReader, Writers) {
        let pipe = || {
            let (reader, writer) = io::pipe().expect("descriptors");
            set_nonblocking(&reader).expect("a pipe");
            (reader, writer)
        };
        let ((frames, to_frames), (log, to_log), (reports, to_reports)) = (pipe(), pipe(), pipe());
        let reader = InputReader::start(GuestStreams { frames, log, reports }).expect("a thread");
        (reader, Writers { frames: to_frames, log: to_log, reports: to_reports })
    }

    fn all(reader: &InputReader) -> Vec<InputPiece> {
        let mut pieces = Vec::new();
        while !pieces.iter().any(|piece| matches!(piece, InputPiece::End)) {
            let woken = wait_for(reader.waker(), PollInterest::READ, Some(Duration::from_secs(20))).expect("poll");
            assert!(woken, "no end after {} pieces", pieces.len());
            pieces.extend(reader.drain());
        }
        pieces
    }

    #[test]
    fn a_guest_does_not_wait_for_the_observer() {
        let (reader, mut writers) = start();
        let output = frame::encode(&GuestFrame::Output(vec![7; 100_000])).expect("short");
        // 20 MB, which no pipe holds, are written before anything is taken.
        for _ in 0..200 {
            writers.frames.write_all(&output).expect("it is read");
        }
        drop(writers);
        let frames = all(&reader).into_iter().filter(|piece| matches!(piece, InputPiece::Frame(_))).count();
        assert_eq!(frames, 200);
    }

    #[test]
    fn each_stream_has_its_own_pieces() {
        let (reader, mut writers) = start();
        writers.log.write_all(b"Linux version").expect("it is read");
        let report = SupervisorReport::Ended { code: 3 }.line();
        let (first, second) = report.split_at(5);
        writers.reports.write_all(first).expect("it is read");
        writers.reports.write_all(second).expect("it is read");
        writers.frames.write_all(b"no frame").expect("it is read");
        drop(writers);
        let pieces = all(&reader);
        let has = |wanted: fn(&InputPiece) -> bool| pieces.iter().filter(|piece| wanted(piece)).count();
        assert_eq!(has(|piece| matches!(piece, InputPiece::Log(bytes) if bytes == b"Linux version")), 1);
        assert_eq!(has(|piece| matches!(piece, InputPiece::Report(SupervisorReport::Ended { code: 3 }))), 1);
        assert_eq!(has(|piece| matches!(piece, InputPiece::SupervisorGone)), 1);
        assert_eq!(has(|piece| matches!(piece, InputPiece::Damaged(_))), 1);
    }
}
