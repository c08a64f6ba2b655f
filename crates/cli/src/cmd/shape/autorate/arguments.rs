//! Options of `--autorate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_operate::shaping::autorate::settings::{
    AutorateSettings, ReflectorAddress, public_reflectors, public_timestamp_reflectors,
};
use linerate_operate::shaping::error::ShapeError;
use linerate_shape::autorate::{AutorateBounds, ControlLaw};
use linerate_shape::verify::PerDirection;
use linerate_units::BitRate;

use crate::values;

/// Options for links of variable capacity.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AutorateArguments {
    /// Adapt the rates to the link's capacity until interrupted
    #[arg(long)]
    pub(crate) autorate: bool,
    /// Minimum send rate
    #[arg(long, value_name = "RATE", value_parser = values::rate, requires = "autorate")]
    pub(crate) min_up: Option<BitRate>,
    /// Maximum send rate
    #[arg(long, value_name = "RATE", value_parser = values::rate, requires = "autorate")]
    pub(crate) max_up: Option<BitRate>,
    /// Minimum receive rate
    #[arg(long, value_name = "RATE", value_parser = values::rate, requires = "autorate")]
    pub(crate) min_down: Option<BitRate>,
    /// Maximum receive rate
    #[arg(long, value_name = "RATE", value_parser = values::rate, requires = "autorate")]
    pub(crate) max_down: Option<BitRate>,
    /// Reflector for probes: an address; `timestamp:ADDRESS` (ICMP timestamps) or `linerate:HOST[:PORT]`, which measure each
    /// direction separately; may be repeated [default: well-known public resolvers]
    #[arg(long, value_name = "ADDRESS", requires = "autorate")]
    pub(crate) reflector: Vec<ReflectorAddress>,
    /// Public resolvers that answer ICMP timestamp requests, so that each direction is measured separately
    #[arg(long, requires = "autorate", conflicts_with = "reflector")]
    pub(crate) timestamps: bool,
    /// Log the controller's inputs and decisions to this file, tab-separated; rotated at 64 MiB
    #[arg(long, value_name = "FILE", requires = "autorate")]
    pub(crate) log: Option<PathBuf>,
    /// Draw the log as an HTML page at the end
    #[arg(long, value_name = "FILE", requires = "log")]
    pub(crate) plot: Option<PathBuf>,
    /// Control law for the rates
    #[arg(long, value_name = "LAW", default_value = "linerate", requires = "autorate")]
    pub(crate) law: ControlLawName,
    /// Stop adapting after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration, requires = "autorate")]
    pub(crate) run_time: Option<Duration>,
    /// Remove the shaper at the end instead of keeping its last rates
    #[arg(long, requires = "autorate")]
    pub(crate) off_at_end: bool,
}

/// Control laws for the rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControlLawName {
    /// Estimate the capacity
    #[default]
    Linerate,
    /// Law of cake-autorate, for comparison
    CakeAutorate,
}

impl AutorateArguments {
    /// Arguments of an autorate that runs at each boot; options of a single run are refused.
    pub(crate) fn boot_arguments(&self) -> Result<Vec<String>, ShapeError> {
        if self.run_time.is_some() || self.off_at_end || self.plot.is_some() {
            return Err(ShapeError::impossible(
                "autorate at boot: --for, --off-at-end and --plot apply to a single run",
            )
            .with_advice("omit them; `linerate shape plot LOG` draws the log at any time"));
        }
        let mut words = vec!["--autorate".to_owned()];
        let mut pair = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        let rates = [
            ("min-up", self.min_up),
            ("max-up", self.max_up),
            ("min-down", self.min_down),
            ("max-down", self.max_down),
        ];
        for (name, rate) in rates {
            if let Some(rate) = rate {
                pair(name, format!("{:.0}", rate.bits_per_second()));
            }
        }
        for address in &self.reflector {
            pair("reflector", address.to_string());
        }
        if let Some(log) = &self.log {
            let whole = std::path::absolute(log).map_err(|cause| {
                ShapeError::impossible(format!(
                    "logging to {}: {}",
                    log.display(),
                    linerate_sys::describe_os_error(&cause)
                ))
            })?;
            pair("log", whole.display().to_string());
        }
        if let Some(name) = self.law.to_possible_value().filter(|_| self.law != ControlLawName::default()) {
            pair("law", name.get_name().to_owned());
        }
        if self.timestamps {
            words.push("--timestamps".to_owned());
        }
        Ok(words)
    }

    /// Settings, with the user's rates for the link as the start rates, to which the rates return when the link is
    /// idle.
    pub(crate) fn settings(&self, given: PerDirection<Option<BitRate>>) -> AutorateSettings {
        let bounds = |minimum, base, maximum| AutorateBounds { minimum, base, maximum };
        AutorateSettings {
            law: match self.law {
                ControlLawName::Linerate => ControlLaw::Linerate,
                ControlLawName::CakeAutorate => ControlLaw::CakeAutorate,
            },
            bounds: PerDirection {
                up: bounds(self.min_up, given.up, self.max_up),
                down: bounds(self.min_down, given.down, self.max_down),
            },
            reflectors: match (self.timestamps, self.reflector.is_empty()) {
                (true, _) => public_timestamp_reflectors(),
                (false, true) => public_reflectors(),
                (false, false) => self.reflector.clone(),
            },
            log: self.log.clone(),
            time: self.run_time,
            off_at_end: self.off_at_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    #[command(no_binary_name = true)]
    struct AutorateCommandLine {
        #[command(flatten)]
        autorate: AutorateArguments,
    }

    fn parsed(text: &str) -> AutorateArguments {
        <AutorateCommandLine as clap::Parser>::try_parse_from(text.split_whitespace()).expect("an autorate").autorate
    }

    #[test]
    fn arguments_for_boot_parse_back() {
        let text = "--autorate --min-up 1000000 --max-down 40000000 --reflector 192.0.2.1 --reflector linerate:[2001:db8::1]:5300 \
                    --log /var/log/line --law cake-autorate";
        let words = parsed(text).boot_arguments().expect("arguments");
        assert_eq!(words.join(" "), text);
        assert_eq!(parsed(&words.join(" ")).boot_arguments().expect("arguments"), words);
        assert_eq!(parsed("--autorate").boot_arguments().expect("arguments"), ["--autorate"]);
        for once in ["--autorate --for 5s", "--autorate --off-at-end", "--autorate --log l --plot p"] {
            assert!(parsed(once).boot_arguments().is_err(), "{once}");
        }
    }

    #[test]
    fn without_reflectors_public_ones_are_taken() {
        let both = PerDirection { up: None, down: Some(BitRate::from_bits_per_second(1e6)) };
        let settings = AutorateArguments::default().settings(both);
        assert_eq!((settings.reflectors.len(), settings.law), (public_reflectors().len(), ControlLaw::Linerate));
        assert_eq!((settings.bounds.up.base, settings.bounds.down.base), (None, both.down));
    }
}
