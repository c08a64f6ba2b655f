//! Text becomes quantities; what cannot be one is told where and why.

use core::ops::Range;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, parse};
use toml::Spanned;

use super::error::Problem;
use super::raw::{Quantity, no_unit};
use super::types::Buffer;

/// What a kind of quantity looks like, for the way out.
const RATE: &str = "write a rate with its unit, such as \"10 Gbit/s\", \"240 kbit/s\" or \"5 MB/s\"";
const SIZE: &str = "write a size with its unit, such as \"1.5 MB\" (powers of 1000), \"64 KiB\" (powers of 1024) or \
                    \"1400 B\"";
const TIME: &str = "write a time with its unit, such as \"58.5 ms\", \"2 s\" or \"250 us\"";
const SHARE: &str = "write a share from \"0 %\" to \"100 %\", such as \"0.1 %\"";
const BUFFER: &str = "write \"1.5 MB\", \"45 packets\", \"50 ms\", \"2 BDP\" or \"unlimited\"";

/// Nothing in the lab lasts longer; larger numbers are slips.
const LONGEST_TIME: Duration = Duration::from_secs(60 * 60);

/// The kernel's emulation counts with 32 bits of 64 ns.
const LONGEST_DELAY: Duration = Duration::from_secs(270);

/// The slowest rate that the kernel's shapers hold, one byte a second.
const LOWEST_RATE: f64 = 8.0;

/// The fastest: what its 64-bit rates in byte/s are documented for, with room.
const HIGHEST_RATE: f64 = 1e13;

/// What a quantity is called in a message, and its text.
pub(super) struct Named<'a> {
    pub(super) what: &'a str,
    pub(super) text: &'a Spanned<Quantity>,
}

impl Named<'_> {
    fn written(&self) -> &str {
        &self.text.get_ref().0
    }

    fn span(&self) -> Range<usize> {
        self.text.span()
    }

    fn problem(&self, why: &str, advice: &str) -> Problem {
        Problem::new(self.span(), format!("{} '{}' {why}", self.what, self.written()), advice)
    }

    /// Refuses a number to which no unit, or only a prefix, was written.
    fn require_unit(&self, last_letters: &[char], advice: &str) -> Result<(), Problem> {
        let text = self.written();
        let is_number = text.starts_with(|c: char| c.is_ascii_digit());
        if is_number && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(Problem::new(self.span(), format!("{}: {}", self.what, no_unit(text)), advice));
        }
        if is_number && !text.ends_with(last_letters) {
            return Err(self.problem("has no unit that fits", advice));
        }
        Ok(())
    }

    /// A rate above zero.
    pub(super) fn rate(&self) -> Result<BitRate, Problem> {
        self.require_unit(&['s', 't'], RATE)?;
        let rate = parse::rate(self.written()).map_err(|_| self.problem("is not a rate", RATE))?;
        if !(LOWEST_RATE..=HIGHEST_RATE).contains(&rate.bits_per_second()) {
            return Err(self.problem("is not between 8 bit/s and 10 Tbit/s", RATE));
        }
        Ok(rate)
    }

    /// A size above zero.
    pub(super) fn size(&self) -> Result<ByteCount, Problem> {
        self.require_unit(&['B'], SIZE)?;
        let size = parse::size(self.written()).map_err(|_| self.problem("is not a size", SIZE))?;
        if size.is_zero() {
            return Err(self.problem("is nothing", SIZE));
        }
        Ok(size)
    }

    /// A time of at most an hour, possibly zero.
    pub(super) fn time(&self) -> Result<Duration, Problem> {
        self.require_unit(&['s', 'm', 'h', 'n'], TIME)?;
        let time = parse::time(self.written()).map_err(|_| self.problem("is not a time", TIME))?;
        if time > LONGEST_TIME {
            return Err(self.problem("is more than an hour", TIME));
        }
        Ok(time)
    }

    /// A delay of a link: whole microseconds, which is what `tc` reads, and no longer than what the kernel holds.
    pub(super) fn delay(&self) -> Result<Duration, Problem> {
        let time = self.time()?;
        if time > LONGEST_DELAY {
            return Err(self.problem("is more than the 270 s that the kernel's emulation holds", TIME));
        }
        if time.subsec_nanos() % 1000 != 0 {
            return Err(self.problem("is not in whole microseconds", "write it with no fraction of a microsecond"));
        }
        Ok(time)
    }

    /// A time above zero.
    pub(super) fn positive_time(&self) -> Result<Duration, Problem> {
        let time = self.time()?;
        if time.is_zero() {
            return Err(self.problem("is no time at all", TIME));
        }
        Ok(time)
    }

    /// A share of at most everything.
    pub(super) fn share(&self) -> Result<Ratio, Problem> {
        self.require_unit(&['%'], SHARE)?;
        let share = parse::ratio(self.written()).map_err(|_| self.problem("is not a share", SHARE))?;
        if share.get() > 1.0 {
            return Err(self.problem("is more than everything", SHARE));
        }
        Ok(share)
    }

    /// A buffer; `None` for one without a limit.
    pub(super) fn buffer(&self) -> Result<Option<Buffer>, Problem> {
        let text = self.written();
        if text == "unlimited" {
            return Ok(None);
        }
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = number.trim().parse().ok().filter(|packets| (1..=MOST_PACKETS).contains(packets));
            let packets = packets.ok_or_else(|| self.problem("is not between 1 and 4000000 packets", BUFFER))?;
            return Ok(Some(Buffer::Packets(PacketCount::new(packets))));
        }
        if let Some(number) = text.strip_suffix("BDP") {
            let multiple = number.trim().parse().ok().and_then(Ratio::new).filter(|multiple| multiple.get() > 0.0);
            let multiple = multiple.ok_or_else(|| self.problem("is not a multiple of the BDP", BUFFER))?;
            return Ok(Some(Buffer::Multiple(multiple)));
        }
        self.require_unit(&['B', 's', 'm', 'h', 'n'], BUFFER)?;
        if text.ends_with('B') { self.size().map(Buffer::Bytes) } else { self.positive_time().map(Buffer::Time) }
            .map(Some)
            .map_err(|problem| Problem { advice: BUFFER.to_owned(), ..problem })
    }
}

/// More packets than any queue of the kernel was ever given; larger numbers are slips.
const MOST_PACKETS: u64 = 4_000_000;
