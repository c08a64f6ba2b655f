//! The guest's end of the channel.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::{channel, clock, describe_os_error};
use linerate_units::MonotonicTime;

use super::Channel;
use super::failure::Failure;
use crate::frame;
use crate::job::{Frame, Message, Request};

/// Frames go out here, requests come in.
pub(super) struct Voice {
    requests: Option<File>,
    frames: File,
    origin: MonotonicTime,
}

impl Voice {
    pub(super) fn open(channel: &Channel) -> linerate_sys::Result<Self> {
        let (requests, frames) = match channel {
            Channel::Console(path) => {
                let console = channel::open_raw_console(path)?;
                (console.try_clone().ok(), console)
            }
            Channel::Descriptors { requests, frames } => {
                (Some(channel::inherited(*requests)?.into()), channel::inherited(*frames)?.into())
            }
        };
        // A kernel of the guest's own counts from its boot.
        Ok(Self { requests, frames, origin: MonotonicTime::from_nanos(0) })
    }

    /// The guest's time is that since now, not that since the host booted.
    pub(super) fn count_time_from_here(&mut self) {
        self.origin = clock::monotonic_now();
    }

    /// The guest's time.
    pub(super) fn guest_nanoseconds(&self, now: MonotonicTime) -> u64 {
        now.as_nanos().saturating_sub(self.origin.as_nanos())
    }

    pub(super) fn say(&mut self, frame: &Frame) -> Result<(), Failure> {
        let bytes = frame::encode(frame).map_err(|cause| Failure::new(cause.to_string()))?;
        self.frames
            .write_all(&bytes)
            .map_err(|cause| Failure::new(format!("writing to the lab's channel: {}", describe_os_error(&cause))))
    }

    pub(super) fn note(&mut self, text: impl Into<String>) -> Result<(), Failure> {
        self.say(&Frame::Message(Message::Note { text: text.into() }))
    }

    /// Where requests come from, for waiting; `None` when no more will come.
    pub(super) fn requests(&self) -> Option<BorrowedFd<'_>> {
        self.requests.as_ref().map(AsFd::as_fd)
    }

    /// The requests that are there; call it when there is something to read. Other bytes mean nothing.
    pub(super) fn take_requests(&mut self) -> Vec<Request> {
        let mut bytes = [0; 64];
        let length = match self.requests.as_mut().map(|requests| requests.read(&mut bytes)) {
            Some(Ok(length @ 1..)) => length,
            Some(Err(cause)) if cause.kind() == io::ErrorKind::Interrupted => 0,
            _ => {
                self.requests = None;
                0
            }
        };
        let known = [Request::Interrupt, Request::WhoRuns];
        let request = |byte: &u8| known.into_iter().find(|request| *request as u8 == *byte);
        bytes[..length].iter().filter_map(request).collect()
    }

    /// Waits until everything that was said is out of this kernel's hands.
    pub(super) fn finish(&mut self) {
        channel::wait_until_sent(&self.frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bytes_until_the_pipe_ends() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let frames = File::create("/dev/null").expect("there");
        let requests = Some(File::from(std::os::fd::OwnedFd::from(reader)));
        let mut voice = Voice { requests, frames, origin: MonotonicTime::from_nanos(5) };
        writer.write_all(b"i?w").expect("room");
        assert_eq!(voice.take_requests(), [Request::Interrupt, Request::WhoRuns]);
        drop(writer);
        assert!(voice.requests().is_some());
        assert_eq!(voice.take_requests(), []);
        assert!(voice.requests().is_none());
        assert_eq!(voice.guest_nanoseconds(MonotonicTime::from_nanos(12)), 7);
    }
}
