//! Options of the verification.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_operate::shaping::verify::VerifySettings;
use linerate_shape::verify::ShaperRequirements;
use linerate_units::{Port, Ratio};

use crate::cmd::measurement::FarArguments;
use crate::{completion, values};

/// Options of the verification.
#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Verify the shaper: measure latency under load without it, with it, and without it again, against a linerate
    /// server beyond the link (`linerate serve`, or `ssh:USER@HOST`). A shaper that does not pass is rolled back
    #[arg(long, value_name = "HOST", add = ArgValueCompleter::new(completion::hosts))]
    pub(crate) verify: Option<String>,
    /// Search for the highest rates that keep the delay low, by measurement, up to the given rates or else the measured
    /// capacity
    #[arg(long, requires = "verify")]
    pub(crate) find_rate: bool,
    /// Measure without the shaper only once: a third less time, but no detection of path changes
    #[arg(long, requires = "verify")]
    pub(crate) quick: bool,
    /// Measured time of each loaded phase, once its load is steady
    #[arg(long, default_value = "20s", value_parser = phase_time, value_name = "TIME", requires = "verify")]
    pub(crate) time: Duration,
    /// Time to probe the idle path
    #[arg(long, default_value = "10s", value_parser = phase_time, value_name = "TIME", requires = "verify")]
    pub(crate) idle: Duration,
    /// Port of the server [default: 5201; a free one on a host over ssh]
    #[arg(long, value_parser = values::port, requires = "verify")]
    pub(crate) port: Option<Port>,
    /// Minimum goodput in percent of the goodput without the shaper
    #[arg(long, default_value = "80", value_parser = percent, value_name = "PERCENT", requires = "verify")]
    pub(crate) goodput_floor: Ratio,
    /// Maximum delay that load may add (95th percentile) [default: aim at 30ms; if given, more ends with exit code 1]
    #[arg(long, value_parser = added_delay, value_name = "TIME", requires = "verify")]
    pub(crate) max_added: Option<Duration>,
    /// Options of hosts over ssh.
    #[command(flatten)]
    pub(crate) far: FarArguments,
}

impl VerifyArguments {
    /// Verification settings; `None` without `--verify`.
    pub(crate) fn settings(&self) -> Option<VerifySettings> {
        let host = self.verify.as_ref()?;
        Some(VerifySettings {
            target: self.far.target(host, self.port),
            idle: self.idle,
            time: self.time,
            quick: self.quick,
            profile: self.requirements(),
        })
    }

    fn requirements(&self) -> ShaperRequirements {
        let usual = ShaperRequirements::default();
        ShaperRequirements {
            goodput_floor: self.goodput_floor,
            largest_uplift: self.max_added.unwrap_or(usual.largest_uplift),
            is_uplift_asked: self.max_added.is_some(),
        }
    }
}

fn phase_time(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(2), Duration::from_secs(600), "the time must be 2s to 10min")
}

fn added_delay(text: &str) -> Result<Duration, String> {
    // A bare number could be meant as milliseconds.
    let delay = values::delay(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(10)).contains(&delay) {
        Ok(delay)
    } else {
        Err("the delay must be 1ms to 10s".to_owned())
    }
}

fn within(text: &str, least: Duration, most: Duration, rule: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    if (least..=most).contains(&time) { Ok(time) } else { Err(rule.to_owned()) }
}

fn percent(text: &str) -> Result<Ratio, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let share = number.filter(|number| (1.0..=100.0).contains(number)).and_then(Ratio::from_percent);
    share.ok_or_else(|| "the percentage must be 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct VerifyCommandLine {
        #[command(flatten)]
        verify: VerifyArguments,
    }

    fn settings(words: &[&str]) -> Result<Option<VerifySettings>, clap::Error> {
        let words = std::iter::once("shape").chain(words.iter().copied());
        Ok(VerifyCommandLine::try_parse_from(words)?.verify.settings())
    }

    #[test]
    fn without_a_host_nothing_is_verified() {
        assert!(settings(&[]).expect("fine").is_none());
        for alone in [&["--find-rate"][..], &["--quick"], &["--time", "5s"], &["--goodput-floor", "70"]] {
            assert!(settings(alone).is_err(), "{alone:?}");
        }
    }

    #[test]
    fn settings_follow_the_options() {
        let usual = settings(&["--verify", "far"]).expect("fine").expect("settings");
        assert_eq!((usual.target.host.as_str(), usual.target.port.get(), usual.quick), ("far", 5201, false));
        assert_eq!(usual.profile, ShaperRequirements::default());
        let words = ["--verify", "far", "--quick", "--time", "5", "--goodput-floor", "70%", "--max-added", "50ms"];
        let own = settings(&words).expect("fine").expect("settings");
        assert_eq!((own.quick, own.time, own.profile.largest_uplift.as_millis()), (true, Duration::from_secs(5), 50));
        assert!((own.profile.goodput_floor.get() - 0.7).abs() < 1e-12);
        for wrong in [["--goodput-floor", "0"], ["--goodput-floor", "101"], ["--time", "1s"], ["--max-added", "0s"]] {
            assert!(settings(&[&["--verify", "far"][..], &wrong].concat()).is_err(), "{wrong:?}");
        }
    }
}
