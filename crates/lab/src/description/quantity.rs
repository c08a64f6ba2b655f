//! Parses quantities; an invalid one is an error with location and reason.

use core::ops::Range;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, parse};
use toml::Spanned;

use super::error::DescriptionProblem;
use super::raw::{RawQuantity, no_unit};
use super::types::BufferSize;

/// Remedy for each kind of quantity.
const RATE_ADVICE: &str = "write a rate with its unit, such as \"10 Gbit/s\", \"240 kbit/s\" or \"5 MB/s\"";
const SIZE_ADVICE: &str = "write a size with its unit, such as \"1.5 MB\" (powers of 1000), \"64 KiB\" (powers of 1024) or \
                    \"1400 B\"";
const TIME_ADVICE: &str = "write a time with its unit, such as \"58.5 ms\", \"2 s\" or \"250 us\"";
const SHARE_ADVICE: &str = "write a share from \"0 %\" to \"100 %\", such as \"0.1 %\"";
const BUFFER_ADVICE: &str = "write \"1.5 MB\", \"45 packets\", \"50 ms\", \"2 BDP\" or \"unlimited\"";

/// Maximum duration in the lab; larger numbers are mistakes.
const MAX_TIME: Duration = Duration::from_secs(60 * 60);

/// Maximum delay: the kernel's emulation counts with 32 bits of 64 ns.
const MAX_DELAY: Duration = Duration::from_secs(270);

/// Minimum rate of the kernel's shapers, one byte a second.
const MIN_RATE: f64 = 8.0;

/// Maximum rate, well within the documented range of the kernel's 64-bit rates in byte/s.
const MAX_RATE: f64 = 1e13;

/// Name of a quantity in messages, and its text.
pub(super) struct NamedQuantity<'a> {
    pub(super) what: &'a str,
    pub(super) text: &'a Spanned<RawQuantity>,
}

impl NamedQuantity<'_> {
    fn written(&self) -> &str {
        &self.text.get_ref().0
    }

    fn span(&self) -> Range<usize> {
        self.text.span()
    }

    fn problem(&self, why: &str, advice: &str) -> DescriptionProblem {
        DescriptionProblem::new(self.span(), format!("{} '{}' {why}", self.what, self.written()), advice)
    }

    /// Rejects a number without a unit, or with a prefix only.
    fn require_unit(&self, last_letters: &[char], advice: &str) -> Result<(), DescriptionProblem> {
        let text = self.written();
        let is_number = text.starts_with(|c: char| c.is_ascii_digit());
        if is_number && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(DescriptionProblem::new(self.span(), format!("{}: {}", self.what, no_unit(text)), advice));
        }
        if is_number && !text.ends_with(last_letters) {
            return Err(self.problem("has no suitable unit", advice));
        }
        Ok(())
    }

    /// A rate above zero.
    pub(super) fn rate(&self) -> Result<BitRate, DescriptionProblem> {
        self.require_unit(&['s', 't'], RATE_ADVICE)?;
        let rate = parse::rate(self.written()).map_err(|_| self.problem("is not a rate", RATE_ADVICE))?;
        if !(MIN_RATE..=MAX_RATE).contains(&rate.bits_per_second()) {
            return Err(self.problem("is not between 8 bit/s and 10 Tbit/s", RATE_ADVICE));
        }
        Ok(rate)
    }

    /// A size above zero.
    pub(super) fn size(&self) -> Result<ByteCount, DescriptionProblem> {
        self.require_unit(&['B'], SIZE_ADVICE)?;
        let size = parse::size(self.written()).map_err(|_| self.problem("is not a size", SIZE_ADVICE))?;
        if size.is_zero() {
            return Err(self.problem("is zero", SIZE_ADVICE));
        }
        Ok(size)
    }

    /// A time of at most an hour, possibly zero.
    pub(super) fn time(&self) -> Result<Duration, DescriptionProblem> {
        self.require_unit(&['s', 'm', 'h', 'n'], TIME_ADVICE)?;
        let time = parse::time(self.written()).map_err(|_| self.problem("is not a time", TIME_ADVICE))?;
        if time > MAX_TIME {
            return Err(self.problem("is more than an hour", TIME_ADVICE));
        }
        Ok(time)
    }

    /// Delay of a link: whole microseconds, the resolution of `tc`, and no longer than the kernel's maximum.
    pub(super) fn delay(&self) -> Result<Duration, DescriptionProblem> {
        let time = self.time()?;
        if time > MAX_DELAY {
            return Err(self.problem("is more than the 270 s that the kernel's emulation holds", TIME_ADVICE));
        }
        if time.subsec_nanos() % 1000 != 0 {
            return Err(self.problem("is not in whole microseconds", "write it with no fraction of a microsecond"));
        }
        Ok(time)
    }

    /// A time above zero.
    pub(super) fn positive_time(&self) -> Result<Duration, DescriptionProblem> {
        let time = self.time()?;
        if time.is_zero() {
            return Err(self.problem("is zero", TIME_ADVICE));
        }
        Ok(time)
    }

    /// A share of at most 100 %.
    pub(super) fn share(&self) -> Result<Ratio, DescriptionProblem> {
        self.require_unit(&['%'], SHARE_ADVICE)?;
        let share = parse::ratio(self.written()).map_err(|_| self.problem("is not a share", SHARE_ADVICE))?;
        if share.get() > 1.0 {
            return Err(self.problem("is more than 100 %", SHARE_ADVICE));
        }
        Ok(share)
    }

    /// A buffer; `None` for one without a limit.
    pub(super) fn buffer(&self) -> Result<Option<BufferSize>, DescriptionProblem> {
        let text = self.written();
        if text == "unlimited" {
            return Ok(None);
        }
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = number.trim().parse().ok().filter(|packets| (1..=MAX_QUEUE_PACKETS).contains(packets));
            let packets = packets.ok_or_else(|| self.problem("is not between 1 and 4000000 packets", BUFFER_ADVICE))?;
            return Ok(Some(BufferSize::Packets(PacketCount::new(packets))));
        }
        if let Some(number) = text.strip_suffix("BDP") {
            let multiple = number.trim().parse().ok().and_then(Ratio::new).filter(|multiple| multiple.get() > 0.0);
            let multiple = multiple.ok_or_else(|| self.problem("is not a multiple of the BDP", BUFFER_ADVICE))?;
            return Ok(Some(BufferSize::Multiple(multiple)));
        }
        self.require_unit(&['B', 's', 'm', 'h', 'n'], BUFFER_ADVICE)?;
        if text.ends_with('B') {
            self.size().map(BufferSize::Bytes)
        } else {
            self.positive_time().map(BufferSize::Time)
        }
        .map(Some)
        .map_err(|problem| DescriptionProblem { advice: BUFFER_ADVICE.to_owned(), ..problem })
    }
}

/// Maximum number of packets of a queue; larger numbers are mistakes.
const MAX_QUEUE_PACKETS: u64 = 4_000_000;
