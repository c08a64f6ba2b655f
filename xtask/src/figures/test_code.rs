//! Figures of tests: their code beside the code that they test, and their sleeps.

use std::collections::BTreeMap;

use super::{FigureRow, NO_REFERENCES, counted};
use crate::repository::Repository;
use crate::rust_file::{RustFile, TokenKind};

/// Least ratio of the crate whose tests were missing.
const MIN_ENGINE_RATIO: f64 = 0.4;

/// Lines of code, without comments and blank lines.
#[derive(Clone, Copy, Default)]
struct CodeLines {
    shipped: u32,
    tests: u32,
}

impl CodeLines {
    fn of(file: &RustFile) -> Self {
        let mut lines = Self::default();
        let mut last = 0;
        for token in file.tokens().iter().filter(|token| token.kind != TokenKind::Documentation) {
            let (start, end) = (token.line().max(last + 1), token.location.end.line);
            let added = u32::try_from((end + 1).saturating_sub(start)).unwrap_or(u32::MAX);
            *(if token.in_tests { &mut lines.tests } else { &mut lines.shipped }) += added;
            last = last.max(end);
        }
        lines
    }

    fn plus(self, other: Self) -> Self {
        Self { shipped: self.shipped + other.shipped, tests: self.tests + other.tests }
    }

    fn ratio(self) -> f64 {
        f64::from(self.tests) / f64::from(self.shipped.max(1))
    }
}

pub(super) fn rows(repository: &Repository) -> Vec<FigureRow> {
    let mut crates: BTreeMap<&str, CodeLines> = BTreeMap::new();
    for (path, file) in counted(repository) {
        let lines = crates.entry(crate_of(path)).or_default();
        *lines = lines.plus(CodeLines::of(file));
    }
    let total = crates.values().fold(CodeLines::default(), |sum, lines| sum.plus(*lines));
    let sleeps: usize = counted(repository)
        .map(|(_, file)| file.find("sleep (").filter(|index| file.tokens()[*index].in_tests).count())
        .sum();
    let mut rows = vec![
        FigureRow::new("lines of code outside tests", ["99328", "22558", "27687", "24779", "17155"], total.shipped),
        FigureRow::new("sleeps in tests", ["44", "4", "1", "9", "3"], sleeps),
        FigureRow::new(
            "code of tests / code",
            ["0.45", "0.45", "0.71", "0.64", "0.56"],
            format!("{:.2}", total.ratio()),
        ),
    ];
    rows.extend(crates.iter().map(|(name, lines)| crate_row(name, *lines)));
    rows
}

fn crate_row(name: &str, lines: CodeLines) -> FigureRow {
    let row = FigureRow::new(format!("… in {name}"), NO_REFERENCES, format!("{:.2}", lines.ratio()));
    if name == "engine" { row.bounded("≥ 0.40", lines.ratio() >= MIN_ENGINE_RATIO) } else { row }
}

/// Returns the folder of the crate that a file belongs to: `engine` for `crates/engine/src/lib.rs`.
fn crate_of(path: &str) -> &str {
    path.trim_start_matches("crates/").split('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_have_no_comments_and_no_blanks() {
        let text = "//! Doc.\n\n// Comment.\nfn a() { b(); c() }\nlet d = \"1\n2\n3\";\n#[cfg(test)]\nmod tests {\n\n fn e() {}\n}\n";
        let lines = CodeLines::of(&RustFile::parse("crates/units/src/lib.rs", text).expect("the text is Rust"));
        assert_eq!((lines.shipped, lines.tests), (4, 4));
    }

    #[test]
    fn the_ratio_of_engine_has_a_bound() {
        let files = [
            ("crates/engine/src/lib.rs", "fn a() {\n b();\n c();\n d();\n}"),
            ("crates/engine/tests/a.rs", "fn a() {\n std::thread::sleep(ONE) }"),
            ("xtask/src/main.rs", "fn a() {}"),
        ];
        let cells: Vec<_> = rows(&Repository::from_files(&files)).iter().map(FigureRow::cells).collect();
        assert_eq!(cells[1][6], "1");
        assert_eq!(cells[3][0..8], ["… in engine", "", "", "", "", "", "0.40", "≥ 0.40"]);
        assert_eq!(cells[4][0], "… in xtask");
    }
}
