//! Figures of size: lines, files, functions.

use super::{FigureRow, counted, percentile};
use crate::repository::Repository;
use crate::rust_file::{RustFile, TokenKind};

pub(super) fn rows(repository: &Repository) -> Vec<FigureRow> {
    let files: Vec<usize> = sorted(counted(repository).filter_map(|(path, file)| {
        let lines = repository.text(path).unwrap_or_default().lines().count();
        let shipped = lines.saturating_sub(test_lines(file, lines));
        (shipped > 0).then_some(shipped)
    }));
    let functions = sorted(counted(repository).flat_map(|(_, file)| function_lengths(file)));
    let quantiles = [50, 90, 99, 100].map(|share| percentile(&functions, share).to_string()).join(" / ");
    vec![
        FigureRow::new(
            "lines outside tests, blank ones and comments included",
            ["128359", "31259", "37702", "36556", "21789"],
            files.iter().sum::<usize>(),
        ),
        FigureRow::new(
            "… of a file: p50 / p90",
            ["100 / 262", "194 / 895", "192 / 776", "171 / 1012", "123 / 721"],
            [50, 90].map(|share| percentile(&files, share).to_string()).join(" / "),
        ),
        FigureRow::new(
            "… of a function: p50 / p90 / p99 / longest",
            ["7 / 22 / 38 / 81", "7 / 31 / 124 / 559", "5 / 25 / 116 / 706", "4 / 22 / 67 / 220", "6 / 24 / 85 / 363"],
            quantiles,
        ),
    ]
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values
}

/// Counts the lines of test code in a file of `lines` lines: from the first to the last token of each stretch of it.
fn test_lines(file: &RustFile, lines: usize) -> usize {
    let tokens = file.tokens();
    if tokens.iter().all(|token| token.in_tests) {
        return lines;
    }
    let stretches = tokens.chunk_by(|one, other| one.in_tests == other.in_tests).filter(|found| found[0].in_tests);
    stretches.map(|found| found[found.len() - 1].location.end.line + 1 - found[0].line()).sum()
}

/// Returns the number of lines of each function outside tests, from `fn` to the closing brace.
fn function_lengths(file: &RustFile) -> impl Iterator<Item = usize> {
    let tokens = file.tokens();
    let is_shipped = |index: &usize| !tokens[*index].in_tests && tokens[*index + 1].kind == TokenKind::Word;
    file.find("fn").filter(is_shipped).filter_map(move |index| {
        let close = tokens[body(file, index)?].closed_by?;
        Some(tokens[close].line() + 1 - tokens[index].line())
    })
}

/// Returns the index of the opening brace of the function at `index`, if it has a body.
fn body(file: &RustFile, mut index: usize) -> Option<usize> {
    loop {
        let token = file.tokens().get(index)?;
        match token.text.as_str() {
            "{" => return Some(index),
            ";" => return None,
            _ => index = token.closed_by.unwrap_or(index) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RustFile {
        RustFile::parse("crates/units/src/lib.rs", text).expect("the text is Rust")
    }

    #[test]
    fn lines_of_tests_are_those_of_their_items() {
        let text = "//! Doc.\nuse a;\n\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests {\n    fn d() {}\n}\n";
        assert_eq!(test_lines(&file(text), 10), 6);
        assert_eq!(test_lines(&file("#![cfg(test)]\n\nfn a() {}\n"), 3), 3);
    }

    #[test]
    fn functions_reach_from_their_name_to_their_brace() {
        let text = "fn a(b: [u8; 2])\nwhere\n    u8: Copy,\n{\n    c(|| { d; });\n}\ntrait T { fn e(); fn f() {} }\n\
                    type G = fn(u8);\n#[cfg(test)]\nfn h() {}\n";
        assert_eq!(function_lengths(&file(text)).collect::<Vec<_>>(), [6, 1]);
    }
}
