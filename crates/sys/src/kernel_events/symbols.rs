//! Names of kernel functions (`/proc/kallsyms`).

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Functions of the kernel in the order of their addresses. Reading takes a tenth of a second: it precedes a measurement.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Reads the functions; none where the kernel hides its addresses.
    pub(super) fn read() -> Self {
        File::open("/proc/kallsyms").map(|file| Self::parse(BufReader::new(file))).unwrap_or_default()
    }

    /// Hidden addresses are all zero.
    fn parse(symbols: impl BufRead) -> Self {
        let function = |line: String| {
            let mut columns = line.split_ascii_whitespace();
            let (start, kind, name) = (columns.next()?, columns.next()?, columns.next()?);
            let start = u64::from_str_radix(start, 16).ok().filter(|start| *start != 0)?;
            matches!(kind, "t" | "T" | "w" | "W").then(|| (start, name.to_owned()))
        };
        let mut functions: Vec<(u64, String)> =
            symbols.lines().map_while(std::io::Result::ok).filter_map(function).collect();
        functions.sort_by_key(|(start, _)| *start);
        Self(functions)
    }

    /// Name of the function that contains an address: the last one that does not begin beyond it.
    pub(super) fn name_of(&self, address: u64) -> Option<&str> {
        let beyond = self.0.partition_point(|(start, _)| *start <= address);
        self.0.get(beyond.checked_sub(1)?).map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let text = "0000000000000100 T first\n0000000000000300 t third\n0000000000000200 T second\n\
            0000000000000280 D data\nnot a line\n";
        let symbols = KernelSymbols::parse(text.as_bytes());
        assert_eq!([0x2ff, 0x300, 0x50].map(|address| symbols.name_of(address)), [Some("second"), Some("third"), None]);
        assert_eq!(KernelSymbols::parse("0000000000000000 T hidden\n".as_bytes()).name_of(0x100), None);
    }
}
