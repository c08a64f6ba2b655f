//! Rows as text: chosen, sorted, and laid out.

use linerate_model::socket::FlowKey;
use linerate_report::throughput_text::Style;

use super::columns::{self, Column};
use super::flows::{Flow, Row};

/// How rows are chosen and sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Name, part of it, or number of the process.
    pub(crate) process: Option<String>,
    /// What was typed: each word must be found in a row.
    pub(crate) typed: String,
    /// `None`: by the rate of both ways together.
    pub(crate) sort: Option<Column>,
    pub(crate) reverse: bool,
}

impl Choice {
    /// The rows that are shown, in order.
    pub(crate) fn rows<'a>(&self, rows: impl Iterator<Item = Row<'a>>) -> Vec<Row<'a>> {
        let words: Vec<String> = self.typed.split_whitespace().map(str::to_lowercase).collect();
        let mut rows: Vec<Row<'a>> =
            rows.filter(|row| self.is_process(row) && (words.is_empty() || has_words(row, &words))).collect();
        rows.sort_unstable_by(|one, other| {
            let order = self.sort.map_or_else(|| columns::by_rate(one, other), |column| column.compare(one, other));
            if self.reverse { order.reverse() } else { order }
        });
        rows
    }

    fn is_process(&self, row: &Row<'_>) -> bool {
        let Some(wanted) = &self.process else { return true };
        row.owner.known().is_some_and(|owner| owner.name.contains(wanted) || owner.process.to_string() == *wanted)
    }
}

fn has_words(row: &Row<'_>, words: &[String]) -> bool {
    let key = &row.flow.reading.key;
    let limit = Column::Limit.text(row, true);
    let text = format!("{} {} {} {limit}", columns::process(row.owner), key.local, key.remote).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// How a table is to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) width: usize,
    pub(crate) style: Style,
    pub(crate) listing: bool,
    /// Whether one row may be marked.
    pub(crate) marks: bool,
}

// Colours as SGR parameters.
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";

impl Look {
    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        if self.style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint(BOLD, text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint(DIM, text)
    }
}

/// The title line and a line for each row; that of the flow `chosen` is marked.
pub(crate) fn lines(rows: &[Row<'_>], choice: &Choice, look: &Look, chosen: Option<FlowKey>) -> Vec<String> {
    let margin = if look.marks { 2 } else { 0 };
    let longest =
        |column: Column| rows.iter().map(|row| column.text(row, look.style.unicode).chars().count()).max().unwrap_or(0);
    let layout = columns::layout(look.width.saturating_sub(margin), look.listing, longest);
    let mut lines = vec![title(&layout, choice, look, margin)];
    for row in rows {
        let is_chosen = chosen == Some(row.flow.reading.key);
        let mark = match margin {
            0 => "",
            _ if is_chosen => "> ",
            _ => "  ",
        };
        lines.push(format!("{mark}{}", line(row, &layout, look)));
    }
    lines
}

fn title(layout: &[(Column, usize)], choice: &Choice, look: &Look, margin: usize) -> String {
    let sign = match (choice.reverse, look.style.unicode) {
        (false, true) => "▾",
        (true, true) => "▴",
        (false, false) => "v",
        (true, false) => "^",
    };
    let titles: Vec<String> = layout
        .iter()
        .map(|(column, width)| {
            let text = if choice.sort == Some(*column) {
                format!("{sign}{}", column.title())
            } else {
                column.title().to_owned()
            };
            columns::fitted(&text, *column, *width, look.style.unicode)
        })
        .collect();
    look.bold(format!("{}{}", " ".repeat(margin), titles.join(" ")).trim_end())
}

fn line(row: &Row<'_>, layout: &[(Column, usize)], look: &Look) -> String {
    let cell = |column: Column, width: usize| {
        let text = columns::fitted(&column.text(row, look.style.unicode), column, width, look.style.unicode);
        if column == Column::Limit { coloured(text.trim_end(), row.flow, look) } else { text }
    };
    let cells: Vec<String> = layout.iter().map(|(column, width)| cell(*column, *width)).collect();
    cells.join(" ")
}

fn coloured(text: &str, flow: &Flow, look: &Look) -> String {
    use linerate_model::flow::FlowLimit::{
        Application, FarEnd, Idle, OwnWindow, ReceiveWindow, SendBuffer, SlowReader, Unknown,
    };
    let Some(state) = flow.state else { return text.to_owned() };
    match state.limit {
        limit if columns::is_grave(&limit) => look.paint(RED, text),
        ReceiveWindow { .. } | SendBuffer { .. } | SlowReader { .. } | OwnWindow { .. } => look.paint(YELLOW, text),
        Idle | Application { .. } | FarEnd | Unknown => look.dim(text),
        _ => text.to_owned(),
    }
}
