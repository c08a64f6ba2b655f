//! Tables in columns. One that is too wide wraps its words; one that is still too wide comes in several blocks.

use super::title;
use super::wrap::{columns, push_line, push_wrapped, wrapped};
use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{Cell, Table};
use crate::throughput_text::{Paint, Style};

const INDENT: &str = "  ";
const GAP: usize = 2;

/// A cell made ready: its text, and whether it may be broken into lines.
struct Ready {
    text: String,
    breakable: bool,
}

/// One column.
struct Column {
    heading: String,
    cells: Vec<Ready>,
    right: bool,
}

pub(super) fn push(text: &mut String, table: &Table, footnotes: &mut Footnotes, style: Style) {
    title(text, &table.title, style);
    let all = ready(table, footnotes, style);
    let room = usize::from(style.width.get()).max(40).saturating_sub(INDENT.len());
    for block in blocks(&all, room) {
        push_block(text, &block, room, style);
    }
    if let Some(note) = &table.note {
        push_wrapped(text, &style.ascii(&escape::line(note)), INDENT, INDENT, style, Some(Paint::Dim));
    }
}

/// What a person reads, with the number of the reason where it is unknown.
pub(super) fn cell_text(cell: &Cell, footnotes: &mut Footnotes, style: Style) -> String {
    let shown = escape::text(&cell.shown()).into_owned();
    let shown = match cell {
        Cell::Unknown(reason) => format!("{shown} [{}]", footnotes.number(reason)),
        Cell::Nothing => style.pick("–", "-").to_owned(),
        _ => shown,
    };
    style.ascii(&shown)
}

fn ready(table: &Table, footnotes: &mut Footnotes, style: Style) -> Vec<Column> {
    let heading = |index: usize| style.ascii(&escape::line(table.columns.get(index).map_or("", String::as_str)));
    let labels = table.rows.iter().map(|row| Ready { text: style.ascii(&escape::line(&row.label)), breakable: true });
    let mut all = vec![Column { heading: heading(0), cells: labels.collect(), right: false }];
    for index in 1..table.columns.len() {
        let of_column = || table.rows.iter().map(move |row| row.cells.get(index - 1).unwrap_or(&Cell::Nothing));
        let words = of_column().any(|cell| matches!(cell, Cell::Text(_)) || is_long(cell));
        let cells = of_column()
            .map(|cell| Ready {
                text: cell_text(cell, footnotes, style),
                breakable: matches!(cell, Cell::Text(_) | Cell::Qualified(..)),
            })
            .collect();
        all.push(Column { heading: heading(index), cells, right: !words });
    }
    all
}

fn is_long(cell: &Cell) -> bool {
    matches!(cell, Cell::Qualified(_, text) if columns(text) > 16)
}

impl Column {
    /// The width at which nothing is broken, headings apart.
    fn natural(&self) -> usize {
        let line = |text: &str| text.split('\n').map(columns).max().unwrap_or(0);
        self.cells.iter().map(|cell| line(&cell.text)).max().unwrap_or(0).max(self.heading_width())
    }

    /// The least width: its longest word, within reason.
    fn least(&self) -> usize {
        const LONG: usize = 18;
        let word = |text: &str| text.split([' ', '\n']).map(columns).max().unwrap_or(0).clamp(1, LONG);
        let of = |cell: &Ready| if cell.breakable { word(&cell.text) } else { columns(&cell.text) };
        self.cells.iter().map(of).max().unwrap_or(0).max(self.heading_width())
    }

    /// Headings may be broken between words.
    fn heading_width(&self) -> usize {
        self.heading.split(' ').map(columns).max().unwrap_or(0)
    }
}

/// The columns in as few blocks as fit into `room`; the labels come again in each.
fn blocks(all: &[Column], room: usize) -> Vec<Vec<&Column>> {
    let Some((labels, rest)) = all.split_first() else { return Vec::new() };
    let mut blocks = vec![vec![labels]];
    let mut taken = labels.least();
    for column in rest {
        let more = GAP + column.least();
        if taken + more > room && blocks.last().is_some_and(|block| block.len() > 1) {
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

/// Each column gets what it needs least; what is left goes to the ones that would break, the narrowest wish first.
fn widths(block: &[&Column], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = block.iter().map(|column| column.least()).collect();
    let mut spare = room.saturating_sub(widths.iter().sum::<usize>() + GAP * block.len().saturating_sub(1));
    loop {
        let wishes = block.iter().zip(&mut widths).filter(|(column, width)| column.natural() > **width);
        let Some((_, width)) = wishes.min_by_key(|(_, width)| **width) else { return widths };
        if spare == 0 {
            return widths;
        }
        *width += 1;
        spare -= 1;
    }
}

fn push_block(text: &mut String, block: &[&Column], room: usize, style: Style) {
    let widths = widths(block, room);
    let headings: Vec<Vec<String>> =
        block.iter().zip(&widths).map(|(column, width)| wrapped(&column.heading, *width)).collect();
    let height = headings.iter().map(Vec::len).max().unwrap_or(0);
    // Headings stand on the line above the numbers, not far above it.
    let lowered: Vec<Vec<String>> =
        headings.into_iter().map(|lines| [vec![String::new(); height - lines.len()], lines].concat()).collect();
    push_lines(text, block, &widths, &lowered, Some(Paint::Dim), style);
    let rows = block.first().map_or(0, |labels| labels.cells.len());
    for row in 0..rows {
        let lines: Vec<Vec<String>> = block
            .iter()
            .zip(&widths)
            .map(|(column, width)| column.cells.get(row).map_or_else(Vec::new, |cell| wrapped(&cell.text, *width)))
            .collect();
        push_lines(text, block, &widths, &lines, None, style);
    }
}

fn push_lines(
    text: &mut String,
    block: &[&Column],
    widths: &[usize],
    cells: &[Vec<String>],
    paint: Option<Paint>,
    style: Style,
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
