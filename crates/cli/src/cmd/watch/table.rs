//! Rows as text: filtered, sorted, and laid out.

use linerate_model::socket::FlowKey;
use linerate_report::throughput_text::TextStyle;

use super::columns::{self, TableColumn};
use super::flows::{FlowEntry, FlowRow};

/// Selection and order of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSelection {
    /// Name, part of it, or ID of the process.
    pub(crate) process: Option<String>,
    /// Typed filter: a row must contain each of its terms.
    pub(crate) typed: String,
    /// Sort column; `None`: by the total rate of both directions.
    pub(crate) sort: Option<TableColumn>,
    pub(crate) reverse: bool,
}

impl RowSelection {
    /// Selected rows, in order.
    pub(crate) fn rows<'a>(&self, rows: impl Iterator<Item = FlowRow<'a>>) -> Vec<FlowRow<'a>> {
        let terms: Vec<String> = self.typed.split_whitespace().map(str::to_lowercase).collect();
        let mut rows: Vec<FlowRow<'a>> =
            rows.filter(|row| self.is_process(row) && (terms.is_empty() || matches_filter(row, &terms))).collect();
        rows.sort_unstable_by(|one, other| {
            let order = self.sort.map_or_else(|| columns::by_rate(one, other), |column| column.compare(one, other));
            if self.reverse { order.reverse() } else { order }
        });
        rows
    }

    fn is_process(&self, row: &FlowRow<'_>) -> bool {
        let Some(wanted) = &self.process else { return true };
        row.owner.known().is_some_and(|owner| owner.name.contains(wanted) || owner.process.to_string() == *wanted)
    }
}

fn matches_filter(row: &FlowRow<'_>, terms: &[String]) -> bool {
    let key = &row.flow.reading.key;
    let limit = TableColumn::Limit.text(row, true);
    let text = format!("{} {} {} {limit}", columns::process(row.owner), key.local, key.remote).to_lowercase();
    terms.iter().all(|word| text.contains(word))
}

/// Appearance of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewStyle {
    pub(crate) width: usize,
    pub(crate) style: TextStyle,
    pub(crate) listing: bool,
    /// True when a row can be marked.
    pub(crate) marks: bool,
}

// Colours as SGR parameters.
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";

impl ViewStyle {
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

/// Title line and a line per row; the row of `chosen` is marked.
pub(crate) fn lines(
    rows: &[FlowRow<'_>],
    choice: &RowSelection,
    look: &ViewStyle,
    chosen: Option<FlowKey>,
) -> Vec<String> {
    let margin = if look.marks { 2 } else { 0 };
    let longest = |column: TableColumn| {
        rows.iter().map(|row| column.text(row, look.style.unicode).chars().count()).max().unwrap_or(0)
    };
    let has_events = rows.iter().any(|row| row.events.is_some());
    let layout = columns::layout(look.width.saturating_sub(margin), (look.listing, has_events), longest);
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

fn title(layout: &[(TableColumn, usize)], choice: &RowSelection, look: &ViewStyle, margin: usize) -> String {
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
            columns::fit_text(&text, *column, *width, look.style.unicode)
        })
        .collect();
    look.bold(format!("{}{}", " ".repeat(margin), titles.join(" ")).trim_end())
}

fn line(row: &FlowRow<'_>, layout: &[(TableColumn, usize)], look: &ViewStyle) -> String {
    let cell = |column: TableColumn, width: usize| {
        let text = columns::fit_text(&column.text(row, look.style.unicode), column, width, look.style.unicode);
        if column == TableColumn::Limit { coloured(text.trim_end(), row.flow, look) } else { text }
    };
    let cells: Vec<String> = layout.iter().map(|(column, width)| cell(*column, *width)).collect();
    cells.join(" ")
}

fn coloured(text: &str, flow: &FlowEntry, look: &ViewStyle) -> String {
    use linerate_model::flow::FlowLimit::{
        Application, FarEnd, Idle, OwnWindow, ReceiveWindow, SendBuffer, SlowReader, Unknown,
    };
    let Some(state) = flow.state else { return text.to_owned() };
    match state.limit {
        limit if columns::is_severe(&limit) => look.paint(RED, text),
        ReceiveWindow { .. } | SendBuffer { .. } | SlowReader { .. } | OwnWindow { .. } => look.paint(YELLOW, text),
        Idle | Application { .. } | FarEnd | Unknown => look.dim(text),
        _ => text.to_owned(),
    }
}
