//! Cells of the comparison.

/// Option set, measured for every pair of programs.
#[derive(Debug)]
pub(super) struct BenchCell {
    /// Name for `--only`.
    pub(super) name: &'static str,
    /// Title in the report.
    pub(super) title: &'static str,
    /// Options of the client, in addition to host, port and time.
    pub(super) options: &'static [&'static str],
    /// Payload of a datagram in bytes; `None` for TCP.
    pub(super) datagram: Option<u16>,
}

/// Every cell, in the order of the report.
pub(super) const CELLS: &[BenchCell] = &[
    tcp("tcp", "TCP, one stream", &[]),
    tcp("tcp-p4", "TCP, four streams (-P 4)", &["-P", "4"]),
    tcp("tcp-reverse", "TCP, reverse (-R)", &["-R"]),
    tcp("tcp-bidir", "TCP, both directions (--bidir), sum", &["--bidir"]),
    tcp("tcp-zerocopy", "TCP, zero copy (-Z)", &["-Z"]),
    udp("udp-1448", "UDP, 1448 bytes, unlimited", &["-u", "-b", "0", "-l", "1448"], 1448),
    udp("udp-200", "UDP, 200 bytes, unlimited", &["-u", "-b", "0", "-l", "200"], 200),
    udp("udp-paced", "UDP, 1448 bytes at 1 Gbit/s", &["-u", "-b", "1G", "-l", "1448"], 1448),
];

const fn tcp(name: &'static str, title: &'static str, options: &'static [&'static str]) -> BenchCell {
    BenchCell { name, title, options, datagram: None }
}

const fn udp(name: &'static str, title: &'static str, options: &'static [&'static str], datagram: u16) -> BenchCell {
    BenchCell { name, title, options, datagram: Some(datagram) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_datagram_sizes_match_the_options() {
        let names: BTreeSet<_> = CELLS.iter().map(|cell| cell.name).collect();
        assert_eq!(names.len(), CELLS.len());
        for cell in CELLS {
            let length = cell.options.iter().skip_while(|option| **option != "-l").nth(1).map(|value| value.parse());
            assert_eq!(length, cell.datagram.map(Ok), "{}", cell.name);
        }
    }
}
