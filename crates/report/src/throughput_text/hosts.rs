//! Table of several hosts, each measured alone; rows appear as hosts are done.

use linerate_model::direction::Direction;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{SegmentCount, display};

use super::style::{TextColour, TextStyle};
use super::verdict;
use crate::escape;

/// Most characters of a host's name.
const MAX_HOST_WIDTH: usize = 24;

/// Characters of the columns between the host and the limit.
const FIGURES_WIDTH: usize = 36;

/// Least characters of the last column.
const MIN_LIMIT_WIDTH: usize = 12;

/// Columns of the table.
#[derive(Clone, Copy, Debug)]
pub struct HostTable {
    host_width: usize,
    style: TextStyle,
}

impl HostTable {
    /// Table for these hosts.
    #[must_use]
    pub fn new<'a>(hosts: impl Iterator<Item = &'a str>, style: TextStyle) -> Self {
        let width = hosts.map(|host| escape::line(host).chars().count()).max().unwrap_or_default();
        let others = FIGURES_WIDTH + MIN_LIMIT_WIDTH;
        let most = MAX_HOST_WIDTH.min(usize::from(style.width.get()).saturating_sub(others)).max(8);
        Self { host_width: width.clamp(4, most), style }
    }

    /// Line above the rows.
    #[must_use]
    pub fn heading(&self) -> String {
        let line = self.line("HOST", ["UP", "DOWN", "RETR"], "LIMITED BY");
        format!("{}\n", self.style.paint(TextColour::Dim, &line))
    }

    /// Row of a measured host: the best rate of each direction, the retransmits and the limit of the slower direction.
    #[must_use]
    pub fn row(&self, host: &str, result: &ThroughputResult) -> String {
        let [up, down] = [Direction::Up, Direction::Down].map(|flow| best(result, flow));
        let rate = |run: Option<&ThroughputRun>| {
            run.and_then(ThroughputRun::rate).map_or_else(|| "-".to_owned(), |measured| display::rate(measured.rate))
        };
        let counts: Vec<SegmentCount> =
            [up, down].into_iter().flatten().filter_map(ThroughputRun::retransmits).collect();
        let retransmits = if counts.is_empty() {
            "-".to_owned()
        } else {
            counts.iter().map(|count| count.get()).sum::<u64>().to_string()
        };
        let slower = [up, down].into_iter().flatten().min_by_key(|run| run.rate().map(|measured| measured.rate));
        let (limit, colour) = slower.map_or_else(|| ("no data".to_owned(), TextColour::Red), verdict::verdict_text);
        self.painted(host, [&rate(up), &rate(down), &retransmits], &limit, colour)
    }

    /// Row of a host that could not be measured.
    #[must_use]
    pub fn failure(&self, host: &str) -> String {
        self.painted(host, ["-", "-", "-"], "failed", TextColour::Red)
    }

    fn painted(&self, host: &str, figures: [&str; 3], limit: &str, colour: TextColour) -> String {
        let before = self.line(host, figures, "");
        let left = usize::from(self.style.width.get()).saturating_sub(before.chars().count() + 2).max(MIN_LIMIT_WIDTH);
        let limit = self.style.paint(colour, &self.shortened(&self.style.ascii(limit), left));
        format!("{before}  {limit}\n")
    }

    fn line(&self, host: &str, [up, down, retransmits]: [&str; 3], limit: &str) -> String {
        let host = self.shortened(&self.style.ascii(&escape::line(host)), self.host_width);
        let width = self.host_width;
        let line = format!("{host:<width$}  {up:>11}  {down:>11}  {retransmits:>6}");
        if limit.is_empty() { line } else { format!("{line}  {limit}") }
    }

    fn shortened(&self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        let start: String = text.chars().take(width.saturating_sub(1)).collect();
        format!("{start}{}", self.style.pick("…", "~"))
    }
}

/// Fastest run of a direction.
fn best(result: &ThroughputResult, flow: Direction) -> Option<&ThroughputRun> {
    let rate = |run: &ThroughputRun| run.rate().map(|measured| measured.rate);
    result.runs.iter().filter(|run| run.direction == flow && rate(run).is_some()).max_by_key(|run| rate(run))
}
