//! Errors of a description, with their location.

use core::fmt;
use core::ops::Range;

/// A description that cannot be a path: its file, line, reason and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    file: String,
    line: usize,
    text: String,
    message: String,
    advice: String,
}

impl DescriptionError {
    /// The description's file, as it was named.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The offending line itself; empty when the file has no such line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reason.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Remedy.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.advice
    }

    /// Finds the line of `problem` in `text`.
    pub(super) fn locate(file: &str, text: &str, problem: DescriptionProblem) -> Self {
        let (line, offending) = line_at(text, problem.span.start);
        Self {
            file: file.to_owned(),
            line,
            text: offending.trim_end().to_owned(),
            message: problem.message,
            advice: problem.advice,
        }
    }
}

impl fmt::Display for DescriptionError {
    /// `FILE:LINE: message`, the line itself, the remedy: a line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        writeln!(f, "  {} | {}", self.line, self.text)?;
        write!(f, "{}", self.advice)
    }
}

impl core::error::Error for DescriptionError {}

/// An error at a position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptionProblem {
    /// Range in bytes of the text.
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) advice: String,
}

impl DescriptionProblem {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { span, message: message.into(), advice: advice.into() }
    }
}

/// Number, from 1, of the line that contains byte `offset`, and its text.
fn line_at(text: &str, offset: usize) -> (usize, &str) {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let number = before.split(|byte| *byte == b'\n').count() - 1;
    (number + 1, text.split('\n').nth(number).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_at_their_edges() {
        let text = "one\ntwo\n";
        for (offset, expected) in [(0, (1, "one")), (3, (1, "one")), (4, (2, "two")), (7, (2, "two")), (8, (3, ""))] {
            assert_eq!(line_at(text, offset), expected, "{offset}");
        }
        assert_eq!(line_at("", 5), (1, ""));
    }

    #[test]
    fn the_message_names_file_and_line_and_shows_it() {
        let problem = DescriptionProblem::new(4..7, "'two' is wrong", "write 'three'");
        let error = DescriptionError::locate("paths/x.toml", "one\ntwo\n", problem);
        assert_eq!(error.to_string(), "paths/x.toml:2: 'two' is wrong\n  2 | two\nwrite 'three'");
    }
}
