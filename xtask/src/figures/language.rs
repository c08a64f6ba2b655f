//! Figures of the language: openings of documentation, words of the glossary, names of types.

use std::fmt;

use super::{FigureRow, NO_REFERENCES, counted, percent};
use crate::repository::Repository;
use crate::rust_file::{RustFile, TokenKind};
use crate::tidy::{doc_openings, glossary};

/// Type that the code defines.
pub(super) struct TypeName {
    name: String,
    path: String,
    line: usize,
}

impl fmt::Display for TypeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.name)
    }
}

pub(super) fn rows(repository: &Repository) -> Vec<FigureRow> {
    let openings: Vec<_> = counted(repository).flat_map(|(_, file)| doc_openings::openings(file)).collect();
    let banned = openings.iter().filter(|opening| doc_openings::banned_word(opening).is_some()).count();
    let words = glossary::hits(repository).len();
    let (single, types) = (single_word_types(repository).len(), type_names(repository).count());
    vec![
        FigureRow::new(
            "doc comments that open with What, Whether, How, …",
            ["19.1 %", "4.8 %", "0.2 %", "3.7 %", "1.6 %"],
            percent(banned, openings.len()),
        )
        .bounded("≤ 0.5 %", banned * 1000 <= openings.len() * 5),
        FigureRow::new("glossary words in user-visible texts", NO_REFERENCES, words).bounded("0", words == 0),
        FigureRow::new("types (without tests)", ["1606", "361", "318", "376", "210"], types),
        FigureRow::new(
            "… whose name is a single word",
            ["65.6 %", "24.9 %", "45.9 %", "31.9 %", "28.6 %"],
            percent(single, types),
        )
        .bounded("≤ 10 %", single * 10 <= types),
    ]
}

/// Returns the types outside tests whose name is a single word.
pub(super) fn single_word_types(repository: &Repository) -> Vec<TypeName> {
    type_names(repository).filter(|found| is_single_word(&found.name)).collect()
}

fn type_names(repository: &Repository) -> impl Iterator<Item = TypeName> {
    counted(repository).flat_map(|(path, file)| {
        let defines = |index: &usize| is_definition(file, *index);
        let names = (1..file.tokens().len()).filter(defines).map(|index| &file.tokens()[index]);
        names.map(|token| TypeName { name: token.text.clone(), path: path.to_owned(), line: token.line() })
    })
}

/// True when the token at `index` is the name in a definition of a type, other than one associated with a trait.
fn is_definition(file: &RustFile, index: usize) -> bool {
    let (keyword, name) = (&file.tokens()[index - 1], &file.tokens()[index]);
    let is_keyword = keyword.kind == TokenKind::Word
        && ["struct", "enum", "union", "trait", "type"].contains(&keyword.text.as_str());
    is_keyword
        && name.kind == TokenKind::Word
        && !name.in_tests
        && !(keyword.text == "type" && is_associated(file, index))
}

/// True when the innermost braces around the token belong to a trait or an implementation.
fn is_associated(file: &RustFile, index: usize) -> bool {
    let tokens = &file.tokens()[..index];
    let opens = |at: &usize| tokens[*at].text == "{" && tokens[*at].closed_by.is_some_and(|close| close > index);
    let Some(opening) = (0..index).rev().find(opens) else { return false };
    let header = tokens[..opening].iter().rev().take_while(|token| ![";", "{", "}"].contains(&token.text.as_str()));
    header.into_iter().any(|token| token.text == "impl" || token.text == "trait")
}

/// True for one hump such as `Told` or `ECN`, unlike `BitRate` and `TcpInfo`.
fn is_single_word(name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    let starts = letters.windows(2).filter(|pair| pair[1].is_uppercase() && !pair[0].is_uppercase()).count();
    let ends_abbreviation = letters
        .windows(3)
        .filter(|three| three[0].is_uppercase() && three[1].is_uppercase() && three[2].is_lowercase());
    letters.first().is_some_and(|first| first.is_uppercase()) && starts + ends_abbreviation.count() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_by_their_capitals() {
        for name in ["Told", "ECN", "Md5", "Http2"] {
            assert!(is_single_word(name), "{name}");
        }
        for name in ["BitRate", "TcpInfo", "IPAddress", "Md5Sum", "XorShift64"] {
            assert!(!is_single_word(name), "{name}");
        }
    }

    #[test]
    fn types_are_found_but_not_those_of_tests_and_traits() {
        let text = "pub struct One<T>(T);\nenum Two { A }\ntype Three = u8;\ntrait Four { type No; }\n\
                    impl Four for u8 { type No = u8; }\nfn f(union: u8) -> u8 { type Five = u8; union }\n\
                    #[cfg(test)]\nmod tests { struct No; }\nmacro_rules! m { ($a:ident) => { struct $a; } }\n";
        let repository = Repository::from_files(&[("crates/units/src/lib.rs", text)]);
        let found: Vec<_> = type_names(&repository).map(|found| found.name).collect();
        assert_eq!(found, ["One", "Two", "Three", "Four", "Five"]);
    }
}
