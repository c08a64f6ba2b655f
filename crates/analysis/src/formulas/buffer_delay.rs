use core::time::Duration;

use linerate_units::Ratio;

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "buffer delay",
    text: "buffer delay = (mean round-trip time − baseline) / baseline",
    citation: "RFC 6349 §4.3",
    explanation: "The growth of the round trip by queues during a transfer: from 25 to 32 ms is 28 %. The baseline \
                  is the least round-trip time of the idle path. The RFC asks for the mean of one sample each second, \
                  and not for the handshake's time, since firewalls delay that.\n\n\
                  A guide for Red Hat Enterprise Linux takes the average of ten pings for the baseline and shows a \
                  minimum (117.208 ms) above the average (117.056 ms), which no ten pings can have.",
};

/// Buffer delay. `None` for a baseline of zero, and where the loaded path was faster.
#[must_use]
pub fn buffer_delay(loaded: Duration, baseline: Duration) -> Option<Ratio> {
    Ratio::of(loaded.checked_sub(baseline)?.as_secs_f64(), baseline.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let delay = buffer_delay(Duration::from_millis(32), Duration::from_millis(25)).unwrap_or_default();
        assert!(near(delay.get(), 0.28, 1e-9), "{delay}");
        assert_eq!(buffer_delay(Duration::from_millis(1), Duration::ZERO), None);
        assert_eq!(buffer_delay(Duration::from_millis(1), Duration::from_millis(2)), None);
    }
}
