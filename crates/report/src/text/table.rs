//! Tables in columns. A table that is too wide wraps its text; one that is still too wide is split into blocks.

use super::title;
use super::wrap::{columns, push_line, push_wrapped, wrap_text};
use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{ReportTable, TableCell};
use crate::throughput_text::{TextColour, TextStyle};

const INDENT: &str = "  ";
const GAP: usize = 2;

/// A rendered cell: its text, and whether it may be wrapped.
struct RenderedCell {
    text: String,
    breakable: bool,
}

/// A column.
struct RenderedColumn {
    heading: String,
    cells: Vec<RenderedCell>,
    right: bool,
}

pub(super) fn push(text: &mut String, table: &ReportTable, footnotes: &mut Footnotes, style: TextStyle) {
    title(text, &table.title, style);
    let all = render_columns(table, footnotes, style);
    let available = usize::from(style.width.get()).max(40).saturating_sub(INDENT.len());
    for block in blocks(&all, available) {
        push_block(text, &block, available, style);
    }
    if let Some(note) = &table.note {
        push_wrapped(text, &style.ascii(&escape::line(note)), INDENT, INDENT, style, Some(TextColour::Dim));
    }
}

/// Display text, with the number of the reason where it is unknown.
pub(super) fn cell_text(cell: &TableCell, footnotes: &mut Footnotes, style: TextStyle) -> String {
    let shown = escape::text(&cell.display_text()).into_owned();
    let shown = match cell {
        TableCell::Unknown(reason) => format!("{shown} [{}]", footnotes.number(reason)),
        TableCell::Nothing => style.pick("–", "-").to_owned(),
        _ => shown,
    };
    style.ascii(&shown)
}

fn render_columns(table: &ReportTable, footnotes: &mut Footnotes, style: TextStyle) -> Vec<RenderedColumn> {
    let heading = |index: usize| style.ascii(&escape::line(table.columns.get(index).map_or("", String::as_str)));
    let labels =
        table.rows.iter().map(|row| RenderedCell { text: style.ascii(&escape::line(&row.label)), breakable: true });
    let mut all = vec![RenderedColumn { heading: heading(0), cells: labels.collect(), right: false }];
    for index in 1..table.columns.len() {
        let of_column = || table.rows.iter().map(move |row| row.cells.get(index - 1).unwrap_or(&TableCell::Nothing));
        let has_text = of_column().any(|cell| matches!(cell, TableCell::Text(_)) || is_long(cell));
        let cells = of_column()
            .map(|cell| RenderedCell {
                text: cell_text(cell, footnotes, style),
                breakable: matches!(cell, TableCell::Text(_) | TableCell::Qualified(..)),
            })
            .collect();
        all.push(RenderedColumn { heading: heading(index), cells, right: !has_text });
    }
    all
}

fn is_long(cell: &TableCell) -> bool {
    matches!(cell, TableCell::Qualified(_, text) if columns(text) > 16)
}

impl RenderedColumn {
    /// Width at which nothing wraps, headings apart.
    fn natural_width(&self) -> usize {
        let line = |text: &str| text.split('\n').map(columns).max().unwrap_or(0);
        self.cells.iter().map(|cell| line(&cell.text)).max().unwrap_or(0).max(self.heading_width())
    }

    /// Minimum width: the longest word, within limits.
    fn least(&self) -> usize {
        const MAX_WORD_WIDTH: usize = 18;
        let word = |text: &str| text.split([' ', '\n']).map(columns).max().unwrap_or(0).clamp(1, MAX_WORD_WIDTH);
        let of = |cell: &RenderedCell| if cell.breakable { word(&cell.text) } else { columns(&cell.text) };
        self.cells.iter().map(of).max().unwrap_or(0).max(self.heading_width())
    }

    /// Width of the longest word: headings may wrap between words.
    fn heading_width(&self) -> usize {
        self.heading.split(' ').map(columns).max().unwrap_or(0)
    }
}

/// Splits the columns into as few blocks as fit into `available` columns; each block repeats the labels.
fn blocks(all: &[RenderedColumn], available: usize) -> Vec<Vec<&RenderedColumn>> {
    let Some((labels, rest)) = all.split_first() else { return Vec::new() };
    let mut blocks = vec![vec![labels]];
    let mut taken = labels.least();
    for column in rest {
        let more = GAP + column.least();
        if taken + more > available && blocks.last().is_some_and(|block| block.len() > 1) {
            blocks.push(vec![labels]);
            taken = labels.least();
        }
        taken += more;
        if let Some(block) = blocks.last_mut() {
            block.push(column);
        }
    }
    blocks
}

/// Gives each column its minimum width; spare columns go to the columns that would wrap, the narrowest first.
fn widths(block: &[&RenderedColumn], available: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = block.iter().map(|column| column.least()).collect();
    let mut spare = available.saturating_sub(widths.iter().sum::<usize>() + GAP * block.len().saturating_sub(1));
    loop {
        let wrapping = block.iter().zip(&mut widths).filter(|(column, width)| column.natural_width() > **width);
        let Some((_, width)) = wrapping.min_by_key(|(_, width)| **width) else { return widths };
        if spare == 0 {
            return widths;
        }
        *width += 1;
        spare -= 1;
    }
}

fn push_block(text: &mut String, block: &[&RenderedColumn], available: usize, style: TextStyle) {
    let widths = widths(block, available);
    let headings: Vec<Vec<String>> =
        block.iter().zip(&widths).map(|(column, width)| wrap_text(&column.heading, *width)).collect();
    let height = headings.iter().map(Vec::len).max().unwrap_or(0);
    // Headings are aligned to the bottom, next to the numbers.
    let lowered: Vec<Vec<String>> =
        headings.into_iter().map(|lines| [vec![String::new(); height - lines.len()], lines].concat()).collect();
    push_lines(text, block, &widths, &lowered, Some(TextColour::Dim), style);
    let rows = block.first().map_or(0, |labels| labels.cells.len());
    for row in 0..rows {
        let lines: Vec<Vec<String>> = block
            .iter()
            .zip(&widths)
            .map(|(column, width)| column.cells.get(row).map_or_else(Vec::new, |cell| wrap_text(&cell.text, *width)))
            .collect();
        push_lines(text, block, &widths, &lines, None, style);
    }
}

fn push_lines(
    text: &mut String,
    block: &[&RenderedColumn],
    widths: &[usize],
    cells: &[Vec<String>],
    paint: Option<TextColour>,
    style: TextStyle,
) {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        let mut row = INDENT.to_owned();
        for ((column, width), lines) in block.iter().zip(widths).zip(cells) {
            if row.len() > INDENT.len() {
                row.push_str(&" ".repeat(GAP));
            }
            let piece = lines.get(line).map_or("", String::as_str);
            let padding = " ".repeat(width.saturating_sub(columns(piece)));
            row.push_str(&if column.right { padding + piece } else { piece.to_owned() + &padding });
        }
        let row = row.trim_end();
        push_line(text, &paint.map_or_else(|| row.to_owned(), |paint| style.paint(paint, row)));
    }
}
