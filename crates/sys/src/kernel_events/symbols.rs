//! Names of kernel functions (`/proc/kallsyms`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Names of the functions that contain these addresses; empty where the kernel hides its addresses.
pub(super) fn names_of(addresses: &[u64]) -> BTreeMap<u64, String> {
    File::open("/proc/kallsyms").map(|file| find(BufReader::new(file), addresses)).unwrap_or_default()
}

/// Finds for each address the last symbol that does not lie beyond it. Hidden addresses are all zero.
fn find(symbols: impl BufRead, addresses: &[u64]) -> BTreeMap<u64, String> {
    let mut best: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for line in symbols.lines().map_while(std::io::Result::ok) {
        let mut columns = line.split_ascii_whitespace();
        let (Some(start), Some("t" | "T" | "w" | "W"), Some(name)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let Some(start) = u64::from_str_radix(start, 16).ok().filter(|start| *start != 0) else { continue };
        for address in addresses.iter().filter(|address| start <= **address) {
            if best.get(address).is_none_or(|(found, _)| start > *found) {
                best.insert(*address, (start, name.to_owned()));
            }
        }
    }
    best.into_iter().map(|(address, (_, name))| (address, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let text = "0000000000000100 T first\n0000000000000300 t third\n0000000000000200 T second\n\
            0000000000000280 D data\nnot a line\n";
        let names = find(text.as_bytes(), &[0x2ff, 0x300, 0x50]);
        let expected = [(0x2ff, "second".to_owned()), (0x300, "third".to_owned())];
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
        assert!(find("0000000000000000 T hidden\n".as_bytes(), &[0x100]).is_empty());
    }
}
