//! Options of `dualpi2` (RFC 9332), as `--dualpi2` has them.

use core::fmt::{self, Write as _};
use core::str::FromStr;
use core::time::Duration;

use linerate_units::parse;

/// Options of `dualpi2`; `None` leaves the kernel's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DualQueueOptions {
    /// Interval at which the probability of marks is updated; the kernel's default is 16 ms.
    update: Option<Duration>,
    /// Integral gain, in 1/256 Hz; the default is 0.16 Hz.
    alpha: Option<u32>,
    /// Proportional gain, in 1/256 Hz; the default is 3.2 Hz.
    beta: Option<u32>,
    /// Factor between the probability of marks in the low-latency queue and the square root of that of drops in the
    /// classic one (RFC 9332 §2.1); the default is 2.
    coupling: Option<u8>,
    /// Delay of the low-latency queue above which each of its packets is marked; the default is 1 ms.
    step: Option<Duration>,
    /// True to drop packets when they are enqueued instead of when they leave.
    drops_on_enqueue: Option<bool>,
    /// True to drop packets of both queues under overload, false to let the queue overflow.
    drops_on_overload: Option<bool>,
    /// Share of the link that the classic queue has at least, in percent; the default is 10.
    classic_protection: Option<u8>,
    /// True to split aggregated packets (GSO).
    splits_aggregates: Option<bool>,
}

/// Largest gain, in 1/256 Hz.
const MAX_GAIN: u32 = 255 << 8;
/// The kernel's threshold of the low-latency queue.
const DEFAULT_STEP: Duration = Duration::from_millis(1);
/// Longest time of an option.
const MAX_TIME: Duration = Duration::from_secs(1);

impl DualQueueOptions {
    /// True without any option.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Delay of the low-latency queue above which each of its packets is marked.
    #[must_use]
    pub fn step(&self) -> Duration {
        self.step.unwrap_or(DEFAULT_STEP)
    }

    /// These options, and those of `later` where it has a value.
    #[must_use]
    pub fn with(self, later: Self) -> Self {
        Self {
            update: later.update.or(self.update),
            alpha: later.alpha.or(self.alpha),
            beta: later.beta.or(self.beta),
            coupling: later.coupling.or(self.coupling),
            step: later.step.or(self.step),
            drops_on_enqueue: later.drops_on_enqueue.or(self.drops_on_enqueue),
            drops_on_overload: later.drops_on_overload.or(self.drops_on_overload),
            classic_protection: later.classic_protection.or(self.classic_protection),
            splits_aggregates: later.splits_aggregates.or(self.splits_aggregates),
        }
    }

    /// Arguments of `tc`, each with a leading space.
    #[must_use]
    pub fn tc_arguments(&self) -> String {
        let mut text = String::new();
        let mut add = |argument: fmt::Arguments<'_>| {
            // Writing into memory does not fail.
            let _ = write!(text, " {argument}");
        };
        if let Some(time) = self.update {
            add(format_args!("tupdate {}us", time.as_micros()));
        }
        if let Some(gain) = self.alpha {
            add(format_args!("alpha {}", hertz(gain)));
        }
        if let Some(gain) = self.beta {
            add(format_args!("beta {}", hertz(gain)));
        }
        if let Some(factor) = self.coupling {
            add(format_args!("coupling_factor {factor}"));
        }
        if let Some(time) = self.step {
            add(format_args!("step_thresh {}us", time.as_micros()));
        }
        if let Some(share) = self.classic_protection {
            add(format_args!("classic_protection {share}"));
        }
        for (choice, [on, off]) in [
            (self.drops_on_enqueue, ["drop_enqueue", "drop_dequeue"]),
            (self.drops_on_overload, ["drop_on_overload", "overflow"]),
            (self.splits_aggregates, ["split_gso", "no_split_gso"]),
        ] {
            if let Some(choice) = choice {
                add(format_args!("{}", if choice { on } else { off }));
            }
        }
        text
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "tupdate" => self.update = Some(time(value)?),
            "alpha" => self.alpha = Some(gain(value)?),
            "beta" => self.beta = Some(gain(value)?),
            "coupling" => self.coupling = Some(number(value, 1..=255)?),
            "step" => self.step = Some(time(value)?),
            "protection" => self.classic_protection = Some(number(value, 0..=100)?),
            "drop" => self.drops_on_enqueue = Some(choice(value, ["enqueue", "dequeue"])?),
            "overload" => self.drops_on_overload = Some(choice(value, ["drop", "overflow"])?),
            "split-gso" => self.splits_aggregates = Some(choice(value, ["on", "off"])?),
            _ => {
                return Err(
                    "expected tupdate, alpha, beta, coupling, step, protection, drop, overload or split-gso".to_owned()
                );
            }
        }
        Ok(())
    }
}

/// Gain as a decimal number from which the same one is read.
fn hertz(gain: u32) -> String {
    format!("{:.4}", f64::from(gain) / 256.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn gain(text: &str) -> Result<u32, String> {
    let scaled = text.parse::<f64>().ok().map(|gain| (gain * 256.0).round());
    let scaled = scaled.filter(|gain| (1.0..=f64::from(MAX_GAIN)).contains(gain));
    scaled.map(|gain| gain as u32).ok_or_else(|| "a gain is 0.004 to 255 Hz".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse::time(text).map_err(|error| error.to_string())?;
    let range = Duration::from_micros(1)..=MAX_TIME;
    if range.contains(&time) { Ok(time) } else { Err("a time of dualpi2 is 1us to 1s".to_owned()) }
}

fn number(text: &str, range: core::ops::RangeInclusive<u8>) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected {} to {}", range.start(), range.end()))
}

fn choice(text: &str, [on, off]: [&str; 2]) -> Result<bool, String> {
    if text == on || text == off { Ok(text == on) } else { Err(format!("expected {on} or {off}")) }
}

impl FromStr for DualQueueOptions {
    type Err = String;

    /// Reads `coupling=2,step=1ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        super::for_each_pair(text, |name, value| options.set(name, value))?;
        Ok(options)
    }
}

impl fmt::Display for DualQueueOptions {
    /// Writes what [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice =
            |choice: Option<bool>, [on, off]: [&str; 2]| choice.map(|is_on| if is_on { on } else { off }.to_owned());
        let micros = |time: Option<Duration>| time.map(|time| format!("{}us", time.as_micros()));
        let pairs = [
            ("tupdate", micros(self.update)),
            ("alpha", self.alpha.map(hertz)),
            ("beta", self.beta.map(hertz)),
            ("coupling", self.coupling.map(|factor| factor.to_string())),
            ("step", micros(self.step)),
            ("protection", self.classic_protection.map(|share| share.to_string())),
            ("drop", choice(self.drops_on_enqueue, ["enqueue", "dequeue"])),
            ("overload", choice(self.drops_on_overload, ["drop", "overflow"])),
            ("split-gso", choice(self.splits_aggregates, ["on", "off"])),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        f.write_str(&given.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: &str =
        "tupdate=16ms,alpha=0.16,beta=3.2,coupling=2,step=1ms,protection=10,drop=dequeue,overload=drop,split-gso=on";

    #[test]
    fn options_lead_back_and_become_arguments_of_tc() {
        let options: DualQueueOptions = ALL.parse().expect("valid");
        assert_eq!(options.to_string().parse(), Ok(options));
        assert_eq!(
            options.tc_arguments(),
            " tupdate 16000us alpha 0.1602 beta 3.1992 coupling_factor 2 step_thresh 1000us classic_protection 10 \
             drop_dequeue drop_on_overload split_gso"
        );
        let other: DualQueueOptions = "step=2ms,split-gso=off".parse().expect("valid");
        let both = options.with(other);
        assert_eq!((both.step, both.splits_aggregates, both.coupling), (other.step, Some(false), Some(2)));
        assert!(DualQueueOptions::default().is_default() && DualQueueOptions::default().tc_arguments().is_empty());
    }

    #[test]
    fn other_values_are_refused_with_the_range() {
        for (text, reason) in [
            ("", "NAME=VALUE"),
            ("coupling", "NAME=VALUE"),
            ("coupling=0", "1 to 255"),
            ("coupling=256", "1 to 255"),
            ("alpha=0", "0.004 to 255"),
            ("beta=nan", "0.004 to 255"),
            ("step=0s", "1us to 1s"),
            ("tupdate=2s", "1us to 1s"),
            ("protection=101", "0 to 100"),
            ("drop=never", "enqueue or dequeue"),
            ("quantum=1", "expected tupdate"),
        ] {
            let error = text.parse::<DualQueueOptions>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=,.0-9-]{0,40}") {
            if let Ok(options) = text.parse::<DualQueueOptions>() {
                prop_assert_eq!(options.to_string().parse(), Ok(options));
            }
        }

        #[test]
        fn gains_lead_back(alpha in 1..=MAX_GAIN) {
            let options = DualQueueOptions { alpha: Some(alpha), ..DualQueueOptions::default() };
            prop_assert_eq!(options.to_string().parse(), Ok(options));
        }
    }
}
