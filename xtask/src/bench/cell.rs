//! Cells of the comparison: what is transferred, and over which link.

/// Link between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchLink {
    /// 127.0.0.1.
    Loopback,
    /// `::1`.
    LoopbackV6,
    /// A veth pair between two namespaces, with this MTU.
    Veth(u16),
}

/// Figure that decides a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Goodput of a transfer as fast as possible.
    Unlimited,
    /// Processor time of a transfer at a rate.
    Paced,
    /// Wall time of `--version`.
    StartUp,
    /// Time from the client's connection to its first byte of payload.
    FirstByte,
    /// Wall time of a client's test of one second, less the second.
    Overhead,
}

/// Option set, measured for every program that has the options.
#[derive(Clone, Debug)]
pub(super) struct BenchCell {
    /// Name for `--only`.
    pub(super) name: String,
    /// Title in the report.
    pub(super) title: String,
    pub(super) kind: CellKind,
    pub(super) link: BenchLink,
    /// Options of the client, in iperf3's form, in addition to host, port and time.
    pub(super) options: Vec<String>,
    /// Payload of a datagram in bytes; `None` for TCP.
    pub(super) datagram: Option<u16>,
    /// Clients at once, each with a server of its own.
    pub(super) clients: u16,
    /// True for the cells of `--quick`.
    pub(super) is_quick: bool,
}

/// Name of the cell of the web page.
pub(super) const HTTP: &str = "http";

impl BenchCell {
    fn new(name: &str, title: &str, options: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            kind: CellKind::Unlimited,
            link: BenchLink::Loopback,
            options: options.split_whitespace().map(str::to_owned).collect(),
            datagram: None,
            clients: 1,
            is_quick: false,
        }
    }

    fn quick(self) -> Self {
        Self { is_quick: true, ..self }
    }

    fn over(self, link: BenchLink) -> Self {
        Self { link, ..self }
    }

    fn of(self, kind: CellKind) -> Self {
        Self { kind, ..self }
    }

    /// True when data moves, so that there is a goodput.
    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.kind, CellKind::Unlimited | CellKind::Paced)
    }

    /// True for UDP.
    pub(super) fn is_udp(&self) -> bool {
        self.datagram.is_some()
    }

    /// Value of a client's option.
    #[cfg(test)]
    fn value_of(&self, option: &str) -> Option<&str> {
        let position = self.options.iter().position(|each| each == option)?;
        self.options.get(position + 1).map(String::as_str)
    }

    /// True when the client has this option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|each| each == option)
    }
}

/// Returns every cell, in the order of the report.
pub(super) fn cells() -> Vec<BenchCell> {
    let mut cells = tcp_streams();
    cells.extend([
        BenchCell::new("tcp-zerocopy", "TCP, zero copy (-Z)", "-Z").quick(),
        BenchCell::new("tcp-1k", "TCP, blocks of 1 KiB", "-l 1K"),
        BenchCell::new("tcp-8k", "TCP, blocks of 8 KiB", "-l 8K"),
    ]);
    cells.extend([64, 200, 1448, 8972].map(|size| udp(size, None)));
    for rate in ["1M", "100M", "1G"] {
        cells.extend([64, 200, 1448, 8972].map(|size| udp(size, Some(rate))));
    }
    for rate in ["10M", "100M", "1G"] {
        cells.push(paced(&format!("tcp-{rate}"), &format!("TCP at {rate}bit/s"), &format!("-b {rate}")));
        let (name, title) = (format!("tcp-1448-{rate}"), format!("TCP at {rate}bit/s, blocks of 1448 bytes"));
        cells.push(paced(&name, &title, &format!("-b {rate} -l 1448")));
    }
    cells.push(paced("tcp-p32-1M", "TCP, 32 streams at 1 Mbit/s each", "-P 32 -b 1M"));
    cells.extend([1, 8, 64].map(|clients| BenchCell {
        clients,
        ..BenchCell::new(&format!("clients-{clients}"), &format!("TCP, {clients} clients at once, sum"), "")
    }));
    cells.extend(links());
    cells.push(BenchCell::new(HTTP, "HTTP download of the web page (`/garbage`), next to TCP down", "-R").quick());
    cells.extend([
        BenchCell::new("start-up", "start-up (`--version`)", "").of(CellKind::StartUp).quick(),
        BenchCell::new("first-byte", "connection to first byte", "-b 10M").of(CellKind::FirstByte),
        BenchCell::new("overhead", "test of one second, less the second", "").of(CellKind::Overhead).quick(),
    ]);
    cells
}

fn tcp_streams() -> Vec<BenchCell> {
    let mut cells = Vec::new();
    for (way, title, option) in
        [("up", "up", ""), ("down", "down (-R)", "-R"), ("both", "both directions, sum", "--bidir")]
    {
        for streams in [1, 2, 4, 8, 16] {
            let name = format!("tcp-p{streams}-{way}");
            let cell = BenchCell::new(&name, &format!("TCP, -P {streams}, {title}"), &format!("-P {streams} {option}"));
            cells.push(if matches!(streams, 1 | 8) { cell.quick() } else { cell });
        }
    }
    cells
}

fn paced(name: &str, title: &str, options: &str) -> BenchCell {
    BenchCell::new(name, title, options).of(CellKind::Paced)
}

fn udp(size: u16, rate: Option<&str>) -> BenchCell {
    let options = format!("-u -l {size} -b {}", rate.unwrap_or("0"));
    let cell = match rate {
        None => BenchCell::new(&format!("udp-{size}"), &format!("UDP, {size} bytes"), &options),
        Some(rate) => paced(&format!("udp-{size}-{rate}"), &format!("UDP, {size} bytes at {rate}bit/s"), &options),
    };
    BenchCell { datagram: Some(size), is_quick: size == 1448 && rate.is_none_or(|rate| rate == "100M"), ..cell }
}

fn links() -> Vec<BenchCell> {
    let mut cells = vec![BenchCell::new("tcp-ipv6", "TCP over ::1", "").over(BenchLink::LoopbackV6)];
    for mtu in [1500, 9000] {
        let over = |name: &str, title: &str, options: &str| {
            let name = format!("veth{mtu}-{name}");
            BenchCell::new(&name, &format!("veth, MTU {mtu}: {title}"), options).over(BenchLink::Veth(mtu))
        };
        cells.extend([over("tcp", "TCP", ""), over("tcp-p8-down", "TCP, -P 8, down (-R)", "-P 8 -R")]);
        let udp = over("udp-1448", "UDP, 1448 bytes", "-u -l 1448 -b 0");
        cells.push(BenchCell { datagram: Some(1448), ..udp });
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_datagram_sizes_match_the_options() {
        let cells = cells();
        let names: BTreeSet<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names.len(), cells.len());
        for cell in &cells {
            let size = cell.value_of("-l").filter(|_| cell.has("-u")).map(str::parse);
            assert_eq!(size, cell.datagram.map(Ok), "{}", cell.name);
            let is_limited = cell.value_of("-b").is_some_and(|rate| rate != "0");
            assert_eq!(is_limited, matches!(cell.kind, CellKind::Paced | CellKind::FirstByte), "{}", cell.name);
        }
    }

    #[test]
    fn the_quick_cells_are_few_and_of_every_kind() {
        let quick: Vec<_> = cells().into_iter().filter(|cell| cell.is_quick).collect();
        assert!(quick.len() <= 12, "{}", quick.len());
        for kind in [CellKind::Unlimited, CellKind::Paced, CellKind::StartUp, CellKind::Overhead] {
            assert!(quick.iter().any(|cell| cell.kind == kind), "{kind:?}");
        }
    }
}
