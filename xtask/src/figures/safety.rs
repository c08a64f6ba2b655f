//! Figures of safety: `unsafe` blocks.

use super::{FigureRow, counted};
use crate::repository::Repository;

pub(super) fn rows(repository: &Repository) -> Vec<FigureRow> {
    let blocks: usize = counted(repository)
        .map(|(_, file)| file.find("unsafe {").filter(|index| !file.tokens()[*index].in_tests).count())
        .sum();
    vec![
        FigureRow::new("unsafe blocks outside tests", ["213", "84", "22", "4", "20"], blocks)
            .bounded("≤ 110", blocks <= 110),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_outside_tests_are_counted() {
        let text = "unsafe fn a() { b(unsafe { c() }, unsafe { d() }) }\n#[cfg(test)]\nmod tests { fn e() { unsafe { f() } } }";
        let rows = rows(&Repository::from_files(&[("crates/sys/src/lib.rs", text)]));
        assert_eq!(rows[0].now, "2");
    }
}
