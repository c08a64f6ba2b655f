//! The guest's end of the channel.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::{channel, clock, describe_os_error};
use linerate_units::MonotonicTime;

use super::GuestChannel;
use super::failure::GuestFailure;
use crate::frame;
use crate::job::{GuestFrame, GuestMessage, GuestRequest};

/// Writes frames and reads requests.
pub(super) struct FrameWriter {
    requests: Option<File>,
    frames: File,
    origin: MonotonicTime,
}

impl FrameWriter {
    pub(super) fn open(channel: &GuestChannel) -> linerate_sys::Result<Self> {
        let (requests, frames) = match channel {
            GuestChannel::Console(path) => {
                let console = channel::open_raw_console(path)?;
                (console.try_clone().ok(), console)
            }
            GuestChannel::Descriptors { requests, frames } => {
                (Some(channel::inherited(*requests)?.into()), channel::inherited(*frames)?.into())
            }
        };
        // The clock of a guest's own kernel starts at its boot.
        Ok(Self { requests, frames, origin: MonotonicTime::from_nanos(0) })
    }

    /// Counts the guest's time from now on, not from the host's boot.
    pub(super) fn start_clock(&mut self) {
        self.origin = clock::monotonic_now();
    }

    /// The guest's time.
    pub(super) fn guest_nanoseconds(&self, now: MonotonicTime) -> u64 {
        now.as_nanos().saturating_sub(self.origin.as_nanos())
    }

    pub(super) fn say(&mut self, frame: &GuestFrame) -> Result<(), GuestFailure> {
        let bytes = frame::encode(frame).map_err(|cause| GuestFailure::new(cause.to_string()))?;
        self.frames
            .write_all(&bytes)
            .map_err(|cause| GuestFailure::new(format!("writing to the lab's channel: {}", describe_os_error(&cause))))
    }

    pub(super) fn note(&mut self, text: impl Into<String>) -> Result<(), GuestFailure> {
        self.say(&GuestFrame::Message(GuestMessage::Note { text: text.into() }))
    }

    /// Descriptor of requests, for waiting; `None` when no more will come.
    pub(super) fn requests(&self) -> Option<BorrowedFd<'_>> {
        self.requests.as_ref().map(AsFd::as_fd)
    }

    /// Reads pending requests; call it when there is something to read. Other bytes are ignored.
    pub(super) fn take_requests(&mut self) -> Vec<GuestRequest> {
        let mut bytes = [0; 64];
        let length = match self.requests.as_mut().map(|requests| requests.read(&mut bytes)) {
            Some(Ok(length @ 1..)) => length,
            Some(Err(cause)) if cause.kind() == io::ErrorKind::Interrupted => 0,
            _ => {
                self.requests = None;
                0
            }
        };
        let known = [GuestRequest::Interrupt, GuestRequest::WhoRuns];
        let request = |byte: &u8| known.into_iter().find(|request| *request as u8 == *byte);
        bytes[..length].iter().filter_map(request).collect()
    }

    /// Waits until all frames have left this kernel.
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
        let mut voice = FrameWriter { requests, frames, origin: MonotonicTime::from_nanos(5) };
        writer.write_all(b"i?w").expect("room");
        assert_eq!(voice.take_requests(), [GuestRequest::Interrupt, GuestRequest::WhoRuns]);
        drop(writer);
        assert!(voice.requests().is_some());
        assert_eq!(voice.take_requests(), []);
        assert!(voice.requests().is_none());
        assert_eq!(voice.guest_nanoseconds(MonotonicTime::from_nanos(12)), 7);
    }
}
