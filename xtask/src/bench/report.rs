//! Figures of all rounds as Markdown tables.

use std::fmt::Write as _;

use super::arguments::BenchArguments;
use super::cell::BenchCell;
use super::machine::TestMachine;
use super::run::{BenchProgram, BenchRun, ProgramPair};
use super::statistics::{MedianEstimate, bootstrap_median, median, ratios};

/// Rounds of one cell.
pub(super) struct CellReport<'a> {
    cell: &'static BenchCell,
    columns: Vec<PairColumn<'a>>,
    failures: Vec<String>,
}

/// Rounds of one pair; `None` where a run failed.
struct PairColumn<'a> {
    pair: &'a ProgramPair<'a>,
    runs: Vec<Option<BenchRun>>,
}

/// Function that selects one figure of a run.
type FigureSelector = fn(&BenchRun) -> Option<f64>;

const GOODPUT: FigureSelector = |run| Some(run.goodput);
const LOSS: FigureSelector = |run| run.loss;
const PACKET_RATE: FigureSelector = |run| run.packet_rate;
const CPU_SECONDS: FigureSelector = |run| Some(run.cpu_seconds);
const CPU_SECONDS_PER_GIGABIT: FigureSelector = |run| Some(run.cpu_seconds_per_gigabit);

impl PairColumn<'_> {
    fn values(&self, figure: FigureSelector) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.as_ref().and_then(figure)).collect()
    }

    fn median(&self, figure: FigureSelector) -> Option<f64> {
        median(&self.values(figure).into_iter().flatten().collect::<Vec<_>>())
    }
}

impl<'a> CellReport<'a> {
    /// Returns a report without rounds.
    pub(super) fn new(cell: &'static BenchCell, pairs: &'a [ProgramPair<'a>]) -> Self {
        let columns = pairs.iter().map(|pair| PairColumn { pair, runs: Vec::new() }).collect();
        Self { cell, columns, failures: Vec::new() }
    }

    /// Records a failed run of `pair`.
    pub(super) fn fail(&mut self, pair: &ProgramPair<'_>, reason: &str) {
        self.failures.push(format!("{}, {}: {reason}", self.cell.name, pair.name()));
    }

    /// Adds one run of each pair.
    pub(super) fn add_round(&mut self, runs: Vec<Option<BenchRun>>) {
        for (column, run) in self.columns.iter_mut().zip(runs) {
            column.runs.push(run);
        }
    }

    /// True when every run succeeded.
    pub(super) fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }

    /// Returns the ratio of a pair to the baseline, which is the first pair.
    fn ratio(&self, column: &PairColumn<'_>, figure: FigureSelector) -> Option<MedianEstimate> {
        bootstrap_median(&ratios(&column.values(figure), &self.columns[0].values(figure)))
    }

    /// Returns one line for the terminal.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{:12}", self.cell.name);
        for column in &self.columns {
            let _ = write!(line, "  {} {}", column.pair.name(), format_figure(column.median(GOODPUT), rate));
        }
        let _ = write!(line, "  ratio {}", format_ratio(self.ratio(&self.columns[1], GOODPUT)));
        for failure in &self.failures {
            let _ = write!(line, "\n  FAILED {failure}");
        }
        line
    }
}

/// Formats the table of all cells, then the failures.
pub(super) fn tables(reports: &[CellReport<'_>]) -> String {
    let mut text = String::from(
        "| cell | client → server | goodput | ratio | packets received | loss | CPU s/Gbit | ratio |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for report in reports {
        for (index, column) in report.columns.iter().enumerate() {
            let is_baseline = index == 0;
            let ratio = |figure| {
                if is_baseline { "1".to_owned() } else { format_ratio(report.ratio(column, figure)) }
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                if is_baseline { report.cell.title } else { "" },
                column.pair.name(),
                format_figure(column.median(GOODPUT), rate),
                ratio(GOODPUT),
                format_figure(column.median(PACKET_RATE), packet_rate),
                format_figure(column.median(LOSS), |loss| format!("{:.3} %", loss * 100.0)),
                format_figure(column.median(CPU_SECONDS_PER_GIGABIT), |seconds| format!("{seconds:.4}")),
                ratio(CPU_SECONDS_PER_GIGABIT),
            );
        }
    }
    let failures: Vec<&String> = reports.iter().flat_map(|report| &report.failures).collect();
    if !failures.is_empty() {
        text.push_str("\nFailed runs, excluded from all medians:\n\n");
        for failure in failures {
            let _ = writeln!(text, "- {failure}");
        }
    }
    text
}

/// Formats the whole BENCHMARKS.md.
pub(super) fn document(
    machine: &TestMachine,
    arguments: &BenchArguments,
    programs: &[&BenchProgram],
    reports: &[CellReport<'_>],
) -> String {
    let versions: Vec<String> =
        programs.iter().map(|program| format!("{} (`{}`)", program.name, program.version)).collect();
    format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench` on {date}: linerate against the iperf3 of the same machine, over loopback.\n\n\
         - Machine: {processor}, {processors} processors; Linux {kernel}; congestion control {congestion_control}\n\
         - Programs: {versions}\n\
         - Rounds: {rounds} of {seconds} s each per cell and pair, after one warm-up of 1 s\n\n\
         {tables}\n{METHOD}\n{rounds_table}",
        date = machine.date,
        processor = machine.processor,
        processors = machine.processors,
        kernel = machine.kernel,
        congestion_control = machine.congestion_control,
        versions = versions.join(", "),
        rounds = arguments.rounds,
        seconds = arguments.seconds,
        tables = tables(reports),
        rounds_table = rounds_table(reports),
    )
}

const METHOD: &str = "## Method

- Interleaved: every round runs each pair once, and the order alternates from round to round (A B, B A, A B, …), so that
  a change of the machine's speed affects both. Every run has a fresh server (`-s -1 -J`) on a fresh port.
- Goodput is the rate at the receiver (`end.sum_received` of the client's `-J` document; with `--bidir` both
  directions together). Packets received are goodput over the size of a datagram. Loss is the receiver's count.
- CPU seconds are user and system time of both processes, all threads, start-up included, from the kernel
  (`/proc/PID/stat` of the ended process before it is waited for; each of its two parts is cut to 10 ms), divided by the
  gigabits that reached the receiver. Kernel work outside the two processes is not counted.
- Figures are medians over the rounds. A ratio is the median of the rounds' ratios to the first pair, in brackets its
  95 % interval (percentile bootstrap, 10 000 draws). Above 1 is more: good for goodput, bad for CPU. An interval that
  holds 1 shows no difference.
- Client, server and the kernel between them share the processors of one machine. On few processors the figures show
  the work of a program, not the speed of a network.
";

/// Formats the figures of every run.
fn rounds_table(reports: &[CellReport<'_>]) -> String {
    let mut text = String::from(
        "## Every round\n\n| cell | client → server | round | goodput bit/s | loss | CPU s \
            |\n|---|---|---:|---:|---:|---:|\n",
    );
    for report in reports {
        for column in &report.columns {
            for (round, run) in column.runs.iter().enumerate() {
                let figure = |figure: FigureSelector, form: fn(f64) -> String| {
                    format_figure(run.as_ref().and_then(figure), form)
                };
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} |",
                    report.cell.name,
                    column.pair.name(),
                    round + 1,
                    figure(GOODPUT, |bits| format!("{bits:.0}")),
                    figure(LOSS, |loss| format!("{loss:.6}")),
                    figure(CPU_SECONDS, |seconds| format!("{seconds:.2}")),
                );
            }
        }
    }
    text
}

/// Formats a figure, or a dash when it is unknown.
fn format_figure(value: Option<f64>, form: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), form)
}

fn format_ratio(ratio: Option<MedianEstimate>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |found| format!("{:.2} [{:.2}, {:.2}]", found.median, found.low, found.high))
}

fn rate(bits_per_second: f64) -> String {
    format!("{:.2} Gbit/s", bits_per_second / 1e9)
}

fn packet_rate(packets_per_second: f64) -> String {
    format!("{:.3} M/s", packets_per_second / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cell::CELLS;

    fn run(goodput: f64, cpu: f64) -> BenchRun {
        BenchRun {
            goodput,
            loss: None,
            packet_rate: None,
            cpu_seconds: cpu,
            cpu_seconds_per_gigabit: cpu / (goodput / 1e9),
        }
    }

    #[test]
    fn the_table_compares_with_the_first_pair_and_lists_failures() {
        let program = BenchProgram::named("iperf3");
        let other = BenchProgram::named("linerate");
        let pairs = ProgramPair::all(&program, &other, false);
        let mut report = CellReport::new(&CELLS[0], &pairs);
        report.add_round(vec![Some(run(10e9, 10.0)), Some(run(20e9, 10.0))]);
        report.add_round(vec![Some(run(12e9, 12.0)), Some(run(24e9, 12.0))]);
        report.add_round(vec![Some(run(11e9, 11.0)), None]);
        report.fail(&pairs[1], "round 3: no answer");
        assert!(!report.is_complete());
        let text = tables(&[report]);
        assert!(
            text.contains("| TCP, one stream | iperf3 → iperf3 | 11.00 Gbit/s | 1 | – | – | 1.0000 | 1 |"),
            "{text}"
        );
        let second =
            "|  | linerate → linerate | 22.00 Gbit/s | 2.00 [2.00, 2.00] | – | – | 0.5000 | 0.50 [0.50, 0.50] |";
        assert!(text.contains(second), "{text}");
        assert!(text.contains("- tcp, linerate → linerate: round 3: no answer"), "{text}");
    }
}
