use linerate_units::{ByteCount, Ratio};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "TCP efficiency",
    text: "efficiency = (bytes sent − bytes retransmitted) / bytes sent",
    citation: "RFC 6349 §4.2",
    explanation: "The share of the sent bytes that are not retransmissions; sent bytes include them. tcp_info \
                  has both: bytes_sent and bytes_retrans.\n\n\
                  The RFC's own example of 2000 bytes retransmitted of 102 000 is 98.04 %; it prints 98.03, cut off \
                  instead of rounded.",
};

/// TCP efficiency. `None` when nothing was sent, or less than was retransmitted.
#[must_use]
pub fn tcp_efficiency(sent: ByteCount, retransmitted: ByteCount) -> Option<Ratio> {
    sent.checked_sub(retransmitted)? / sent
}

/// Retransmitted bytes: an inverse of [`tcp_efficiency`]. `None` for an efficiency above one.
#[must_use]
pub fn retransmitted_bytes(efficiency: Ratio, sent: ByteCount) -> Option<ByteCount> {
    (efficiency.get() <= 1.0).then(|| ByteCount::from_f64(sent.as_f64() * (1.0 - efficiency.get())))
}

/// Sent bytes: another inverse of [`tcp_efficiency`]. `None` for an efficiency of one and above: any number of bytes
/// has that.
#[must_use]
pub fn sent_bytes(efficiency: Ratio, retransmitted: ByteCount) -> Option<ByteCount> {
    Ratio::of(retransmitted.as_f64(), 1.0 - efficiency.get()).map(|bytes| ByteCount::from_f64(bytes.get()))
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let efficiency = tcp_efficiency(ByteCount::new(102_000), ByteCount::new(2000)).unwrap_or_default();
        assert!(near(efficiency.percent(), 98.039, 1e-5), "{efficiency}");
        assert_eq!(tcp_efficiency(ByteCount::ZERO, ByteCount::ZERO), None);
        assert_eq!(tcp_efficiency(ByteCount::new(1), ByteCount::new(2)), None);
        let (one, more) = (Ratio::new(1.0).unwrap_or_default(), Ratio::new(1.1).unwrap_or_default());
        assert_eq!(sent_bytes(one, ByteCount::new(1)), None);
        assert_eq!(retransmitted_bytes(more, ByteCount::new(1)), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(sent in 1000_u64..1 << 40, share in 0.001_f64..1.0) {
            let sent = ByteCount::new(sent);
            let retransmitted = ByteCount::from_f64(sent.as_f64() * share);
            let efficiency = tcp_efficiency(sent, retransmitted).unwrap_or_default();
            let back = retransmitted_bytes(efficiency, sent).unwrap_or_default();
            proptest::prop_assert!(near(back.as_f64(), retransmitted.as_f64(), 1e-6));
            let back = sent_bytes(efficiency, retransmitted).unwrap_or_default();
            proptest::prop_assert!(near(back.as_f64(), sent.as_f64(), 1e-6));
        }
    }
}
