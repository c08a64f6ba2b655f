//! Names of kernel functions (`/proc/kallsyms`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Functions that contain some addresses. Only these are kept, and they are read after a measurement: a table of all functions,
/// some ten megabytes, cost the threads of a transfer over loopback 4 % of their time.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols(BTreeMap<u64, String>);

impl KernelSymbols {
    /// Reads the functions that contain `addresses`, in a tenth of a second; none where the kernel hides its addresses.
    pub(super) fn of(addresses: &[u64]) -> Self {
        let file = if addresses.is_empty() { None } else { File::open("/proc/kallsyms").ok() };
        file.map(|file| Self::parse(BufReader::new(file), addresses)).unwrap_or_default()
    }

    /// The function of an address is the last one that does not begin beyond it. Hidden addresses are all zero.
    pub(super) fn parse(mut symbols: impl BufRead, addresses: &[u64]) -> Self {
        let mut found: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        let mut line = String::new();
        while symbols.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some((start, name)) = function(&line) {
                for address in addresses.iter().filter(|address| start <= **address) {
                    let nearest = found.entry(*address).or_default();
                    if start > nearest.0 {
                        *nearest = (start, name.to_owned());
                    }
                }
            }
            line.clear();
        }
        Self(found.into_iter().map(|(address, (_, name))| (address, name)).collect())
    }

    /// Name of the function that contains an address.
    pub(super) fn name_of(&self, address: u64) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }
}

/// Start and name of a function; `None` for other symbols.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut columns = line.split_ascii_whitespace();
    let (start, kind, name) = (columns.next()?, columns.next()?, columns.next()?);
    let start = u64::from_str_radix(start, 16).ok().filter(|start| *start != 0)?;
    matches!(kind, "t" | "T" | "w" | "W").then_some((start, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let text = "0000000000000100 T first\n0000000000000300 t third\n0000000000000200 T second\n\
            0000000000000280 D data\nnot a line\n";
        let symbols = KernelSymbols::parse(text.as_bytes(), &[0x2ff, 0x300, 0x50]);
        let names = [0x2ff, 0x300, 0x50, 0x100].map(|address| symbols.name_of(address));
        assert_eq!(names, [Some("second"), Some("third"), None, None], "the last one was not asked for");
        let hidden = KernelSymbols::parse("0000000000000000 T hidden\n".as_bytes(), &[0x100]);
        assert_eq!(hidden.name_of(0x100), None);
    }
}
