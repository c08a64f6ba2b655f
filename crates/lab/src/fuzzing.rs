//! The bodies of the fuzz targets, shared with the short deterministic run among the tests.
//!
//! Each takes any bytes and panics when an invariant is violated, whatever a guest sends or an author writes.

use crate::bounds::bounds;
use crate::compile::compile;
use crate::description::{DeliveryTrace, OPPORTUNITY, PathDescription};
use crate::frame::{FrameDecoder, FrameError, encode};
use crate::job::GuestFrame;
use linerate_model::direction::Direction;

/// Takes any bytes; panics when an invariant is violated.
pub type LabFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, LabFuzzTarget)] =
    &[("lab_frames", lab_frames), ("lab_description", lab_description), ("lab_trace", lab_trace)];

/// The stream of a guest, cut into pieces by the upper two bits of the first byte: the frames do not depend on the
/// cuts, and are the same when encoded again.
pub fn lab_frames(data: &[u8]) {
    let Some((flags, stream)) = data.split_first() else { return };
    let size = [usize::MAX, 1, 2, 7][usize::from(flags >> 6)];
    let (whole, end) = decode(core::iter::once(stream));
    assert_eq!(decode(stream.chunks(size.min(stream.len().max(1)))), (whole.clone(), end));
    for frame in whole {
        match encode(&frame) {
            // An empty output is not sent.
            Ok(bytes) if bytes.is_empty() => {
                assert!(
                    matches!(&frame, GuestFrame::Output(content) | GuestFrame::Error(content) if content.is_empty())
                );
            }
            Ok(bytes) => assert_eq!(decode(core::iter::once(&bytes[..])), (vec![frame], Ok(true))),
            // A message may have come in fewer bytes than its encoding here.
            Err(error) => assert!(matches!((error, frame), (FrameError::TooLong(_), GuestFrame::Message(_)))),
        }
    }
}

/// All frames, and the end of the stream: true between two frames, or its error.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<GuestFrame>, Result<bool, FrameError>) {
    let mut decoder = FrameDecoder::new();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(), Err(error.clone()), "broken for good");
                    return (frames, Err(error));
                }
            }
        }
    }
    (frames, Ok(decoder.is_between_frames()))
}

/// A description of a path: a rejected one has a line and a remedy; an accepted one has one plan and bounds.
pub fn lab_description(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let parse = || PathDescription::parse_with_traces("any", text, &mut |name| Ok(name.replace(' ', "\n")));
    match parse() {
        Err(error) => {
            assert!(error.line() >= 1 && error.line() <= text.split('\n').count(), "{error}");
            assert!(!error.message().is_empty() && !error.advice().is_empty(), "{error}");
        }
        Ok(path) => {
            assert_eq!(parse().as_ref(), Ok(&path));
            assert_eq!(compile(&path), compile(&path));
            for way in [Direction::Up, Direction::Down] {
                assert!(bounds(&path, way).segment_rtt >= path.propagation());
            }
        }
    }
}

/// A trace of a link: a rejected one has a line; of an accepted one, the steps carry its packets, and all within it.
pub fn lab_trace(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match DeliveryTrace::parse(text) {
        Err(error) => assert!(error.line >= 1 && error.line <= text.split('\n').count(), "{error}"),
        Ok(trace) => {
            let steps = trace.steps(OPPORTUNITY);
            assert!(steps.first().is_some_and(|first| first.at.is_zero()));
            assert!(steps.windows(2).all(|pair| pair[0].at < pair[1].at));
            let ends = steps.iter().skip(1).map(|step| step.at).chain([trace.length()]);
            let seconds = |(step, end): (&crate::description::RateStep, core::time::Duration)| {
                step.rate.bits_per_second() * end.saturating_sub(step.at).as_secs_f64()
            };
            let bits: f64 = steps.iter().zip(ends).map(seconds).sum();
            let whole = trace.mean_rate(OPPORTUNITY).bits_per_second() * trace.length().as_secs_f64();
            assert!((bits / whole - 1.0).abs() < 1e-6, "{bits} of {whole}");
        }
    }
}
