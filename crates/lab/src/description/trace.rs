//! Traces of variable links, in the format of mahimahi: a line for each packet that the link could deliver, with the
//! millisecond at which it could.

use core::fmt;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::types::RateStep;

/// IP packet of one line.
pub const OPPORTUNITY: ByteCount = ByteCount::new(1500);

/// Largest trace.
const MAX_LINES: usize = 20_000_000;

/// Longest trace: a day.
const MAX_MILLISECONDS: u64 = 86_400_000;

/// Shortest time over which the rate of a trace is averaged, in milliseconds.
const MIN_STEP_MILLISECONDS: u64 = 100;

/// Smallest number of packets in a step at the mean rate: each change of a shaper may let half a packet pass.
const MIN_STEP_PACKETS: u64 = 50;

/// Largest number of steps of one pass through a trace.
const MAX_STEPS: u64 = 10_000;

/// Packets that a link could deliver over time. After its end it begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Millisecond of each packet, ascending; the last one is the length of the trace.
    milliseconds: Vec<u32>,
}

/// A line that is not a trace's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, counted from 1.
    pub line: usize,
    message: String,
}

impl fmt::Display for TraceError {
    /// `line 3: 'x' is not a whole number of milliseconds`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl core::error::Error for TraceError {}

impl DeliveryTrace {
    /// Reads a trace.
    ///
    /// # Errors
    /// The first line that is no whole number of milliseconds, is less than the one before, or exceeds a day; a trace
    /// without time.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut milliseconds: Vec<u32> = Vec::new();
        for (index, line) in text.trim_end().lines().enumerate() {
            let failed = |message: String| TraceError { line: index + 1, message };
            let time = milliseconds_of(line.trim()).map_err(failed)?;
            if milliseconds.last().is_some_and(|last| time < *last) {
                return Err(failed(format!("{time} is less than the time of the line before")));
            }
            if milliseconds.len() == MAX_LINES {
                return Err(failed(format!("a trace has at most {MAX_LINES} lines")));
            }
            milliseconds.push(time);
        }
        match milliseconds.last() {
            Some(last) if *last > 0 => Ok(Self { milliseconds }),
            Some(_) => Err(TraceError {
                line: milliseconds.len(),
                message: "the trace ends at 0 ms, so it has no length".to_owned(),
            }),
            None => Err(TraceError { line: 1, message: "the trace is empty".to_owned() }),
        }
    }

    /// Time after which the trace begins again.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.last())
    }

    /// Number of packets of one pass.
    #[must_use]
    pub const fn packets(&self) -> usize {
        self.milliseconds.len()
    }

    fn last(&self) -> u64 {
        self.milliseconds.last().copied().map_or(1, u64::from)
    }

    /// Mean rate, where a packet occupies `packet` bytes of it.
    #[must_use]
    pub fn mean_rate(&self, packet: ByteCount) -> BitRate {
        rate(self.milliseconds.len() as u64, self.last(), packet)
    }

    /// Rates of one pass, from 0 on, each other than the one before, where a packet occupies `packet` bytes.
    ///
    /// A time without packets takes one of those after it: the shaper then sends that one at the end of the time, and
    /// all other packets after it.
    #[must_use]
    pub fn steps(&self, packet: ByteCount) -> Vec<RateStep> {
        let mut steps: Vec<RateStep> = Vec::new();
        let mut idle_from = None;
        for (start, end, packets) in self.bins() {
            let from = idle_from.unwrap_or(start);
            let mut push = |at: u64, rate: BitRate| {
                if steps.last().is_none_or(|last| last.rate != rate) {
                    steps.push(RateStep { at: Duration::from_millis(at), rate });
                }
            };
            match (idle_from, packets) {
                (_, 0) => idle_from = Some(from),
                (None, packets) => push(start, rate(packets, end - start, packet)),
                (Some(_), 1) => {
                    push(from, rate(1, end - from, packet));
                    idle_from = None;
                }
                (Some(_), packets) => {
                    push(from, rate(1, start - from, packet));
                    push(start, rate(packets - 1, end - start, packet));
                    idle_from = None;
                }
            }
        }
        steps
    }

    /// Equal parts of the trace: start, end, and the packets after the start until the end.
    fn bins(&self) -> Vec<(u64, u64, u64)> {
        let length = self.last();
        let packets = self.milliseconds.len() as u64;
        let width = (length * MIN_STEP_PACKETS).div_ceil(packets).max(MIN_STEP_MILLISECONDS);
        let count = length.div_ceil(width).clamp(1, MAX_STEPS);
        let mut next = 0;
        let bin = |index: u64| {
            let (start, end) = (length * index / count, length * (index + 1) / count);
            let first = next;
            while self.milliseconds.get(next).is_some_and(|time| u64::from(*time) <= end) {
                next += 1;
            }
            (start, end, (next - first) as u64)
        };
        (0..count).map(bin).collect()
    }
}

fn milliseconds_of(text: &str) -> Result<u32, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shown =
        || text.chars().take(20).map(|letter| if letter.is_control() { '?' } else { letter }).collect::<String>();
    if !is_number {
        return Err(format!("'{}' is not a whole number of milliseconds", shown()));
    }
    let number: Option<u64> = text.parse().ok().filter(|number| *number <= MAX_MILLISECONDS);
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("{} ms is more than a day", shown()))
}

fn rate(packets: u64, milliseconds: u64, packet: ByteCount) -> BitRate {
    (packet * packets).rate_over(Duration::from_millis(milliseconds.max(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(text: &str) -> Vec<(u64, f64)> {
        let trace = DeliveryTrace::parse(text).expect("a trace");
        let step = |step: RateStep| (u64::try_from(step.at.as_millis()).expect("short"), step.rate.bits_per_second());
        trace.steps(OPPORTUNITY).into_iter().map(step).collect()
    }

    /// `rate` packets each millisecond from `start` to `end`.
    fn lines(start: u32, end: u32, rate: usize) -> String {
        (start + 1..=end).flat_map(|time| core::iter::repeat_n(format!("{time}\n"), rate)).collect()
    }

    #[test]
    fn a_constant_trace_has_one_rate() {
        // 12 Mbit/s: mahimahi's own example.
        assert_eq!(steps("1\n"), [(0, 12e6)]);
        assert_eq!(steps(&lines(0, 1000, 2)), [(0, 24e6)]);
    }

    #[test]
    fn rates_follow_the_trace() {
        assert_eq!(steps(&(lines(0, 500, 1) + &lines(500, 1000, 4))), [(0, 12e6), (500, 48e6)]);
    }

    #[test]
    fn an_outage_has_one_packet_of_those_after_it() {
        let text = lines(0, 400, 2) + &lines(800, 1200, 2);
        // One packet in 400 ms, and 199 in the next 100 ms.
        assert_eq!(steps(&text), [(0, 24e6), (400, 30e3), (800, 23.88e6), (900, 24e6)]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("", "line 1: the trace is empty"),
            ("0\n0\n", "line 2: the trace ends at 0 ms, so it has no length"),
            ("1\n2\nx3\n", "line 3: 'x3' is not a whole number of milliseconds"),
            ("1\n\n3\n", "line 2: '' is not a whole number of milliseconds"),
            ("5\n4\n", "line 2: 4 is less than the time of the line before"),
            ("1\n-2\n", "line 2: '-2' is not a whole number of milliseconds"),
            ("1.5\n", "line 1: '1.5' is not a whole number of milliseconds"),
            ("86400001\n", "line 1: 86400001 ms is more than a day"),
            ("99999999999999999999999\n", "line 1: 99999999999999999999 ms is more than a day"),
            ("1\n\u{1b}[31m\n", "line 2: '?[31m' is not a whole number of milliseconds"),
        ] {
            assert_eq!(
                DeliveryTrace::parse(text).map_err(|error| error.to_string()),
                Err(expected.to_owned()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn line_ends_of_other_systems_are_read() {
        assert_eq!(DeliveryTrace::parse("1\r\n2\r\n\r\n").map(|trace| trace.packets()), Ok(2));
    }

    proptest! {
        #[test]
        fn no_packet_is_lost_or_invented(gaps in prop::collection::vec(0_u32..400, 1..800)) {
            let mut time = 0;
            let lines: Vec<String> = gaps.iter().map(|gap| { time += gap; time.to_string() }).collect();
            let text = lines.join("\n");
            prop_assume!(time > 0);
            let trace = DeliveryTrace::parse(&text).expect("ascending");
            let steps = trace.steps(OPPORTUNITY);
            prop_assert!(steps.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].rate != pair[1].rate));
            prop_assert!(steps.iter().all(|step| step.rate.bits_per_second() > 0.0));
            prop_assert_eq!(steps[0].at, Duration::ZERO);
            let ends = steps.iter().skip(1).map(|step| step.at).chain([trace.length()]);
            let bits: f64 = steps.iter().zip(ends).map(|(step, end)| step.rate.bits_per_second() * end.saturating_sub(step.at).as_secs_f64()).sum();
            let packets = bits / 12_000.0;
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let expected = gaps.len() as f64;
            prop_assert!((packets / expected - 1.0).abs() < 1e-6, "{packets} of {expected}");
        }

        #[test]
        fn any_text_is_a_trace_or_has_a_line_that_is_none(text in "[0-9x\\-. \n\r]{0,60}") {
            if let Err(error) = DeliveryTrace::parse(&text) {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1), "{error}");
            }
        }
    }
}
