//! What `--autorate` is told.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_shape::autorate::{Bounds, Law};
use linerate_shape::verify::Both;
use linerate_units::{BitRate, Port};

use crate::app;
use crate::cmd::shape::error::ShapeError;

/// Where linerate's servers listen unless told otherwise.
const SERVER_PORT: u16 = 5201;

/// Following a line whose capacity changes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AutorateArguments {
    /// Follow the line: change the rates as its capacity changes, until interrupted
    #[arg(long)]
    pub(crate) autorate: bool,
    /// Never send slower than this
    #[arg(long, value_name = "RATE", value_parser = app::rate, requires = "autorate")]
    pub(crate) min_up: Option<BitRate>,
    /// Never send faster than this
    #[arg(long, value_name = "RATE", value_parser = app::rate, requires = "autorate")]
    pub(crate) max_up: Option<BitRate>,
    /// Never receive slower than this
    #[arg(long, value_name = "RATE", value_parser = app::rate, requires = "autorate")]
    pub(crate) min_down: Option<BitRate>,
    /// Never receive faster than this
    #[arg(long, value_name = "RATE", value_parser = app::rate, requires = "autorate")]
    pub(crate) max_down: Option<BitRate>,
    /// Who answers probes: an address, or `linerate:HOST[:PORT]`, which tells the two directions apart; may be repeated
    /// [default: well-known public resolvers]
    #[arg(long, value_name = "ADDRESS", value_parser = reflector, requires = "autorate")]
    pub(crate) reflector: Vec<ReflectorAddress>,
    /// Write what was known and what was made of it to this file, tab-separated; begun anew at 64 MiB
    #[arg(long, value_name = "FILE", requires = "autorate")]
    pub(crate) log: Option<PathBuf>,
    /// At the end, draw the log as a page
    #[arg(long, value_name = "FILE", requires = "log")]
    pub(crate) plot: Option<PathBuf>,
    /// How rates are chosen
    #[arg(long, value_name = "LAW", default_value = "linerate", requires = "autorate")]
    pub(crate) law: LawName,
    /// Stop following after this time
    #[arg(long = "for", value_name = "TIME", value_parser = app::duration, requires = "autorate")]
    pub(crate) ending_after: Option<Duration>,
    /// Take the shaper down at the end, instead of leaving it with its last rates
    #[arg(long, requires = "autorate")]
    pub(crate) off_at_end: bool,
}

/// The laws by which rates are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LawName {
    /// By estimates of the capacity
    #[default]
    Linerate,
    /// By the law of cake-autorate, to compare with
    CakeAutorate,
}

/// Who answers probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReflectorAddress {
    /// A host that answers pings: round trips only.
    Echo(IpAddr),
    /// A linerate server: one-way delays.
    Server(String, Port),
}

impl fmt::Display for ReflectorAddress {
    /// As the option takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo(address) => address.fmt(f),
            Self::Server(host, port) if host.contains(':') => write!(f, "linerate:[{host}]:{}", port.get()),
            Self::Server(host, port) => write!(f, "linerate:{host}:{}", port.get()),
        }
    }
}

/// Well-known public resolvers that answer pings everywhere; several of each of four operators, so that one operator's
/// bad day is not taken for the line's. The first six are probed at first, the others take the place of those that fail.
const PUBLIC: [[u8; 4]; 12] = [
    [1, 1, 1, 1],
    [8, 8, 8, 8],
    [9, 9, 9, 9],
    [208, 67, 222, 222],
    [1, 0, 0, 1],
    [8, 8, 4, 4],
    [9, 9, 9, 10],
    [208, 67, 220, 220],
    [149, 112, 112, 112],
    [149, 112, 112, 10],
    [208, 67, 222, 220],
    [208, 67, 220, 222],
];

/// What following is done by.
#[derive(Clone, Debug)]
pub(crate) struct AutorateSettings {
    /// How rates are chosen.
    pub(crate) law: Law,
    /// Within what they are held. A base of `None` is found out, from 2 Mbit/s on.
    pub(crate) bounds: Both<Bounds>,
    /// Who answers, best first. The first six are probed, the others are in reserve.
    pub(crate) reflectors: Vec<ReflectorAddress>,
    /// Where lines of the log go.
    pub(crate) log: Option<PathBuf>,
    /// Where the page of the log goes at the end.
    pub(crate) plot: Option<PathBuf>,
    /// When it ends by itself.
    pub(crate) time: Option<Duration>,
    /// Whether the shaper is taken down at the end.
    pub(crate) off_at_end: bool,
    /// Whether each second is a line on the standard error where that is no terminal.
    pub(crate) verbose: bool,
}

impl AutorateArguments {
    /// The words of an autorate that goes on at each boot; those of a single run are refused.
    pub(crate) fn lasting_words(&self) -> Result<Vec<String>, ShapeError> {
        if self.ending_after.is_some() || self.off_at_end || self.plot.is_some() {
            return Err(ShapeError::unable(
                "following the line at each boot: --for, --off-at-end and --plot are about one run",
            )
            .with_advice("leave them out; `linerate shape plot LOG` draws the log at any time"));
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
                ShapeError::unable(format!("logging to {}: {}", log.display(), linerate_sys::describe_os_error(&cause)))
            })?;
            pair("log", whole.display().to_string());
        }
        if let Some(name) = self.law.to_possible_value().filter(|_| self.law != LawName::default()) {
            pair("law", name.get_name().to_owned());
        }
        Ok(words)
    }

    /// The settings, with the rates that the user gave for the line as those to begin with, and to go back to when nobody
    /// sends.
    pub(crate) fn settings(&self, given: Both<Option<BitRate>>, verbose: bool) -> AutorateSettings {
        let bounds = |minimum, base, maximum| Bounds { minimum, base, maximum };
        let public = || PUBLIC.into_iter().map(|address| ReflectorAddress::Echo(IpAddr::from(address))).collect();
        AutorateSettings {
            law: match self.law {
                LawName::Linerate => Law::Linerate,
                LawName::CakeAutorate => Law::CakeAutorate,
            },
            bounds: Both {
                up: bounds(self.min_up, given.up, self.max_up),
                down: bounds(self.min_down, given.down, self.max_down),
            },
            reflectors: if self.reflector.is_empty() { public() } else { self.reflector.clone() },
            log: self.log.clone(),
            plot: self.plot.clone(),
            time: self.ending_after,
            off_at_end: self.off_at_end,
            verbose,
        }
    }
}

/// `ADDRESS`, `linerate:HOST`, `linerate:HOST:PORT`, `linerate:[IPv6]:PORT`.
fn reflector(text: &str) -> Result<ReflectorAddress, String> {
    let advice = "write an IP address, or linerate:HOST[:PORT] for a linerate server";
    let Some(server) = text.strip_prefix("linerate:") else {
        return text.parse().map(ReflectorAddress::Echo).map_err(|_| advice.to_owned());
    };
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None if server.matches(':').count() == 1 => {
            server.split_once(':').map_or((server, None), |(h, p)| (h, Some(p)))
        }
        None => (server, None),
    };
    let port = match port {
        Some(port) => app::port(port)?,
        None => Port::new(SERVER_PORT).ok_or_else(|| advice.to_owned())?,
    };
    if host.is_empty() { Err(advice.to_owned()) } else { Ok(ReflectorAddress::Server(host.to_owned(), port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflectors_are_read() {
        let server = |host: &str, port| Ok(ReflectorAddress::Server(host.to_owned(), Port::new(port).expect("a port")));
        assert_eq!(reflector("192.0.2.1"), Ok(ReflectorAddress::Echo([192, 0, 2, 1].into())));
        assert!(matches!(reflector("2001:db8::1"), Ok(ReflectorAddress::Echo(IpAddr::V6(_)))));
        assert_eq!(reflector("linerate:far"), server("far", 5201));
        assert_eq!(reflector("linerate:far:5300"), server("far", 5300));
        assert_eq!(reflector("linerate:[2001:db8::1]:5300"), server("2001:db8::1", 5300));
        assert_eq!(reflector("linerate:2001:db8::1"), server("2001:db8::1", 5201));
        for wrong in ["", "far", "linerate:", "linerate::5300", "linerate:far:0", "linerate:far:x"] {
            assert!(reflector(wrong).is_err(), "{wrong:?}");
        }
    }

    #[derive(Debug, clap::Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        autorate: AutorateArguments,
    }

    fn parsed(text: &str) -> AutorateArguments {
        <Line as clap::Parser>::try_parse_from(text.split_whitespace()).expect("an autorate").autorate
    }

    #[test]
    fn what_goes_on_at_each_boot_leads_back() {
        let text = "--autorate --min-up 1000000 --max-down 40000000 --reflector 192.0.2.1 --reflector linerate:[2001:db8::1]:5300 \
                    --log /var/log/line --law cake-autorate";
        let words = parsed(text).lasting_words().expect("words");
        assert_eq!(words.join(" "), text);
        assert_eq!(parsed(&words.join(" ")).lasting_words().expect("words"), words);
        assert_eq!(parsed("--autorate").lasting_words().expect("words"), ["--autorate"]);
        for once in ["--autorate --for 5s", "--autorate --off-at-end", "--autorate --log l --plot p"] {
            assert!(parsed(once).lasting_words().is_err(), "{once}");
        }
    }

    #[test]
    fn without_reflectors_public_ones_are_taken() {
        let both = Both { up: None, down: Some(BitRate::from_bits_per_second(1e6)) };
        let settings = AutorateArguments::default().settings(both, false);
        assert_eq!((settings.reflectors.len(), settings.law), (PUBLIC.len(), Law::Linerate));
        assert_eq!((settings.bounds.up.base, settings.bounds.down.base), (None, both.down));
    }
}
