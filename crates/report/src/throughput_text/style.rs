//! How text is dressed for a terminal.

use core::time::Duration;

use linerate_model::throughput::Flow;
use linerate_units::{StreamCount, display};

/// A width on a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Columns(u16);

impl Columns {
    /// The width that everything is made for, and that is taken where there is no terminal.
    pub const USUAL: Self = Self(80);

    /// That many characters.
    #[must_use]
    pub const fn new(characters: u16) -> Self {
        Self(characters)
    }

    /// How many characters.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        text.chars().count() <= usize::from(self.0)
    }
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its width.
    pub width: Columns,
    /// Whether to colour (ECMA-48 SGR codes).
    pub colour: bool,
    /// Whether it shows Unicode; not so with `TERM=dumb` or a locale other than UTF-8.
    pub unicode: bool,
}

/// The few colours in use, as SGR parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    /// For a pipe or a file: 80 columns, Unicode, no colours.
    #[must_use]
    pub const fn plain() -> Self {
        Self { width: Columns::USUAL, colour: false, unicode: true }
    }

    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Cyan => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// `unicode` where it can be shown, else `ascii`.
    pub(crate) const fn pick<'a>(self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// `text` in ASCII where there is no Unicode: a few characters have a likeness, the others become `?`.
    pub(crate) fn ascii(self, text: &str) -> String {
        if self.unicode || text.is_ascii() {
            return text.to_owned();
        }
        let likeness = |character: char| match character {
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
        text.chars().map(likeness).collect()
    }

    /// A time; without Unicode `us` stands for microseconds.
    pub(super) fn duration(self, time: Duration) -> String {
        let text = display::duration(time);
        if self.unicode { text } else { text.replace('µ', "u") }
    }

    /// `↑ up    4 streams`, 17 characters and more.
    pub(super) fn run_label(self, flow: Flow, streams: StreamCount) -> String {
        let (arrow, word) = match flow {
            Flow::Up => (self.pick("↑", "^"), "up"),
            Flow::Down => (self.pick("↓", "v"), "down"),
        };
        let noun = if streams == StreamCount::new(1) { "stream" } else { "streams" };
        format!("{arrow} {word:<4}  {streams} {noun}")
    }
}
