use proptest::prelude::*;

use super::*;
use crate::stamp::{ErrorEstimate, Timestamp, TimestampFormat};

const MILLISECOND: u64 = 1_000_000;

/// This host's clocks: civil time is a billion seconds ahead.
fn at(nanos: u64) -> Moment {
    let wall = WallTime::from_unix(Duration::from_secs(1_000_000_000) + Duration::from_nanos(nanos));
    Moment { monotonic: MonotonicTime::from_nanos(nanos), wall }
}

/// The reflector's clock is `ahead` nanoseconds ahead of this host's.
fn stamp(nanos: u64, ahead: i64, format: TimestampFormat) -> Timestamp {
    let nanos = nanos.checked_add_signed(ahead).expect("after the epoch");
    Timestamp::from_wall(at(nanos).wall, format)
}

fn answer(sequence: u32, reflected: u32) -> ReflectorPacket {
    ReflectorPacket { sequence: reflected, sender_sequence: sequence, ..ReflectorPacket::default() }
}

fn book() -> SenderBook {
    SenderBook::new(PacketCount::new(1000))
}

fn send_all(book: &mut SenderBook, times: core::ops::Range<u64>) {
    for time in times {
        book.send(at(time));
    }
}

fn counts(losses: Losses) -> (Option<u64>, Option<u64>, u64) {
    (losses.forward.map(PacketCount::get), losses.backward.map(PacketCount::get), losses.total.get())
}

#[test]
fn a_round_trip_is_without_the_turn_around() {
    for format in [TimestampFormat::Ntp, TimestampFormat::PtpTruncated] {
        let mut book = book();
        book.send(at(100 * MILLISECOND));
        // 30 ms there, 5 ms turned around, 20 ms back; the reflector's clock is 40 ms slow.
        let ahead = -40 * MILLISECOND.cast_signed();
        let answer = ReflectorPacket {
            received_at: stamp(130 * MILLISECOND, ahead, format),
            timestamp: stamp(135 * MILLISECOND, ahead, format),
            error_estimate: ErrorEstimate::unknown(format),
            sender_ttl: 61,
            ..ReflectorPacket::default()
        };
        let trip = book.receive(&answer, at(155 * MILLISECOND)).expect("known");
        assert_eq!((trip.total, trip.round_trip), (Duration::from_millis(55), Some(Duration::from_millis(50))));
        assert_eq!(trip.forward.map(ClockDifference::as_nanos), Some(-10_000_000));
        assert_eq!(trip.backward.map(ClockDifference::as_nanos), Some(60_000_000));
        assert_eq!((trip.number, trip.ttl, trip.duplicate), (0, 61, false));
        assert_eq!(book.receive(&answer, at(156 * MILLISECOND)).map(|trip| trip.duplicate), Some(true));
        assert_eq!((book.sent().get(), book.answered().get()), (1, 1));
    }
}

#[test]
fn what_a_reflector_does_not_say_is_none() {
    let mut book = book();
    book.send(at(0));
    let trip = book.receive(&answer(0, 0), at(7)).expect("known");
    assert_eq!((trip.round_trip, trip.forward, trip.backward), (None, None, None));
    assert_eq!(trip.total, Duration::from_nanos(7));
    // Left before it came.
    let absurd = ReflectorPacket {
        received_at: stamp(MILLISECOND, 0, TimestampFormat::Ntp),
        timestamp: stamp(0, 0, TimestampFormat::Ntp),
        ..answer(0, 0)
    };
    assert_eq!(book.receive(&absurd, at(7)).and_then(|trip| trip.round_trip), None);
}

#[test]
fn answers_to_nothing_are_strays() {
    let mut book = SenderBook::new(PacketCount::new(2));
    assert_eq!(book.receive(&answer(0, 0), at(1)), None);
    for number in 0..3 {
        assert_eq!(book.next_sequence(), number);
        assert_eq!(book.send(at(number.into())), u64::from(number));
    }
    assert_eq!(book.receive(&answer(0, 0), at(9)), None, "forgotten");
    assert_eq!(book.receive(&answer(3, 0), at(9)), None, "not sent yet");
    assert_eq!(book.receive(&answer(u32::MAX, 0), at(9)), None);
    assert!(book.receive(&answer(2, 0), at(9)).is_some());
    assert_eq!(book.strays().get(), 4);
    assert_eq!(counts(SenderBook::new(PacketCount::new(2)).losses()), (None, None, 0));
}

#[test]
fn losses_have_a_direction_if_the_reflector_counts() {
    let mut book = book();
    send_all(&mut book, 0..10);
    // 2 and 3 never came; the answers to 5 and 6 were lost.
    for (sequence, reflected) in [(0, 0), (1, 1), (4, 2), (7, 5), (8, 6), (9, 7)] {
        book.receive(&answer(sequence, reflected), at(20));
    }
    assert_eq!(counts(book.losses()), (Some(2), Some(2), 4));
}

#[test]
fn a_reflector_without_state_says_no_direction() {
    let mut book = book();
    send_all(&mut book, 0..4);
    book.receive(&answer(0, 0), at(20));
    assert_eq!(counts(book.losses()), (Some(0), Some(0), 0));
    book.receive(&answer(3, 3), at(20));
    assert_eq!(counts(book.losses()), (None, None, 2));
    let mut told = SenderBook::new(PacketCount::new(9)).with_stateful_reflector();
    send_all(&mut told, 0..4);
    told.receive(&answer(3, 3), at(20));
    assert_eq!(counts(told.losses()), (Some(0), Some(3), 3));
}

#[test]
fn a_reflector_that_has_met_the_session_before_counts_on() {
    let mut book = book();
    send_all(&mut book, 0..4);
    for (sequence, reflected) in [(0, 500), (1, 501), (3, 502)] {
        book.receive(&answer(sequence, reflected), at(20));
    }
    assert_eq!(counts(book.losses()), (Some(1), Some(0), 1));
}

#[test]
fn counts_go_on_beyond_32_bits() {
    assert_eq!(extend(5, 0xFFFF_FFFE), Some(0x1_0000_0005));
    assert_eq!(extend(0xFFFF_FFFF, 0x1_0000_0002), Some(0xFFFF_FFFF));
    assert_eq!(extend(0xFFFF_FFFF, 3), None);
}

proptest! {
    /// Any losses in both directions, any overtaking and copies on the way there: what is lost is told by direction, up to
    /// what was lost after the last answer and copies whose answers were lost.
    #[test]
    fn losses_are_those_that_happened(fates in proptest::collection::vec((0_u8..8, 0_u8..8), 1..300)) {
        let mut book = book().with_stateful_reflector();
        let mut reflected = 0;
        let (mut forward, mut backward) = (0, 0);
        let mut last = None;
        for (index, (there, back)) in fates.iter().enumerate() {
            let number = book.next_sequence();
            book.send(at(index as u64));
            if *there == 0 {
                forward += 1;
                continue;
            }
            let sequence = reflected;
            reflected += 1;
            if *back == 0 {
                backward += 1;
                continue;
            }
            book.receive(&answer(number, sequence), at(1000));
            if *there == 1 {
                book.receive(&answer(number, reflected), at(1000));
                reflected += 1;
            }
            last = Some((forward, backward));
        }
        if let Some((forward, backward)) = last {
            prop_assert_eq!(counts(book.losses()), (Some(forward), Some(backward), forward + backward));
        } else {
            prop_assert_eq!(counts(book.losses()), (None, None, 0));
        }
    }

    #[test]
    fn any_answers_are_taken(answers in proptest::collection::vec(any::<(u8, u32, u64, u64, u16)>(), 0..40)) {
        let mut book = SenderBook::new(PacketCount::new(8));
        for (sequence, reflected, came, went, error) in answers {
            book.send(at(5));
            let answer = ReflectorPacket {
                received_at: Timestamp::from_bits(came),
                timestamp: Timestamp::from_bits(went),
                error_estimate: ErrorEstimate::from_bits(error),
                ..answer(sequence.into(), reflected)
            };
            if let Some(trip) = book.receive(&answer, at(9)) {
                prop_assert!(trip.round_trip.is_none_or(|round_trip| round_trip <= trip.total));
            }
            let losses = book.losses();
            prop_assert!(losses.total <= book.sent());
            prop_assert!(book.answered() <= book.sent());
        }
    }
}
