//! Rate limits in the options of queueing disciplines and classes (`linux/pkt_sched.h`).

use linerate_model::far::QueueRateLimit;

use crate::netlink::{attribute, number};

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_HFSC_USC: u16 = 3;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;

/// Position of the rate in `tc_ratespec`, and the length of that structure.
const RATE_OFFSET: usize = 8;
const RATE_SPECIFICATION_LENGTH: usize = 12;
/// Length of `tc_netem_qopt`, which precedes the attributes of netem's options.
const NETEM_OPTIONS_LENGTH: usize = 24;
/// A rate of this number is in the attribute of 64 bits, or there is none (fq).
const RATE_ELSEWHERE: u32 = u32::MAX;

/// Reads the rate limit; `None` for kinds without one, and where none is set.
pub(super) fn parse(kind: &str, is_class: bool, options: &[u8]) -> Option<QueueRateLimit> {
    let shared = |bytes: u64| QueueRateLimit { bits_per_second: bytes.saturating_mul(8), per_flow: false };
    let limit = match (kind, is_class) {
        ("tbf", false) => shared(rate(attribute(options, TCA_TBF_PARMS)?, 0, attribute(options, TCA_TBF_RATE64))?),
        // The first rate is guaranteed; the second one, `ceil`, is the limit.
        ("htb", true) => {
            let parameters = attribute(options, TCA_HTB_PARMS)?;
            shared(rate(parameters, RATE_SPECIFICATION_LENGTH, attribute(options, TCA_HTB_CEIL64))?)
        }
        // `tc_service_curve`: the rate of its second slope follows the first one and its length.
        ("hfsc", true) => shared(number(attribute(options, TCA_HFSC_USC)?, 8)?.into()),
        ("fq", false) => fair_queue(options)?,
        ("cake", false) => shared(long(attribute(options, TCA_CAKE_BASE_RATE64)?)?),
        ("netem", false) => {
            let options = options.get(NETEM_OPTIONS_LENGTH..)?;
            let wide = attribute(options, TCA_NETEM_RATE64).and_then(long);
            shared(wide.or_else(|| number(attribute(options, TCA_NETEM_RATE)?, 0).map(u64::from))?)
        }
        _ => return None,
    };
    (limit.bits_per_second > 0).then_some(limit)
}

/// Rate in bytes per second of the `tc_ratespec` at this position, or of the attribute with 64 bits.
fn rate(parameters: &[u8], position: usize, wide: Option<&[u8]>) -> Option<u64> {
    match number(parameters, position + RATE_OFFSET)? {
        RATE_ELSEWHERE => long(wide?),
        rate => Some(rate.into()),
    }
}

/// `fq` limits each flow, unless its pacing is off.
fn fair_queue(options: &[u8]) -> Option<QueueRateLimit> {
    let word = |kind| number(attribute(options, kind)?, 0);
    let paces = word(TCA_FQ_RATE_ENABLE).is_none_or(|enabled| enabled != 0);
    let rate = word(TCA_FQ_FLOW_MAX_RATE).filter(|rate| paces && *rate != RATE_ELSEWHERE)?;
    Some(QueueRateLimit { bits_per_second: u64::from(rate) * 8, per_flow: true })
}

fn long(content: &[u8]) -> Option<u64> {
    content.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::append_attribute;

    fn options(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut options = Vec::new();
        for (kind, content) in attributes {
            append_attribute(&mut options, *kind, content).expect("short");
        }
        options
    }

    /// Two `tc_ratespec` and what follows them.
    fn rates(first: u32, second: u32) -> Vec<u8> {
        let specification = |rate: u32| [[0; RATE_OFFSET].as_slice(), &rate.to_ne_bytes()].concat();
        [specification(first), specification(second), vec![0; 12]].concat()
    }

    const fn shared(bits_per_second: u64) -> QueueRateLimit {
        QueueRateLimit { bits_per_second, per_flow: false }
    }

    #[test]
    fn rates_of_shapers() {
        let tbf = options(&[(TCA_TBF_PARMS, &rates(12_500_000, 0))]);
        assert_eq!(parse("tbf", false, &tbf), Some(shared(100_000_000)));
        let wide = 12_500_000_000_u64.to_ne_bytes();
        let fast = options(&[(TCA_TBF_PARMS, &rates(RATE_ELSEWHERE, 0)), (TCA_TBF_RATE64, &wide)]);
        assert_eq!(parse("tbf", false, &fast), Some(shared(100_000_000_000)));
        // The ceiling counts, not the guaranteed rate.
        let htb = options(&[(TCA_HTB_PARMS, &rates(1_000_000, 7_500_000))]);
        assert_eq!((parse("htb", true, &htb), parse("htb", false, &htb)), (Some(shared(60_000_000)), None));
        let cake = |rate: u64| options(&[(TCA_CAKE_BASE_RATE64, &rate.to_ne_bytes())]);
        assert_eq!(
            (parse("cake", false, &cake(2_500_000)), parse("cake", false, &cake(0))),
            (Some(shared(20_000_000)), None)
        );
        let curve: Vec<u8> = [0_u32, 0, 1_250_000].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(parse("hfsc", true, &options(&[(TCA_HFSC_USC, &curve)])), Some(shared(10_000_000)));
        let attributes = options(&[(TCA_NETEM_RATE, &[1_250_000_u32.to_ne_bytes(), [0; 4]].concat())]);
        let netem = [vec![0; NETEM_OPTIONS_LENGTH], attributes].concat();
        assert_eq!(parse("netem", false, &netem), Some(shared(10_000_000)));
        assert_eq!(parse("pfifo", false, &tbf), None);
    }

    #[test]
    fn a_fair_queue_limits_each_flow() {
        let fq = |rate: u32, paces: u32| {
            options(&[(TCA_FQ_RATE_ENABLE, &paces.to_ne_bytes()), (TCA_FQ_FLOW_MAX_RATE, &rate.to_ne_bytes())])
        };
        let limit = Some(QueueRateLimit { bits_per_second: 120_000_000, per_flow: true });
        assert_eq!(parse("fq", false, &fq(15_000_000, 1)), limit);
        assert_eq!((parse("fq", false, &fq(15_000_000, 0)), parse("fq", false, &fq(RATE_ELSEWHERE, 1))), (None, None));
    }

    #[test]
    fn truncated_options_have_no_limit() {
        let whole = options(&[(TCA_HTB_PARMS, &rates(1, RATE_ELSEWHERE)), (TCA_HTB_CEIL64, &9_u64.to_ne_bytes())]);
        assert_eq!(parse("htb", true, &whole), Some(shared(72)));
        for length in 0..whole.len() {
            for kind in ["tbf", "htb", "hfsc", "fq", "cake", "netem"] {
                let _ = parse(kind, true, &whole[..length]);
                let _ = parse(kind, false, &whole[..length]);
            }
            assert_eq!(parse("htb", true, &whole[..length]), None, "{length}");
        }
    }
}
