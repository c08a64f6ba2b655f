//! Machine on which the figures were measured.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// Description of the machine, with the date.
#[derive(Debug)]
pub(crate) struct TestMachine {
    /// Processor model.
    pub(crate) processor: String,
    /// Number of processors that a program may use.
    pub(crate) processors: usize,
    /// Kernel release.
    pub(crate) kernel: String,
    /// Default congestion control of TCP.
    pub(crate) congestion_control: String,
    /// Date as year, month and day.
    pub(crate) date: String,
}

impl TestMachine {
    /// Reads the description from /proc; `date` overrides the system's.
    pub(crate) fn read(date: Option<String>) -> Result<Self> {
        let processors = fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the system's date is before 1970")?;
        Ok(Self {
            processor: processor_model(&processors),
            processors: thread::available_parallelism()?.get(),
            kernel: read_line("/proc/sys/kernel/osrelease")?,
            congestion_control: read_line("/proc/sys/net/ipv4/tcp_congestion_control")?,
            date: date.unwrap_or_else(|| date_of(now.as_secs() / 86_400)),
        })
    }
}

fn read_line(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(text.trim().to_owned())
}

/// Returns the model in the text of /proc/cpuinfo; some platforms name none.
fn processor_model(text: &str) -> String {
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("not named by the kernel", |(_, name)| name.trim()).to_owned()
}

/// Returns the Gregorian date `days` after 1970-01-01 in ISO 8601 form.
fn date_of(days: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut remaining) = (1970, days);
    while remaining >= 365 + u64::from(is_leap(year)) {
        remaining -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while remaining >= lengths[month] {
        remaining -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, remaining + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date_of(0), "1970-01-01");
        assert_eq!(date_of(58), "1970-02-28");
        assert_eq!(date_of(11_016), "2000-02-29");
        assert_eq!(date_of(20_453), "2025-12-31");
        assert_eq!(date_of(20_454), "2026-01-01");
    }

    #[test]
    fn the_processor_is_named_or_unknown() {
        assert_eq!(processor_model("processor\t: 0\nmodel name\t: A Processor @ 2 GHz\n"), "A Processor @ 2 GHz");
        assert_eq!(processor_model("processor\t: 0\n"), "not named by the kernel");
    }
}
