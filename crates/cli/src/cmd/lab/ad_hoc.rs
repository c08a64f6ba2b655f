//! Paths described in the command line: `linerate lab run --rate 10M --rtt 20ms`, `linerate test lab:rate=10M,rtt=20ms`.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_units::parse;

/// Name of a path that has no file.
pub(super) const NAME: &str = "ad-hoc";

/// Buffer of a link with a rate, unless one is given: that of a usual router.
const DEFAULT_BUFFER: &str = "1 BDP";

/// Packets that this buffer holds at least: TCP's first burst (RFC 6928), which a shorter one would always lose.
const MIN_DEFAULT_PACKETS: f64 = 10.0;

/// MTU of a link, unless one is given.
const DEFAULT_MTU: f64 = 1500.0;

/// Buffer of a link that follows a trace, on a path without delay.
const DEFAULT_TRACE_BUFFER: &str = "500 ms";

/// Properties of a path between two hosts over one link.
#[derive(Debug, Default, Args)]
#[group(id = "ad_hoc", multiple = true)]
pub(crate) struct AdHocPath {
    /// Rate of both directions, for a path without a file
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Rate towards far alone
    #[arg(long, value_name = "RATE")]
    up: Option<String>,
    /// Rate towards near alone
    #[arg(long, value_name = "RATE")]
    down: Option<String>,
    /// Trace of both directions instead of a rate: a file in mahimahi's format, a line for each packet of 1500 bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<String>,
    /// Trace towards far alone
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace_up: Option<String>,
    /// Trace towards near alone
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace_down: Option<String>,
    /// Round trip: half of it each direction
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,
    /// Jitter per direction, at most half of the round trip
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Random loss per direction, for example 0.1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<String>,
    /// Buffer in front of the link: a size, a time or a multiple of the bandwidth-delay product [default: 1 BDP,
    /// 10 packets at least]
    #[arg(long, value_name = "BUFFER")]
    buffer: Option<String>,
    /// Queueing discipline of that buffer.
    #[arg(
        long,
        value_name = "NAME",
        help = "Queueing discipline of that buffer: fifo, fq_codel, codel, cake, pie, fq_pie, red or sfq"
    )]
    queue: Option<String>,
    /// MTU of the link
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
}

impl AdHocPath {
    /// Reads `KEY=VALUE,KEY=VALUE`; `None` where the text is a name or a file.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (first, _) = text.split_once('=')?;
        // A file may have any name, and a value may be a file.
        let is_file = text.contains('/') && Self::default().property(first).is_none();
        (!is_file).then(|| {
            let mut path = Self::default();
            for pair in text.split(',') {
                path.set(pair)?;
            }
            Ok(path)
        })
    }

    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' has no value: write KEY=VALUE"))?;
        let field = self.property(key).ok_or_else(|| {
            format!(
                "unknown property '{}' of a path (expected one of rate, up, down, trace, trace-up, trace-down, rtt, jitter, \
                 loss, duplicate, buffer, queue, mtu)",
                key.trim()
            )
        })?;
        *field = Some(value.trim().to_owned());
        Ok(())
    }

    /// Property of this key; `None` where there is none.
    fn property(&mut self, key: &str) -> Option<&mut Option<String>> {
        Some(match key.trim() {
            "rate" => &mut self.rate,
            "up" => &mut self.up,
            "down" => &mut self.down,
            "trace" => &mut self.trace,
            "trace-up" => &mut self.trace_up,
            "trace-down" => &mut self.trace_down,
            "rtt" => &mut self.rtt,
            "jitter" => &mut self.jitter,
            "loss" => &mut self.loss,
            "duplicate" => &mut self.duplicate,
            "buffer" => &mut self.buffer,
            "queue" => &mut self.queue,
            "mtu" => &mut self.mtu,
            _ => return None,
        })
    }

    /// Buffer of a path that names none: a bandwidth-delay product where there is one. A trace needs some.
    fn default_buffer(&self) -> Option<&'static str> {
        let has_trace = self.trace.is_some() || self.trace_up.is_some() || self.trace_down.is_some();
        let is_limited = |own: &Option<String>, trace: &Option<String>| own.is_some() || trace.is_some();
        let has_rate = self.rate.is_some()
            || self.trace.is_some()
            || (is_limited(&self.up, &self.trace_up) && is_limited(&self.down, &self.trace_down));
        match self.rtt {
            _ if self.queue.is_some() => None,
            Some(_) if has_rate => Some(DEFAULT_BUFFER),
            _ if has_trace => Some(DEFAULT_TRACE_BUFFER),
            _ => None,
        }
    }

    /// Buffer of one direction, whose rate is `own` or that of both.
    fn buffer(&self, own: Option<&String>) -> Option<String> {
        if self.buffer.is_some() {
            return self.buffer.clone();
        }
        let default = self.default_buffer()?;
        let is_short = default == DEFAULT_BUFFER && self.has_short_product(own);
        Some(if is_short { format!("{MIN_DEFAULT_PACKETS} packets") } else { default.to_owned() })
    }

    /// True when the bandwidth-delay product of a direction is smaller than a usual burst. Wrong values are errors elsewhere.
    fn has_short_product(&self, own: Option<&String>) -> bool {
        let rate = own.or(self.rate.as_ref()).and_then(|rate| crate::values::rate(rate).ok());
        let round_trip = self.rtt.as_ref().and_then(|time| parse::time(time).ok());
        let mtu = self.mtu.as_ref().and_then(|mtu| mtu.parse().ok()).unwrap_or(DEFAULT_MTU);
        let (Some(rate), Some(round_trip)) = (rate, round_trip) else { return false };
        (rate * round_trip).as_f64() < MIN_DEFAULT_PACKETS * mtu
    }

    /// The properties as `lab:` takes them; `None` where a value could not be separated from what surrounds it there.
    pub(super) fn properties(&self) -> Option<String> {
        let values = [
            ("rate", &self.rate),
            ("up", &self.up),
            ("down", &self.down),
            ("trace", &self.trace),
            ("trace-up", &self.trace_up),
            ("trace-down", &self.trace_down),
            ("rtt", &self.rtt),
            ("jitter", &self.jitter),
            ("loss", &self.loss),
            ("duplicate", &self.duplicate),
            ("buffer", &self.buffer),
            ("queue", &self.queue),
            ("mtu", &self.mtu),
        ];
        let pair = |(key, value): (&str, &Option<String>)| {
            let value = value.as_ref()?;
            // Blanks are only in front of units.
            let value = if key.starts_with("trace") { value.clone() } else { value.replace(' ', "") };
            Some(format!("{key}={value}"))
        };
        let pairs: Vec<String> = values.into_iter().filter_map(pair).collect();
        let is_plain = |letter: char| letter.is_alphanumeric() || "=.%/_-+~".contains(letter);
        let is_one_word = !pairs.is_empty() && pairs.iter().all(|pair| pair.chars().all(is_plain));
        is_one_word.then(|| pairs.join(","))
    }

    /// Returns the description of the path.
    pub(super) fn description(&self) -> Result<String, String> {
        let mut text = "[host.near]\n[host.far]\n\n[[link]]\nbetween = [\"near\", \"far\"]\n".to_owned();
        let mut line = |key: &str, value: &Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {}", toml_string(value));
            }
        };
        line("rate", &self.rate.as_deref().map(rate).transpose()?);
        line("delay", &self.rtt.as_deref().map(half).transpose()?);
        line("jitter", &self.jitter.as_deref().map(time).transpose()?);
        line("loss", &self.loss);
        line("duplicate", &self.duplicate);
        line("queue", &self.queue);
        line("trace", &self.trace);
        if let Some(mtu) = &self.mtu {
            let mtu: u32 = mtu.parse().map_err(|_| format!("the MTU '{mtu}' is not a number of bytes"))?;
            let _ = writeln!(text, "mtu = {mtu}");
        }
        let directions = [("forward", &self.up, &self.trace_up), ("backward", &self.down, &self.trace_down)];
        let is_limited = directions
            .map(|(_, own, trace)| own.is_some() || trace.is_some() || self.rate.is_some() || self.trace.is_some());
        // A buffer is that of a limited direction.
        let buffers = directions.map(|(_, own, _)| {
            self.buffer(own.as_ref()).map(|buffer| format!("buffer = {}\n", toml_string(&buffer))).unwrap_or_default()
        });
        let directions_differ = is_limited[0] != is_limited[1] || buffers[0] != buffers[1];
        if !directions_differ {
            text.push_str(&buffers[0]);
        }
        for (((direction, own, trace), is_limited), buffer) in directions.into_iter().zip(is_limited).zip(&buffers) {
            let mut keys = String::new();
            if let Some(own) = own {
                let _ = writeln!(keys, "rate = {}", toml_string(&rate(own)?));
            }
            if let Some(trace) = trace {
                let _ = writeln!(keys, "trace = {}", toml_string(trace));
            }
            if directions_differ && is_limited {
                keys.push_str(buffer);
            }
            if !keys.is_empty() {
                let _ = write!(text, "[link.{direction}]\n{keys}");
            }
        }
        Ok(text)
    }
}

/// A rate in the description's notation.
fn rate(text: &str) -> Result<String, String> {
    let rate = crate::values::rate(text)?;
    Ok(format!("{:.0} bit/s", rate.bits_per_second()))
}

fn time(text: &str) -> Result<String, String> {
    microseconds(parse::time(text).map_err(|error| error.to_string())?)
}

/// Half of a round trip: the delay of one direction.
fn half(text: &str) -> Result<String, String> {
    microseconds(parse::time(text).map_err(|error| error.to_string())? / 2)
}

fn microseconds(time: Duration) -> Result<String, String> {
    if time.as_nanos().is_multiple_of(1000) {
        Ok(format!("{} us", time.as_micros()))
    } else {
        Err(format!("{time:?} per direction is no whole number of microseconds"))
    }
}

/// Text in quotes; what is not printable cannot end them.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use linerate_lab::bounds::bounds;
    use linerate_lab::description::PathDescription;
    use linerate_model::direction::Direction;

    use super::*;

    fn described(text: &str) -> PathDescription {
        let path = AdHocPath::parse(text).expect("not a name").expect("properties");
        PathDescription::parse(NAME, &path.description().expect("a description")).expect("a path")
    }

    #[test]
    fn properties_become_a_path() {
        let path = described("rate=10M,rtt=20ms,loss=0.1%,buffer=500ms");
        let up = bounds(&path, Direction::Up);
        assert_eq!(up.base_rtt.as_millis(), 20);
        assert!((up.bottleneck.expect("a link").rate.bits_per_second() - 1e7).abs() < 1.0);
        let path = described("up=1M,down=10Mbit,rtt=30msec,queue=fq_codel,mtu=1400");
        assert!((bounds(&path, Direction::Up).bottleneck.expect("a link").rate.bits_per_second() - 1e6).abs() < 1.0);
        assert!((bounds(&path, Direction::Down).bottleneck.expect("a link").rate.bits_per_second() - 1e7).abs() < 1.0);
    }

    #[test]
    fn a_default_buffer_holds_a_burst() {
        for (text, up, down) in [
            ("rate=1M,rtt=10ms", "10 packets", "10 packets"),
            ("rate=10M,rtt=20ms", "1 BDP", "1 BDP"),
            ("up=1M,down=100M,rtt=20ms", "10 packets", "1 BDP"),
            ("rate=1M,rtt=10ms,mtu=100", "1 BDP", "1 BDP"),
            ("rate=1M,rtt=10ms,buffer=2 BDP", "2 BDP", "2 BDP"),
        ] {
            let path = AdHocPath::parse(text).expect("not a name").expect("properties");
            let buffers = [&path.up, &path.down].map(|own| path.buffer(own.as_ref()).expect("a buffer"));
            assert_eq!(buffers, [up, down], "{text}");
            assert_eq!(described(text).links.len(), 1, "{text}");
        }
    }

    #[test]
    fn properties_are_found_again() {
        let path = AdHocPath { rate: Some("1 Mbit/s".into()), rtt: Some("10 ms".into()), ..AdHocPath::default() };
        let text = path.properties().expect("one word");
        assert_eq!(text, "rate=1Mbit/s,rtt=10ms");
        let again = AdHocPath::parse(&text).expect("not a name").expect("properties");
        assert_eq!(again.description().expect("text"), path.description().expect("text"));
        let trace = |file: &str| AdHocPath { trace: Some(file.to_owned()), ..AdHocPath::default() }.properties();
        assert_eq!(trace("/tmp/x.trace").as_deref(), Some("trace=/tmp/x.trace"));
        assert_eq!((trace("a,b"), trace("a b"), AdHocPath::default().properties()), (None, None, None));
    }

    #[test]
    fn traces_replace_rates() {
        let text = |text: &str| AdHocPath::parse(text).expect("not a name").and_then(|path| path.description());
        let traced = text("trace-up=/tmp/up.trace,down=10M").expect("a description");
        assert!(traced.ends_with("buffer = \"500 ms\"\n[link.forward]\ntrace = \"/tmp/up.trace\"\n[link.backward]\nrate = \"10000000 bit/s\"\n"), "{traced}");
        let traced = text("trace-down=d,rtt=20ms").expect("a description");
        assert!(traced.ends_with("[link.backward]\ntrace = \"d\"\nbuffer = \"500 ms\"\n"), "{traced}");
        assert!(AdHocPath::parse("./odd=name.toml").is_none());
        let read =
            |description: &str| PathDescription::parse_with_traces(NAME, description, &mut |_| Ok("1\n".to_owned()));
        assert_eq!(read(&traced).expect("a path").links[0].forward.rate, None);
        let both = read(&text("trace=x,rtt=20ms").expect("a description")).expect("a path");
        assert!((both.links[0].backward.rate.expect("the mean").bits_per_second() - 12_112_000.0).abs() < 1.0);
    }

    #[test]
    fn names_and_errors_are_told_apart() {
        assert!(AdHocPath::parse("xs4all-adsl").is_none());
        for (text, reason) in [("rat=1M", "rat"), ("rate=1M,rtt", "no value"), ("rate=10", "unit"), ("rtt=7", "unit")] {
            let parsed = AdHocPath::parse(text).expect("not a name");
            let error = parsed.and_then(|path| path.description()).expect_err("not a path");
            assert!(error.contains(reason), "{text}: {error}");
        }
        let quotes = AdHocPath::parse("loss=\"\n[host.x]").expect("not a name").expect("properties");
        assert!(PathDescription::parse(NAME, &quotes.description().expect("text")).is_err());
    }
}
