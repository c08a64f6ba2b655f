//! The bytes of the stream from a guest: kind, length, content.
//!
//! A frame is one byte for its kind, four for the length of its content (little-endian, at most [`MAX_CONTENT`]),
//! and the content: bytes as the command wrote them, or a [`GuestMessage`] in JSON.

use linerate_model::json;

use crate::job::{GuestFrame, GuestMessage};

/// The longest content of a frame, in bytes. Longer outputs go in several frames.
pub const MAX_CONTENT: usize = 1 << 20;

const HEADER: usize = 5;
const OUTPUT: u8 = b'o';
const ERROR: u8 = b'e';
const MESSAGE: u8 = b'm';

/// A stream that is not a guest's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Unknown kind of frame.
    #[error("the guest sent a frame of unknown kind {0:#04x}")]
    UnknownKind(u8),
    /// Content longer than [`MAX_CONTENT`].
    #[error("the guest sent a frame of {0} bytes; the longest has {MAX_CONTENT}")]
    TooLong(u32),
    /// Content that is not a message.
    #[error("the guest sent an invalid message: {0}")]
    Message(String),
}

/// Encodes a frame; an output longer than [`MAX_CONTENT`] becomes several frames, an empty output none.
///
/// # Errors
///
/// [`FrameError::TooLong`] for a message that is longer.
pub fn encode(frame: &GuestFrame) -> Result<Vec<u8>, FrameError> {
    match frame {
        GuestFrame::Output(bytes) => Ok(encode_output(OUTPUT, bytes)),
        GuestFrame::Error(bytes) => Ok(encode_output(ERROR, bytes)),
        GuestFrame::Message(message) => {
            let content = serde_json::to_vec(message).map_err(|cause| FrameError::Message(cause.to_string()))?;
            if content.len() > MAX_CONTENT {
                return Err(FrameError::TooLong(length_field(&content)));
            }
            let mut bytes = Vec::with_capacity(HEADER + content.len());
            append(&mut bytes, MESSAGE, &content);
            Ok(bytes)
        }
    }
}

fn encode_output(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + HEADER * content.len().div_ceil(MAX_CONTENT));
    for piece in content.chunks(MAX_CONTENT) {
        append(&mut bytes, kind, piece);
    }
    bytes
}

fn append(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    bytes.push(kind);
    bytes.extend(length_field(content).to_le_bytes());
    bytes.extend(content);
}

fn length_field(content: &[u8]) -> u32 {
    u32::try_from(content.len()).unwrap_or(u32::MAX)
}

/// Assembles frames from bytes that arrive in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct FrameDecoder {
    bytes: Vec<u8>,
    /// Start of the next frame.
    start: usize,
}

impl FrameDecoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        // Decoded bytes are dropped before more memory is allocated: at most one frame stays.
        self.bytes.drain(..core::mem::take(&mut self.start));
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` when more bytes are needed for it.
    ///
    /// # Errors
    ///
    /// The stream is broken from here on: the same error is returned again, and further bytes are ignored.
    pub fn next_frame(&mut self) -> Result<Option<GuestFrame>, FrameError> {
        let bytes = &self.bytes[self.start..];
        let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
        if ![OUTPUT, ERROR, MESSAGE].contains(kind) {
            return Err(FrameError::UnknownKind(*kind));
        }
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        let content = match usize::try_from(length) {
            Ok(length) if length <= MAX_CONTENT => rest.get(..length),
            _ => return Err(FrameError::TooLong(length)),
        };
        let Some(content) = content else { return Ok(None) };
        let frame = match *kind {
            OUTPUT => GuestFrame::Output(content.to_vec()),
            ERROR => GuestFrame::Error(content.to_vec()),
            _ => GuestFrame::Message(read_message(content)?),
        };
        self.start += HEADER + content.len();
        Ok(Some(frame))
    }

    /// True when the stream could end here: no frame has begun.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.start == self.bytes.len()
    }
}

fn read_message(content: &[u8]) -> Result<GuestMessage, FrameError> {
    json::from_slice(content).map_err(|cause| FrameError::Message(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::CommandEnd;

    fn message() -> impl Strategy<Value = GuestMessage> {
        let nanoseconds = any::<u64>();
        prop_oneof![
            nanoseconds.prop_map(|guest_nanoseconds| GuestMessage::Ready { guest_nanoseconds }),
            nanoseconds.prop_map(|guest_nanoseconds| GuestMessage::Alive { guest_nanoseconds }),
            proptest::collection::vec((any::<u32>(), ".*"), 0..3)
                .prop_map(|processes| GuestMessage::Running { processes }),
            ".*".prop_map(|text| GuestMessage::Note { text }),
            (any::<i32>(), any::<bool>(), nanoseconds, any::<Option<(u64, u64)>>()).prop_map(
                |(number, by_signal, guest_nanoseconds, captured)| {
                    let end = if by_signal { CommandEnd::Signal(number) } else { CommandEnd::Code(number) };
                    GuestMessage::Ended { end, guest_nanoseconds, captured }
                }
            ),
            (".*", proptest::option::of(".*")).prop_map(|(error, advice)| GuestMessage::Failed { error, advice }),
        ]
    }

    fn frame() -> impl Strategy<Value = GuestFrame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 1..300);
        prop_oneof![
            bytes().prop_map(GuestFrame::Output),
            bytes().prop_map(GuestFrame::Error),
            message().prop_map(GuestFrame::Message),
        ]
    }

    fn decode_all(decoder: &mut FrameDecoder) -> Vec<GuestFrame> {
        core::iter::from_fn(|| decoder.next_frame().expect("a guest's stream")).collect()
    }

    proptest! {
        #[test]
        fn frames_round_trip_however_the_stream_is_cut(
            frames in proptest::collection::vec(frame(), 0..8),
            cuts in proptest::collection::vec(1_usize..200, 1..40),
        ) {
            let stream: Vec<u8> = frames.iter().flat_map(|frame| encode(frame).expect("short")).collect();
            let (mut decoder, mut decoded, mut rest) = (FrameDecoder::new(), Vec::new(), stream.as_slice());
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                decoder.push(piece);
                decoded.extend(decode_all(&mut decoder));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(decoded, frames);
            prop_assert!(decoder.is_between_frames());
        }

        #[test]
        fn any_bytes_end_in_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut decoder = FrameDecoder::new();
            decoder.push(&bytes);
            let mut frames = 0;
            while let Ok(Some(_)) = decoder.next_frame() {
                frames += 1;
            }
            prop_assert!(frames * HEADER <= bytes.len());
            prop_assert_eq!(decoder.next_frame(), decoder.next_frame());
        }
    }

    #[test]
    fn every_split_of_a_frame_is_the_frame() {
        let frame = GuestFrame::Message(GuestMessage::Ready { guest_nanoseconds: 7 });
        let bytes = encode(&frame).expect("short");
        for split in 0..=bytes.len() {
            let mut decoder = FrameDecoder::new();
            decoder.push(&bytes[..split]);
            let early = decoder.next_frame().expect("a beginning");
            assert_eq!(early.is_some(), split == bytes.len(), "{split}");
            assert_eq!(decoder.is_between_frames(), split == 0 || split == bytes.len());
            decoder.push(&bytes[split..]);
            assert_eq!(early.or(decoder.next_frame().expect("whole")), Some(frame.clone()));
        }
    }

    #[test]
    fn a_long_output_goes_in_pieces() {
        let output: Vec<u8> = (0..MAX_CONTENT * 2 + 3).map(|index| index.to_le_bytes()[0]).collect();
        let mut decoder = FrameDecoder::new();
        decoder.push(&encode(&GuestFrame::Output(output.clone())).expect("outputs can be cut"));
        let pieces: Vec<Vec<u8>> = decode_all(&mut decoder)
            .into_iter()
            .map(|frame| match frame {
                GuestFrame::Output(bytes) => bytes,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_CONTENT, MAX_CONTENT, 3]);
        assert!(pieces.concat() == output);
        assert!(encode(&GuestFrame::Error(Vec::new())).expect("nothing").is_empty());
    }

    #[test]
    fn invalid_frames_are_refused() {
        let refused = |bytes: &[u8]| {
            let mut decoder = FrameDecoder::new();
            decoder.push(bytes);
            decoder.next_frame().expect_err("refused")
        };
        assert_eq!(refused(b"Linux version"), FrameError::UnknownKind(b'L'));
        assert_eq!(refused(&[b'o', 1, 0, 16, 0]), FrameError::TooLong(0x10_0001));
        assert!(matches!(refused(b"m\x02\0\0\0{}"), FrameError::Message(_)));
        let note = GuestMessage::Note { text: "x".repeat(MAX_CONTENT) };
        assert!(matches!(encode(&GuestFrame::Message(note)), Err(FrameError::TooLong(_))));
    }
}
