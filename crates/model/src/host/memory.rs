//! Memory of a host, and its use by TCP.

use linerate_units::ByteCount;

use crate::fact::Fact;

/// Memory, as far as the limits of TCP depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostMemory {
    /// Total memory (`MemTotal` of `/proc/meminfo`).
    pub total: Fact<ByteCount>,
    /// Memory available to new programs without swapping (`MemAvailable`).
    pub available: Fact<ByteCount>,
    /// Page size: the unit of `tcp_mem` and `udp_mem`.
    pub page_size: Fact<ByteCount>,
    /// Memory in use by all TCP sockets of the host (`TCP: … mem` of `/proc/net/sockstat`, which counts pages).
    pub tcp_in_use: Fact<ByteCount>,
    /// TCP sockets in use in this network namespace.
    pub tcp_sockets: Fact<u64>,
}

impl HostMemory {
    /// Converts pages to bytes, where the page size is known.
    #[must_use]
    pub fn pages(&self, pages: u64) -> Option<ByteCount> {
        self.page_size.known().map(|size| ByteCount::new(pages.saturating_mul(size.get())))
    }

    /// Lists every fact by its name.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Fact<String>)> {
        let bytes = |fact: &Fact<ByteCount>| fact.clone().map(|size| size.get().to_string());
        [
            ("memory.total_bytes", bytes(&self.total)),
            ("memory.available_bytes", bytes(&self.available)),
            ("memory.page_bytes", bytes(&self.page_size)),
            ("memory.tcp_in_use_bytes", bytes(&self.tcp_in_use)),
            ("memory.tcp_sockets", self.tcp_sockets.clone().map(|count| count.to_string())),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into()
    }
}
