//! Recipe of a kernel, in addition to its sources: options, edits, and procedure. Two kernels of the same version and
//! recipe are the same.

/// The options.
pub(super) const FRAGMENT: &str = include_str!("../../kernel/fragment.config");

/// Replacement of the head of `extract_entropy` in the kernel's `drivers/char/random.c`.
pub(super) const SEED_CODE: &str = include_str!("../../kernel/seed.c");

/// Cost of reading the guest's clock: goes before `timer_read` in `arch/um/kernel/time.c`.
pub(super) const CLOCK_CODE: &str = include_str!("../../kernel/clock.c");

/// Clock that programs read without a system call: what its parts share, and what goes into `arch/um/kernel/time.c`,
/// `arch/x86/um/vdso/vma.c` and `um_vdso.c`.
pub(super) const CLOCK_HEADER: &str = include_str!("../../kernel/shared_clock.h");
pub(super) const CLOCK_TIME_CODE: &str = include_str!("../../kernel/shared_clock_time.c");
pub(super) const CLOCK_PAGE_CODE: &str = include_str!("../../kernel/shared_clock_page.c");
pub(super) const CLOCK_VDSO_CODE: &str = include_str!("../../kernel/shared_clock_vdso.c");

/// The most used headers.
pub(super) const HEADERS: &str = include_str!("../../kernel/precompiled.h");

/// The rule that compiles them.
pub(super) const HEADERS_RULE: &str = include_str!("../../kernel/precompiled.mk");

/// Version of the procedure, incremented when something else changes the result: an edit, a variable of `make`.
const PROCEDURE_VERSION: u64 = 3;

/// Identifies the recipe: 16 hexadecimal digits.
#[must_use]
pub fn hash() -> String {
    let clock = [CLOCK_CODE, CLOCK_HEADER, CLOCK_TIME_CODE, CLOCK_PAGE_CODE, CLOCK_VDSO_CODE];
    let parts = [&[FRAGMENT, SEED_CODE, HEADERS, HEADERS_RULE][..], &clock].concat();
    let parts = parts.into_iter().map(str::as_bytes);
    format!("{:016x}", parts.fold(fnv1a(BASIS, &PROCEDURE_VERSION.to_le_bytes()), fnv1a))
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a with 64 bits: distinguishes recipes, and is no protection against deliberate collisions.
fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_of_the_hash() {
        assert_eq!(fnv1a(BASIS, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(BASIS, b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn sixteen_digits_that_stay_the_same() {
        let hash = hash();
        assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
        assert_eq!(hash, super::hash());
    }
}
