//! The paths that come with the program: the files of `paths/`, built in.
//!
//! Descriptions are kept as text, and parsed like any other description when they are requested: an invalid file fails the tests,
//! not the build.

use core::fmt;

use crate::description::{DescriptionError, PathDescription};

/// A path of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryEntry {
    name: &'static str,
    text: &'static str,
}

impl LibraryEntry {
    /// Name: that of the file without `.toml`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Description as it was written, comments included: they show where each figure comes from.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// Parsed description.
    ///
    /// # Errors
    /// Those of [`PathDescription::parse`]. The tests keep every path of the library free of errors.
    pub fn description(&self) -> Result<PathDescription, DescriptionError> {
        PathDescription::parse(self.name, self.text)
    }
}

/// Sorted by name.
static ENTRIES: &[LibraryEntry] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// All paths of the library, sorted by name.
#[must_use]
pub fn all() -> &'static [LibraryEntry] {
    ENTRIES
}

/// The path of this name.
///
/// # Errors
/// When there is none, with the name that resembles it most, if one does.
pub fn find(name: &str) -> Result<&'static LibraryEntry, UnknownPath> {
    match ENTRIES.binary_search_by(|entry| entry.name.cmp(name)) {
        Ok(index) => Ok(&ENTRIES[index]),
        Err(_) => Err(UnknownPath { name: name.to_owned(), suggestion: closest(name) }),
    }
}

/// A name that no path of the library has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPath {
    name: String,
    suggestion: Option<&'static str>,
}

impl UnknownPath {
    /// The requested name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that was probably meant; `None` when none is similar.
    #[must_use]
    pub const fn suggestion(&self) -> Option<&'static str> {
        self.suggestion
    }
}

impl fmt::Display for UnknownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the library has no path '{}'", self.name)?;
        match self.suggestion {
            Some(suggestion) => write!(f, "; did you mean '{suggestion}'?"),
            None => f.write_str("; `linerate lab list` shows all of them"),
        }
    }
}

impl core::error::Error for UnknownPath {}

/// The name with the fewest edits, if these are few enough to be a typing error; else the shortest that begins with
/// `name`.
fn closest(name: &str) -> Option<&'static str> {
    let slip = (name.chars().count() / 3).clamp(1, 6);
    let nearest = ENTRIES.iter().map(|entry| (edit_distance(name, entry.name), entry.name)).min();
    match nearest {
        Some((distance, found)) if distance <= slip => Some(found),
        _ if name.len() < 3 => None,
        _ => {
            let longer = ENTRIES.iter().map(|entry| entry.name).filter(|known| known.starts_with(name));
            longer.min_by_key(|known| known.len())
        }
    }
}

/// Number of letters to insert, delete or replace to turn one text into the other (Levenshtein 1966).
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = index;
        row[0] = index + 1;
        for (place, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (from, to, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("é", "e", 1)]
        {
            assert_eq!(edit_distance(from, to), expected, "{from} {to}");
            assert_eq!(edit_distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn every_path_is_found_by_its_name_and_by_a_slip_of_it() {
        for entry in all() {
            assert_eq!(find(entry.name()), Ok(entry));
            let slip = format!("{}x", entry.name());
            let error = find(&slip).expect_err("no path ends with x");
            let suggestion = error.suggestion().expect("one letter is a slip");
            assert!(edit_distance(&slip, suggestion) <= 1, "{slip}: {suggestion}");
        }
    }

    #[test]
    fn an_unknown_name_has_a_suggestion_or_a_reference() {
        let says = |name| find(name).map_err(|error| error.to_string());
        assert_eq!(
            says("rhel-10g-171ms"),
            Err("the library has no path 'rhel-10g-171ms'; did you mean 'rhel-10g-117ms'?".to_owned())
        );
        assert_eq!(says("cable"), Err("the library has no path 'cable'; did you mean 'cable-bloat'?".to_owned()));
        for stranger in ["", "x", "an-entirely-different-name"] {
            assert_eq!(
                says(stranger),
                Err(format!("the library has no path '{stranger}'; `linerate lab list` shows all of them"))
            );
        }
    }

    #[test]
    fn the_table_is_sorted_and_no_name_comes_twice() {
        assert!(all().is_sorted_by(|one, next| one.name() < next.name()));
    }
}
