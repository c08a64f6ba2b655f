//! Numbers that follow from names alone: the same on every host, and in every version.

/// Hash of several texts (FNV-1a with a final mix, so that neighbours are far apart). Not against adversaries: the description
/// is the operator's own.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut state = OFFSET;
    for part in parts {
        // A byte that no text in UTF-8 has ends each part.
        for byte in part.bytes().chain([0xff]) {
            state = (state ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    mixed(state)
}

/// Finalizer of `MurmurHash3` (64 bits): a bijection whose every output bit depends on every input bit.
fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    state = (state ^ (state >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ (state >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other values would move every test of every fleet.
    #[test]
    fn hashes_never_change() {
        assert_eq!(hash(&["a"]), 0x3aec_69d2_86fb_d39b);
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }
}
