//! The full-screen view: what stands in it, and what keys do to it. It draws nothing itself.

use linerate_model::socket::FlowKey;
use linerate_report::throughput_text::Style;
use linerate_units::{BitRate, display};

use super::columns::{self, Column};
use super::detail;
use super::flows::{Flows, Row};
use super::keys::Key;
use super::table::{self, Choice, Look};

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Page {
    #[default]
    Table,
    /// One flow.
    Flow(FlowKey),
    Help,
}

/// The view's state.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) page: Page,
    pub(crate) choice: Choice,
    /// The marked row's flow.
    pub(crate) chosen: Option<FlowKey>,
    /// The first row that is shown.
    top: usize,
    /// The filter is being typed; holds what stood there before.
    typing: Option<String>,
    pub(crate) frozen: bool,
    listing: bool,
    interval: std::time::Duration,
    /// Something to say at the foot.
    pub(crate) message: Option<String>,
}

/// What the program is to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    Quit,
    Suspend,
}

/// Lines that are not rows: the head, its empty line, the title, the foot.
const AROUND: usize = 4;

impl Screen {
    pub(crate) fn new(choice: Choice, listing: bool, interval: std::time::Duration) -> Self {
        Self {
            page: Page::Table,
            choice,
            chosen: None,
            top: 0,
            typing: None,
            frozen: false,
            listing,
            interval,
            message: None,
        }
    }

    /// Does what a key asks for.
    pub(crate) fn press(&mut self, key: Key, flows: &Flows, height: usize) -> Wish {
        self.message = None;
        match key {
            Key::Control('c') => return Wish::Quit,
            Key::Control('z') => return Wish::Suspend,
            key if self.typing.is_some() => self.type_filter(key),
            key => return self.command(key, flows, height),
        }
        Wish::Nothing
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.typing = None,
            Key::Escape => self.choice.typed = self.typing.take().unwrap_or_default(),
            Key::Backspace => drop(self.choice.typed.pop()),
            Key::Control('u') => self.choice.typed.clear(),
            Key::Character(character) => self.choice.typed.push(character),
            _ => {}
        }
    }

    fn command(&mut self, key: Key, flows: &Flows, height: usize) -> Wish {
        match key {
            Key::Character('q') => return self.back(),
            Key::Escape | Key::Backspace if self.page != Page::Table => self.page = Page::Table,
            Key::Escape => self.choice.typed.clear(),
            Key::Character('?') => self.page = if self.page == Page::Help { Page::Table } else { Page::Help },
            Key::Character(' ') => self.frozen = !self.frozen,
            Key::Character('/') => {
                self.page = Page::Table;
                self.typing = Some(self.choice.typed.clone());
            }
            Key::Character('r') => self.choice.reverse = !self.choice.reverse,
            Key::Character('0') => (self.choice.sort, self.choice.reverse) = (None, false),
            Key::Left | Key::Character('<') => self.sort_by(-1),
            Key::Right | Key::Character('>') => self.sort_by(1),
            Key::Enter => {
                if let Some(key) = self.chosen.filter(|_| self.page == Page::Table) {
                    self.page = Page::Flow(key);
                }
            }
            Key::Up | Key::Character('k') => self.step(-1, flows),
            Key::Down | Key::Character('j') => self.step(1, flows),
            Key::PageUp => self.step(-rows_of(height), flows),
            Key::PageDown => self.step(rows_of(height), flows),
            Key::Home | Key::Character('g') => self.step(isize::MIN, flows),
            Key::End | Key::Character('G') => self.step(isize::MAX, flows),
            _ => {}
        }
        Wish::Nothing
    }

    /// From a page to the table, from the table out.
    fn back(&mut self) -> Wish {
        if self.page == Page::Table {
            return Wish::Quit;
        }
        self.page = Page::Table;
        Wish::Nothing
    }

    fn sort_by(&mut self, step: isize) {
        let places: Vec<Option<Column>> = core::iter::once(None).chain(columns::ALL.into_iter().map(Some)).collect();
        let now = places.iter().position(|column| *column == self.choice.sort).unwrap_or(0);
        let next = now.saturating_add_signed(step.rem_euclid(isize::try_from(places.len()).unwrap_or(1)));
        self.choice.sort = places[next % places.len()];
    }

    fn step(&mut self, by: isize, flows: &Flows) {
        let rows = self.choice.rows(flows.rows());
        let now = rows.iter().position(|row| Some(row.flow.reading.key) == self.chosen);
        let next = match now {
            // Without a mark, the first key makes one.
            None if by == isize::MAX => rows.len().saturating_sub(1),
            None => 0,
            Some(now) => now.saturating_add_signed(by).min(rows.len().saturating_sub(1)),
        };
        self.chosen = rows.get(next).map(|row| row.flow.reading.key);
        if let (Page::Flow(_), Some(key)) = (&self.page, self.chosen) {
            self.page = Page::Flow(key);
        }
    }

    /// The picture: as many lines as there is room for at most.
    pub(crate) fn picture(&mut self, flows: &Flows, width: usize, height: usize, style: Style) -> Vec<String> {
        let look = Look { width, style, listing: self.listing, marks: true };
        let mut lines = match &self.page {
            Page::Table => self.table(flows, &look, height),
            Page::Help => help(&look),
            Page::Flow(key) => match flows.row(key) {
                Some(row) => detail::lines(&row, &look),
                None => vec!["This flow has ended.".to_owned()],
            },
        };
        lines.truncate(height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(self.foot(&look));
        lines
    }

    fn table(&mut self, flows: &Flows, look: &Look, height: usize) -> Vec<String> {
        let rows = self.choice.rows(flows.rows());
        let room = height.saturating_sub(AROUND).max(1);
        let chosen = rows.iter().position(|row| Some(row.flow.reading.key) == self.chosen);
        self.top = self.top.min(rows.len().saturating_sub(room));
        if let Some(chosen) = chosen {
            self.top = self.top.clamp((chosen + 1).saturating_sub(room), chosen);
        }
        let mut lines = vec![self.head(flows, &rows, look), String::new()];
        let end = (self.top + room).min(rows.len());
        lines.extend(table::lines(&rows[self.top..end], &self.choice, look, self.chosen));
        lines
    }

    fn head(&self, flows: &Flows, rows: &[Row<'_>], look: &Look) -> String {
        let text = summary(flows, rows, self.listing, look.style.unicode);
        let state =
            if self.frozen { "  frozen".to_owned() } else { format!("  every {}", display::duration(self.interval)) };
        let text: String = format!("{text}{state}").chars().take(look.width).collect();
        look.bold(&text)
    }

    fn foot(&self, look: &Look) -> String {
        let text = if self.typing.is_some() {
            format!("/{}_  (Enter: keep, Esc: leave; words of a process, address, port or limit)", self.choice.typed)
        } else if let Some(message) = &self.message {
            message.clone()
        } else {
            let filter =
                if self.choice.typed.is_empty() { String::new() } else { format!("[/{}] ", self.choice.typed) };
            format!("{filter}{}", self.keys(look))
        };
        look.dim(&text.chars().take(look.width).collect::<String>())
    }

    fn keys(&self, look: &Look) -> &'static str {
        match (&self.page, look.style.unicode) {
            (Page::Table, true) => "↑↓ Enter: flow  ←→ r: sort  /: filter  space: freeze  ?: help  q: quit",
            (Page::Table, false) => "arrows, Enter: flow  < > r: sort  /: filter  space: freeze  ?: help  q: quit",
            (Page::Flow(_), true) => "↑↓: other flow  space: freeze  Esc: all flows",
            (Page::Flow(_), false) => "arrows: other flow  space: freeze  Esc: all flows",
            (Page::Help, _) => "Esc: back",
        }
    }
}

fn rows_of(height: usize) -> isize {
    isize::try_from(height.saturating_sub(AROUND)).unwrap_or(1).max(1)
}

/// How many there are, and what they move together.
pub(crate) fn summary(flows: &Flows, rows: &[Row<'_>], listing: bool, unicode: bool) -> String {
    if listing {
        return format!("{} listening sockets", rows.len());
    }
    let sum = |rate: fn(&linerate_model::flow::FlowChange) -> Option<BitRate>| -> BitRate {
        rows.iter().filter_map(|row| rate(row.flow.change.as_ref()?)).sum()
    };
    let count = if rows.len() == 1 { "1 flow".to_owned() } else { format!("{} flows", rows.len()) };
    if flows.intervals == 0 {
        return format!("{count}, first figures after the next reading");
    }
    let (up, down) = if unicode { ("↑", "↓") } else { ("up", "down") };
    format!(
        "{count}  {up} {}  {down} {}",
        display::rate(sum(|change| change.send_rate)),
        display::rate(sum(|change| change.receive_rate))
    )
}

fn help(look: &Look) -> Vec<String> {
    let keys = [
        ("up, down, j, k", "mark a flow; Page up and down, g, G go further"),
        ("Enter", "the marked flow's history, and what limits it and why; Esc goes back"),
        ("left, right", "sort by the column before or after this one; 0 by rate"),
        ("r", "turn the order around"),
        ("/", "show only flows with these words: process, number, address, port, limit"),
        ("space", "freeze; what comes next covers the whole pause"),
        ("q, Ctrl-C", "quit"),
    ];
    let columns = [
        ("UP, DOWN", "payload acknowledged by the far end, and received from it, in bit/s"),
        ("RTT, QUEUE", "smoothed round trip, and what of it exceeds the smallest one"),
        ("AGAIN", "bytes sent again as a share of those sent"),
        ("CWND", "congestion window in bytes"),
        ("LIMITED BY", "what holds the flow back now, as this end sees it, with its figure"),
    ];
    let section = |title: &str, entries: &[(&str, &str)]| {
        let mut lines = vec![look.bold(title)];
        for (name, text) in entries {
            for (index, part) in detail::wrapped(text, look.width.saturating_sub(19)).into_iter().enumerate() {
                lines.push(format!("  {:<16} {part}", if index == 0 { name } else { "" }));
            }
        }
        lines.push(String::new());
        lines
    };
    [section("Keys", &keys), section("Columns", &columns)].concat()
}
