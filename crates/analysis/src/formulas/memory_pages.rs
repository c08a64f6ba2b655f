use linerate_units::ByteCount;

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "memory pages",
    text: "memory = pages × page size",
    citation: "Linux Documentation/networking/ip-sysctl.rst: tcp_mem, udp_mem are in pages; 4096 bytes on x86-64",
    explanation: "tcp_mem and udp_mem bound the memory of all sockets together, in pages; tcp_rmem and tcp_wmem are \
                  per socket, in bytes.\n\n\
                  Slides of CESGA first warn of that, and then set tcp_mem to 4096 87380 16777216 as if it were in \
                  bytes: these are 16 MiB, 341 MiB and 64 GiB, on a host with 2 GB.",
};

/// Page size on x86-64 and most others; ARM hosts may have 16 or 64 KiB (`getconf PAGESIZE`).
pub const DEFAULT_PAGE_SIZE: ByteCount = ByteCount::new(4096);

/// Number of memory pages, as in `tcp_mem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageCount(u64);

impl PageCount {
    /// Creates a count of `pages` pages.
    #[must_use]
    pub const fn new(pages: u64) -> Self {
        Self(pages)
    }

    /// Number of pages.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Memory of this many pages.
#[must_use]
pub fn memory_of_pages(pages: PageCount, page: ByteCount) -> ByteCount {
    page * pages.get()
}

/// Pages that hold this many bytes: the inverse of [`memory_of_pages`], rounded up. `None` for pages of no size.
#[must_use]
pub fn pages_of_memory(memory: ByteCount, page: ByteCount) -> Option<PageCount> {
    (!page.is_zero()).then(|| PageCount::new(memory.get().div_ceil(page.get())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_the_slides() {
        for (pages, mebibytes) in [(4096, 16), (16_777_216, 65_536)] {
            assert_eq!(memory_of_pages(PageCount::new(pages), DEFAULT_PAGE_SIZE), ByteCount::from_mebibytes(mebibytes));
        }
        // 341 MiB and a little.
        assert_eq!(memory_of_pages(PageCount::new(87_380), DEFAULT_PAGE_SIZE).get() >> 20, 341);
        assert_eq!(pages_of_memory(ByteCount::new(4097), DEFAULT_PAGE_SIZE), Some(PageCount::new(2)));
        assert_eq!(pages_of_memory(ByteCount::new(1), ByteCount::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverse_returns(pages in 0_u64..1 << 40, size in 12_u32..17) {
            let (pages, page) = (PageCount::new(pages), ByteCount::new(1 << size));
            proptest::prop_assert_eq!(pages_of_memory(memory_of_pages(pages, page), page), Some(pages));
        }
    }
}
