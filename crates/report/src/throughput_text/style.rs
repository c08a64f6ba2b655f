//! Text styling for a terminal.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{StreamCount, display};

/// A width on a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TerminalWidth(u16);

impl TerminalWidth {
    /// Default width, used where there is no terminal.
    pub const DEFAULT: Self = Self(80);

    /// A width of `characters`.
    #[must_use]
    pub const fn new(characters: u16) -> Self {
        Self(characters)
    }

    /// Number of characters.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        text.chars().count() <= usize::from(self.0)
    }
}

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Width.
    pub width: TerminalWidth,
    /// True to use colours (ECMA-48 SGR codes).
    pub colour: bool,
    /// True where Unicode is supported; false with `TERM=dumb` or a locale other than UTF-8.
    pub unicode: bool,
}

/// The few colours in use, as SGR parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextColour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl TextStyle {
    /// For a pipe or a file: 80 columns, Unicode, no colours.
    #[must_use]
    pub const fn plain() -> Self {
        Self { width: TerminalWidth::DEFAULT, colour: false, unicode: true }
    }

    pub(crate) fn paint(self, paint: TextColour, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match paint {
            TextColour::Bold => "1",
            TextColour::Dim => "2",
            TextColour::Red => "31",
            TextColour::Green => "32",
            TextColour::Yellow => "33",
            TextColour::Cyan => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// `unicode` where it can be shown, else `ascii`.
    pub(crate) const fn pick<'a>(self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// Converts `text` to ASCII where there is no Unicode: a few characters have a replacement, the others become `?`.
    pub(crate) fn ascii(self, text: &str) -> String {
        if self.unicode || text.is_ascii() {
            return text.to_owned();
        }
        let replacement = |character: char| match character {
            'µ' => 'u',
            '\u{202f}' | '\u{a0}' => ' ',
            '–' | '−' | '·' => '-',
            '“' | '”' => '"',
            '’' => '\'',
            '…' => '~',
            '→' => '>',
            ascii if ascii.is_ascii() => ascii,
            _ => '?',
        };
        text.chars().map(replacement).collect()
    }

    /// Formats a time; without Unicode `us` means microseconds.
    pub(super) fn duration(self, time: Duration) -> String {
        let text = display::duration(time);
        if self.unicode { text } else { text.replace('µ', "u") }
    }

    /// `↑ up    4 streams`, 17 characters and more.
    pub(super) fn run_label(self, flow: Direction, streams: StreamCount) -> String {
        let (arrow, word) = match flow {
            Direction::Up => (self.pick("↑", "^"), "up"),
            Direction::Down => (self.pick("↓", "v"), "down"),
        };
        let noun = if streams == StreamCount::new(1) { "stream" } else { "streams" };
        format!("{arrow} {word:<4}  {streams} {noun}")
    }
}
