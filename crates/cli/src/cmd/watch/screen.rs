//! State and contents of the full-screen view; drawing is done elsewhere.

use linerate_model::socket::FlowKey;
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;
use linerate_units::{BitRate, display};

use super::columns::{self, TableColumn};
use super::detail;
use super::flows::{FlowRow, FlowTable};
use super::table::{self, RowSelection, ViewStyle};
use crate::keys::KeyPress;

/// Page of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScreenPage {
    #[default]
    Table,
    /// Detail of one flow.
    Flow(FlowKey),
    Help,
}

/// State of the view.
#[derive(Debug)]
pub(crate) struct WatchScreen {
    pub(crate) page: ScreenPage,
    pub(crate) choice: RowSelection,
    /// Flow of the marked row.
    pub(crate) chosen: Option<FlowKey>,
    /// First visible row.
    top: usize,
    /// Filter before typing began; `None` when no filter is being typed.
    typing: Option<String>,
    pub(crate) frozen: bool,
    listing: bool,
    interval: std::time::Duration,
    /// Message in the footer.
    pub(crate) message: Option<String>,
}

/// Action of the program after a key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Nothing,
    Quit,
    Suspend,
}

/// Number of lines that are not rows: the header, its empty line, the title, the footer.
const FRAME_LINES: usize = 4;

impl WatchScreen {
    pub(crate) fn new(choice: RowSelection, listing: bool, interval: std::time::Duration) -> Self {
        Self {
            page: ScreenPage::Table,
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

    /// Handles a key press.
    pub(crate) fn handle_key(&mut self, key: KeyPress, flows: &FlowTable, height: usize) -> KeyAction {
        self.message = None;
        match key {
            KeyPress::Control('c') => return KeyAction::Quit,
            KeyPress::Control('z') => return KeyAction::Suspend,
            key if self.typing.is_some() => self.type_filter(key),
            key => return self.command(key, flows, height),
        }
        KeyAction::Nothing
    }

    fn type_filter(&mut self, key: KeyPress) {
        match key {
            KeyPress::Enter => self.typing = None,
            KeyPress::Escape => self.choice.typed = self.typing.take().unwrap_or_default(),
            KeyPress::Backspace => drop(self.choice.typed.pop()),
            KeyPress::Control('u') => self.choice.typed.clear(),
            KeyPress::Character(character) => self.choice.typed.push(character),
            _ => {}
        }
    }

    fn command(&mut self, key: KeyPress, flows: &FlowTable, height: usize) -> KeyAction {
        match key {
            KeyPress::Character('q') => return self.back(),
            KeyPress::Escape | KeyPress::Backspace if self.page != ScreenPage::Table => self.page = ScreenPage::Table,
            KeyPress::Escape => self.choice.typed.clear(),
            KeyPress::Character('?') => {
                self.page = if self.page == ScreenPage::Help { ScreenPage::Table } else { ScreenPage::Help }
            }
            KeyPress::Character(' ') => self.frozen = !self.frozen,
            KeyPress::Character('/') => {
                self.page = ScreenPage::Table;
                self.typing = Some(self.choice.typed.clone());
            }
            KeyPress::Character('r') => self.choice.reverse = !self.choice.reverse,
            KeyPress::Character('0') => (self.choice.sort, self.choice.reverse) = (None, false),
            KeyPress::Left | KeyPress::Character('<') => self.sort_by(-1, flows.events.is_some()),
            KeyPress::Right | KeyPress::Character('>') => self.sort_by(1, flows.events.is_some()),
            // Without a marked row, the first key press marks one.
            KeyPress::Enter if self.chosen.is_none() => self.step(0, flows),
            KeyPress::Enter => {
                if let Some(key) = self.chosen.filter(|_| self.page == ScreenPage::Table) {
                    self.page = ScreenPage::Flow(key);
                }
            }
            KeyPress::Up | KeyPress::Character('k') => self.step(-1, flows),
            KeyPress::Down | KeyPress::Character('j') => self.step(1, flows),
            KeyPress::PageUp => self.step(-page_rows(height), flows),
            KeyPress::PageDown => self.step(page_rows(height), flows),
            KeyPress::Home | KeyPress::Character('g') => self.step(isize::MIN, flows),
            KeyPress::End | KeyPress::Character('G') => self.step(isize::MAX, flows),
            _ => {}
        }
        KeyAction::Nothing
    }

    /// Returns from a page to the table, or from the table to the shell.
    fn back(&mut self) -> KeyAction {
        if self.page == ScreenPage::Table {
            return KeyAction::Quit;
        }
        self.page = ScreenPage::Table;
        KeyAction::Nothing
    }

    fn sort_by(&mut self, step: isize, has_events: bool) {
        let shown = columns::ALL.into_iter().filter(|column| has_events || !column.is_event());
        let choices: Vec<Option<TableColumn>> = core::iter::once(None).chain(shown.map(Some)).collect();
        let now = choices.iter().position(|column| *column == self.choice.sort).unwrap_or(0);
        let next = now.saturating_add_signed(step.rem_euclid(isize::try_from(choices.len()).unwrap_or(1)));
        self.choice.sort = choices[next % choices.len()];
    }

    fn step(&mut self, by: isize, flows: &FlowTable) {
        let rows = self.choice.rows(flows.rows());
        let now = rows.iter().position(|row| Some(row.flow.reading.key) == self.chosen);
        let next = match now {
            // Without a marked row, the first key press marks one.
            None if by == isize::MAX => rows.len().saturating_sub(1),
            None => 0,
            Some(now) => now.saturating_add_signed(by).min(rows.len().saturating_sub(1)),
        };
        self.chosen = rows.get(next).map(|row| row.flow.reading.key);
        if let (ScreenPage::Flow(_), Some(key)) = (&self.page, self.chosen) {
            self.page = ScreenPage::Flow(key);
        }
    }

    /// Lines of the view, at most `height`.
    pub(crate) fn picture(&mut self, flows: &FlowTable, width: usize, height: usize, style: TextStyle) -> Vec<String> {
        let look = ViewStyle { width, style, listing: self.listing, marks: true };
        let mut lines = match &self.page {
            ScreenPage::Table => self.table(flows, &look, height),
            ScreenPage::Help => help(&look),
            ScreenPage::Flow(key) => match flows.row(key) {
                Some(row) => detail::lines(&row, &look),
                None => vec!["This flow has ended.".to_owned()],
            },
        };
        lines.truncate(height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(self.foot(&look));
        lines
    }

    fn table(&mut self, flows: &FlowTable, look: &ViewStyle, height: usize) -> Vec<String> {
        let rows = self.choice.rows(flows.rows());
        let visible = height.saturating_sub(FRAME_LINES).max(1);
        let chosen = rows.iter().position(|row| Some(row.flow.reading.key) == self.chosen);
        self.top = self.top.min(rows.len().saturating_sub(visible));
        if let Some(chosen) = chosen {
            self.top = self.top.clamp((chosen + 1).saturating_sub(visible), chosen);
        }
        let host = flows.events.as_ref().map(|events| events.host_line().chars().take(look.width).collect());
        let mut lines = vec![self.header(flows, &rows, look), host.unwrap_or_default()];
        let end = (self.top + visible).min(rows.len());
        lines.extend(table::lines(&rows[self.top..end], &self.choice, look, self.chosen));
        lines
    }

    fn header(&self, flows: &FlowTable, rows: &[FlowRow<'_>], look: &ViewStyle) -> String {
        let text = summary(flows, rows, self.listing, look.style.unicode);
        let state =
            if self.frozen { "  frozen".to_owned() } else { format!("  every {}", display::duration(self.interval)) };
        let text: String = format!("{text}{state}").chars().take(look.width).collect();
        look.bold(&text)
    }

    fn foot(&self, look: &ViewStyle) -> String {
        let text = if self.typing.is_some() {
            format!("/{}_  (Enter: apply, Esc: cancel; text of a process, address, port or limit)", self.choice.typed)
        } else if let Some(message) = &self.message {
            message.clone()
        } else {
            let filter =
                if self.choice.typed.is_empty() { String::new() } else { format!("[/{}] ", self.choice.typed) };
            format!("{filter}{}", self.keys(look))
        };
        look.dim(&text.chars().take(look.width).collect::<String>())
    }

    fn keys(&self, look: &ViewStyle) -> &'static str {
        /// Width of the longer line of keys.
        const LONG: usize = 76;
        match (&self.page, look.style.unicode) {
            (ScreenPage::Table, true) if look.width < LONG => "↑↓ Enter: flow  ←→: sort  /: filter  ?: help  q: quit",
            (ScreenPage::Table, false) if look.width < LONG => "Enter: flow  < >: sort  /: filter  ?: help  q: quit",
            (ScreenPage::Table, true) => "↑↓ Enter: flow  ←→ r: sort  /: filter  space: freeze  ?: help  q: quit",
            (ScreenPage::Table, false) => {
                "arrows, Enter: flow  < > r: sort  /: filter  space: freeze  ?: help  q: quit"
            }
            (ScreenPage::Flow(_), true) => "↑↓: other flow  space: freeze  Esc: all flows",
            (ScreenPage::Flow(_), false) => "arrows: other flow  space: freeze  Esc: all flows",
            (ScreenPage::Help, _) => "Esc: back",
        }
    }
}

fn page_rows(height: usize) -> isize {
    isize::try_from(height.saturating_sub(FRAME_LINES)).unwrap_or(1).max(1)
}

/// Number of flows and their total rates.
pub(crate) fn summary(flows: &FlowTable, rows: &[FlowRow<'_>], listing: bool, unicode: bool) -> String {
    if listing {
        return format!("{} listening sockets", rows.len());
    }
    let sum = |rate: fn(&linerate_model::flow::FlowChange) -> Option<BitRate>| -> BitRate {
        rows.iter().filter_map(|row| rate(row.flow.change.as_ref()?)).sum()
    };
    let count = display::counted(rows.len(), "flow");
    if flows.intervals == 0 {
        return format!("{count}, first figures after the next sample");
    }
    let (up, down) = if unicode { ("↑", "↓") } else { ("up", "down") };
    format!(
        "{count}  {up} {}  {down} {}",
        display::rate(sum(|change| change.send_rate)),
        display::rate(sum(|change| change.receive_rate))
    )
}

fn help(look: &ViewStyle) -> Vec<String> {
    let keys = [
        ("up, down, j, k", "mark a flow; Page up and down, g, G go further"),
        ("Enter", "the marked flow's history, and its limit with the reason; Esc returns"),
        ("left, right", "sort by the previous or next column; 0 by rate"),
        ("r", "reverse the order"),
        ("/", "show only flows that match: process, PID, address, port, limit"),
        ("space", "freeze; the next sample covers the whole pause"),
        ("q, Ctrl-C", "quit"),
    ];
    let columns = [
        ("UP, DOWN", "payload acknowledged by the remote host, and received from it, in bit/s"),
        ("RTT, QUEUE", "smoothed round trip, and its excess over the smallest one"),
        ("RETR", "retransmitted bytes / sent bytes"),
        ("CWND", "congestion window in bytes"),
        ("WAIT", "with --kernel-events: share of the time in which the process waited for a processor"),
        ("DROPS", "the same: packets of the flow that this host dropped"),
        ("TIMERS", "the same: retransmissions by timers / all"),
        ("LIMITED BY", "present limit of the flow, as seen from this host, with its figure"),
    ];
    let section = |title: &str, entries: &[(&str, &str)]| {
        let mut lines = vec![look.bold(title)];
        for (name, text) in entries {
            for (index, part) in wrap_text(text, look.width.saturating_sub(19)).into_iter().enumerate() {
                lines.push(format!("  {:<16} {part}", if index == 0 { name } else { "" }));
            }
        }
        lines.push(String::new());
        lines
    };
    [section("Keys", &keys), section("Columns", &columns)].concat()
}
