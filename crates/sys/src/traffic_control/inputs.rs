//! Values that the kernel has to be given so that it reports the same ones as before. Mostly these are equal; they
//! differ where a time is stored in other units than it is reported in, or a table is not reported at all.

use super::dump::TCA_STAB_BASE;
use super::volatile::changed;
use crate::netlink::{append_attribute, attribute, attributes, number};

/// `TCA_STAB_DATA`.
const TCA_STAB_DATA: u16 = 2;
/// Length of the kernel's tables of rates (`TC_RTAB_SIZE`).
const RATE_TABLE_BYTES: usize = 1024;
/// A tick of the packet scheduler, in nanoseconds (`PSCHED_SHIFT`).
const TICK: u128 = 64;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

type Outcome<T> = Result<T, String>;

/// Options of a discipline as the kernel has to be given them.
pub(super) fn of_discipline(kind: &str, options: &[u8]) -> Outcome<Vec<u8>> {
    // Codel stores times in units of 1024 ns, PIE in ticks of 64 ns; both truncate, and again when they report
    // microseconds.
    let codel = |time: u64| time * 1000 / 1024 * 1024 / 1000;
    let pie = |time: u64| time * 1000 / 64 * 64 / 1000;
    // Gains of dualpi2, 1/256 Hz, are stored as steps of a probability of 32 bits in 4 ns, truncated, and again when they
    // are reported.
    let gain = |given: u64| given * u64::from(u32::MAX) / 4_000_000_000 * 4_000_000_000 / u64::from(u32::MAX);
    match kind {
        "dualpi2" => times(options, &[5, 6], gain),
        "codel" => times(options, &[1, 3, 5], codel),
        "fq_codel" => times(options, &[1, 3, 7], codel),
        "pie" => times(options, &[1], pie),
        "fq_pie" => times(options, &[3], pie),
        // Kernels without connection tracking do not even take a zero.
        "cake" => changed(options, |number_of, content| {
            Ok((number_of != 11 || number(content, 0) != Some(0)).then(|| content.to_vec()))
        }),
        "sfq" => Ok(sfq_with_limit(options)),
        "tbf" => Ok(tbf_with_burst(options)),
        _ => Ok(options.to_vec()),
    }
}

/// Converts microseconds in these attributes to values that are reported as them.
fn times(options: &[u8], which: &[u16], told: impl Fn(u64) -> u64) -> Outcome<Vec<u8>> {
    changed(options, |kind, content| {
        let time = number(content, 0).filter(|_| which.contains(&kind));
        let given = time
            .and_then(|time| (time..=time.saturating_add(2)).find(|given| told(u64::from(*given)) == u64::from(time)));
        Ok(Some(given.map_or_else(|| content.to_vec(), |given| given.to_ne_bytes().to_vec())))
    })
}

/// An explicit limit of `sfq` caps its flows (`tc_sfq_qopt`: the limit third, the flows fifth), so where it has more
/// flows the limit is the default.
fn sfq_with_limit(options: &[u8]) -> Vec<u8> {
    let mut options = options.to_vec();
    if let (Some(limit), Some(flows)) = (number(&options, 8), number(&options, 16))
        && flows > limit
    {
        options[8..12].fill(0);
    }
    options
}

/// The bucket of `tbf` is reported as the time that it takes to fill, truncated: from that the kernel would make a
/// bucket that may be too small for the longest packet. It is given the bytes as well, the most that are reported as
/// that time.
fn tbf_with_burst(options: &[u8]) -> Vec<u8> {
    let find = |wanted| attribute(options, wanted);
    let Some(parameters) = find(1) else { return options.to_vec() };
    let mut result = options.to_vec();
    // tc_tbf_qopt: rate and peak rate (tc_ratespec, 12 bytes each, the overhead third, the rate last), limit, and the
    // times of the bucket and of the one for the peak rate.
    for (place, rate64, time, wanted) in [(0, 4, 28, 6), (12, 5, 32, 7)] {
        let rate = find(rate64).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_ne_bytes(*bytes));
        let rate = rate.or_else(|| number(parameters, place + 8).map(u64::from)).unwrap_or(0);
        let overhead = parameters.get(place + 2..place + 4).map_or(0, |bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
        let is_in_cells = parameters.get(place + 1).is_some_and(|layer| layer & 0xf == 2);
        if rate == 0 || is_in_cells {
            continue;
        }
        let ticks = u128::from(number(parameters, time).unwrap_or(0));
        // The largest bucket whose time is before the next tick.
        let bytes = ((ticks + 1) * TICK * u128::from(rate)).div_ceil(NANOS_PER_SECOND) - 1;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_sub(overhead.into());
        // Eight bytes always fit.
        let _ = append_attribute(&mut result, wanted, &bytes.to_ne_bytes());
    }
    result
}

/// A table of sizes as `tc` computes it from its beginning (`tc_sizespec`: two shifts of one byte each, two bytes of
/// alignment, overhead, link layer, smallest size, largest size, number of entries).
pub(super) fn size_table(base: &[u8]) -> Outcome<Vec<u8>> {
    let mut result = Vec::new();
    let append = |result: &mut Vec<u8>, kind, content: &[u8]| {
        append_attribute(result, kind, content).map_err(|cause| cause.to_string())
    };
    append(&mut result, TCA_STAB_BASE, base)?;
    let (Some(layer), Some(smallest), Some(entries)) = (number(base, 8), number(base, 12), number(base, 20)) else {
        return Ok(result);
    };
    let (Some(&[cell, size]), true) = (base.first_chunk::<2>(), entries <= 4096) else { return Ok(result) };
    let entry = |index: u32| {
        let length = u64::from(index + 1).checked_shl(cell.into()).unwrap_or(u64::MAX).max(smallest.into());
        let on_the_wire = if layer == 2 { length.div_ceil(48).saturating_mul(53) } else { length };
        u16::try_from(on_the_wire.checked_shr(size.into()).unwrap_or(0)).unwrap_or(u16::MAX)
    };
    if entries > 0 {
        let table: Vec<u8> = (0..entries).flat_map(|index| entry(index).to_ne_bytes()).collect();
        append(&mut result, TCA_STAB_DATA, &table)?;
    }
    Ok(result)
}

/// Options of a filter as the kernel has to be given them: policers want tables of rates, of which only the length
/// matters as the link layer is given.
pub(super) fn of_filter(kind: &str, options: &[u8]) -> Outcome<Vec<u8>> {
    let (actions, old) = match kind {
        "basic" => (3, 4),
        "bpf" | "cgroup" => (1, 2),
        "flow" => (9, 10),
        "flower" => (3, u16::MAX),
        "fw" => (4, 2),
        "matchall" => (2, u16::MAX),
        "u32" => (7, 6),
        _ => return Ok(options.to_vec()),
    };
    changed(options, |number, content| match number {
        _ if number == old => policer(content).map(Some),
        _ if number == actions => changed(content, |_, content| action(content).map(Some)).map(Some),
        _ => Ok(Some(content.to_vec())),
    })
}

fn action(content: &[u8]) -> Outcome<Vec<u8>> {
    let is_policer = attributes(content).any(|(kind, name)| kind & 0x3fff == 1 && name.starts_with(b"police"));
    changed(content, |number, content| match number {
        2 if is_policer => policer(content).map(Some),
        _ => Ok(Some(content.to_vec())),
    })
}

fn policer(options: &[u8]) -> Outcome<Vec<u8>> {
    let (mut has_rate, mut has_peak_rate) = (false, false);
    let mut result = changed(options, |kind, content| {
        let mut content = content.to_vec();
        if kind == 1 {
            // tc_police: tc_ratespec at 20 and 32, of which the first byte is the shift into the table.
            for (place, has) in [(20, &mut has_rate), (32, &mut has_peak_rate)] {
                *has = number(&content, place + 8).is_some_and(|rate| rate != 0);
                if let Some(shift) = content.get_mut(place).filter(|shift| *has && **shift == 0) {
                    *shift = 3;
                }
            }
        }
        Ok(Some(content))
    })?;
    for (kind, has) in [(2, has_rate), (3, has_peak_rate)] {
        if has {
            append_attribute(&mut result, kind, &[0; RATE_TABLE_BYTES]).map_err(|cause| cause.to_string())?;
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        append_attribute(&mut bytes, kind, content).expect("short");
        bytes
    }

    proptest! {
        /// A time reported by codel is reported again after it was given back.
        #[test]
        fn times_are_reported_again(time in 0_u32..100_000_000) {
            let kept = (u64::from(time) * 1000) >> 10;
            let reported = u32::try_from((kept << 10) / 1000).expect("small");
            let given = of_discipline("fq_codel", &one(1, &reported.to_ne_bytes())).expect("known");
            let given = number(&given, 4).expect("one number");
            prop_assert_eq!((u64::from(given) * 1000) >> 10, kept, "reported {}, given {}", reported, given);
        }

        #[test]
        fn gains_are_reported_again(gain in 1_u64..1 << 24) {
            let reported = |given: u64| given * u64::from(u32::MAX) / 4_000_000_000 * 4_000_000_000 / u64::from(u32::MAX);
            let first = u32::try_from(reported(gain)).expect("small");
            let given = of_discipline("dualpi2", &one(5, &first.to_ne_bytes())).expect("known");
            prop_assert_eq!(reported(number(&given, 4).expect("one number").into()), u64::from(first));
        }

        /// The restored bucket holds as much as the first one, and is reported as the same time.
        #[test]
        fn buckets_do_not_shrink(rate in 1_000_u32..1_250_000_000, burst in 1_u32..10_000_000) {
            let time = u128::from(burst) * NANOS_PER_SECOND / u128::from(rate) / TICK;
            prop_assume!(time < u128::from(u32::MAX));
            let ticks = u32::try_from(time).expect("small");
            let mut parameters = vec![0; 36];
            parameters[8..12].copy_from_slice(&rate.to_ne_bytes());
            parameters[28..32].copy_from_slice(&ticks.to_ne_bytes());
            let given = of_discipline("tbf", &one(1, &parameters)).expect("known");
            let bytes = attributes(&given).find(|(kind, _)| *kind == 6).and_then(|(_, bytes)| number(bytes, 0)).expect("given");
            prop_assert!(bytes >= burst);
            prop_assert_eq!(u128::from(bytes) * NANOS_PER_SECOND / u128::from(rate) / TICK, time);
        }
    }

    #[test]
    fn cells_are_counted_in_tables_of_sizes() {
        // 2047 bytes in 512 entries: cells of 4 bytes.
        let mut base = vec![2, 0, 0, 0];
        for value in [0_u32, 2, 0, 2047, 512] {
            base.extend(value.to_ne_bytes());
        }
        let table = size_table(&base).expect("small");
        let data = attributes(&table).find(|(kind, _)| *kind == TCA_STAB_DATA).map(|(_, data)| data).expect("a table");
        let entry = |index: usize| u16::from_ne_bytes([data[2 * index], data[2 * index + 1]]);
        assert_eq!((data.len(), entry(0), entry(11), entry(12)), (1024, 53, 53, 106));
        base[20..].fill(0);
        assert_eq!(attributes(&size_table(&base).expect("small")).count(), 1, "only the overhead is charged");
    }
}
