//! Limits of a running test, in virtual time.

use core::time::Duration;

use linerate_model::parameters::{EndCondition, TestParameters};
use linerate_units::{BitRate, BlockCount, ByteCount, MonotonicTime};
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;

use crate::resources::ServerResources;
use crate::server::ServerOptions;
use crate::server::watchdog::TestWatchdog;

fn at(milliseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(7_000_000_000 + milliseconds * 1_000_000)
}

fn watchdog(options: &ServerOptions, end: EndCondition, omit: u64) -> TestWatchdog {
    let parameters = TestParameters { end, omit: Duration::from_secs(omit), ..TestParameters::default() };
    let server = ServerResources::limited(ByteCount::ZERO, 0, options.limits.max_total_rate);
    let account = server.account(std::net::Ipv4Addr::LOCALHOST.into());
    TestWatchdog::new(options, &parameters, account.rate(), at(0))
}

/// First millisecond at which a test without progress limits is ended; `None` within 1000 s.
fn end_of(watchdog: &mut TestWatchdog) -> Option<u64> {
    let ended =
        |watchdog: &mut TestWatchdog, time| watchdog.check(at(time), Duration::ZERO, ByteCount::ZERO, || 1).is_some();
    let (mut low, mut high) = (0, 1_000_000);
    if !ended(watchdog, high) {
        return None;
    }
    while low < high {
        let middle = u64::midpoint(low, high);
        if ended(watchdog, middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[test]
fn the_deadline_is_the_earlier_of_the_tests_own_and_the_servers() {
    let seconds = |time| EndCondition::Time(Duration::from_secs(time));
    let bytes = EndCondition::Bytes(ByteCount::new(1));
    let blocks = EndCondition::Blocks(BlockCount::new(1));
    for (end, omit, most, expected) in [
        (seconds(10), 0, None, Some(50)),
        (seconds(10), 3, None, Some(53)),
        (seconds(10), 0, Some(5), Some(45)),
        (seconds(10), 0, Some(60), Some(50)),
        (seconds(0), 0, None, None),
        (seconds(0), 0, Some(5), Some(45)),
        (bytes, 0, None, None),
        (blocks, 0, None, None),
        (blocks, 600, Some(7), Some(47)),
    ] {
        let limits = ServerLimits { max_duration: most.map(Duration::from_secs), ..ServerLimits::default() };
        let options = ServerOptions { limits, ..ServerOptions::default() };
        let found = end_of(&mut watchdog(&options, end, omit));
        assert_eq!(found, expected.map(|seconds: u64| seconds * 1000), "{end:?}, omit {omit}, most {most:?}");
    }
}

#[test]
fn reasons_are_reported_in_their_order() {
    let limits = ServerLimits { max_total_rate: Some(BitRate::from_bits_per_second(8e3)), ..ServerLimits::default() };
    let options = ServerOptions { limits, ..ServerOptions::default() };
    let much = ByteCount::from_mebibytes(1000);
    for (time, stalled, bytes, code) in [
        (60_000, 200, much, Some(ErrorCode::TEST_DURATION_EXPIRED)),
        (40_000, 200, much, Some(ErrorCode::IDLE_RECEIVER)),
        (40_000, 119, much, Some(ErrorCode::TOTAL_RATE)),
        (40_000, 119, ByteCount::new(40_000), None),
    ] {
        let mut watchdog = watchdog(&options, EndCondition::Time(Duration::from_secs(10)), 0);
        let found = watchdog.check(at(time), Duration::from_secs(stalled), bytes, || 1);
        assert_eq!(found.map(|error| error.code()), code, "{time} ms, stalled for {stalled} s");
    }
}

#[test]
fn a_rate_at_the_limit_is_permitted_and_one_byte_more_is_not() {
    let limits = ServerLimits { max_total_rate: Some(BitRate::from_bits_per_second(8e6)), ..ServerLimits::default() };
    let options = ServerOptions { limits, rate_averaging: Duration::from_secs(2), ..ServerOptions::default() };
    let forever = EndCondition::Time(Duration::ZERO);
    for (surplus, code) in [(0, None), (1, Some(ErrorCode::TOTAL_RATE))] {
        let mut watchdog = watchdog(&options, forever, 0);
        let found = watchdog.check(at(2000), Duration::ZERO, ByteCount::new(2_000_000 + surplus), || 1);
        assert_eq!(found.map(|error| error.code()), code, "{surplus}");
    }
}

#[test]
fn each_averaging_time_is_judged_alone() {
    let limits = ServerLimits { max_total_rate: Some(BitRate::from_bits_per_second(8e6)), ..ServerLimits::default() };
    let options = ServerOptions { limits, rate_averaging: Duration::from_secs(1), ..ServerOptions::default() };
    let mut watchdog = watchdog(&options, EndCondition::Time(Duration::ZERO), 0);
    let mut check = |time, bytes| {
        let found = watchdog.check(at(time), Duration::ZERO, ByteCount::new(bytes), || 1);
        found.map(|error| error.code())
    };
    assert_eq!(check(999, 5_000_000), None, "not yet a second");
    assert_eq!(check(1000, 900_000), None);
    assert_eq!(check(1500, 900_000), None);
    // A second late: 1.8 MB in two seconds.
    assert_eq!(check(3000, 2_700_000), None);
    // A pause earns no credit.
    assert_eq!(check(4000, 2_700_000), None);
    assert_eq!(check(5000, 4_000_000), Some(ErrorCode::TOTAL_RATE));
}
