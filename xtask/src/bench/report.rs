//! BENCHMARKS.md.

use super::arguments::BenchArguments;
use super::cell;
use super::machine::TestMachine;
use super::peers::BenchPeers;
use super::series::{CellSeries, FAR_BEHIND, SECOND_NARROWING};
use super::tables;

/// Formats the whole document.
pub(super) fn document(
    machine: &TestMachine,
    arguments: &BenchArguments,
    peers: &BenchPeers,
    cells: &[CellSeries],
) -> String {
    let found = peers.programs.iter().map(|program| format!("| {} | `{}` |\n", program.name, program.version));
    let missing = peers.missing.iter().map(|(name, reason)| format!("| {name} | not run: {reason} |\n"));
    format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench` on {date}.\n\n\
         - Machine: {processor}, {processors} processors; Linux {kernel}; congestion control {congestion_control}\n\
         - Rounds: {rounds} of {seconds} s each per cell and program, in random order (seed {seed}){narrowed}\n\
         - Cells: {measured} of {known}\n\n\
         | program | version |\n|---|---|\n{programs}\n\
         ## linerate and the best of the others\n\n{summary}\n\
         ## Every program\n\n{transfers}\n{waits}{failures}\n{METHOD}",
        date = machine.date,
        processor = machine.processor,
        processors = machine.processors,
        kernel = machine.kernel,
        congestion_control = machine.congestion_control,
        rounds = arguments.rounds,
        seconds = arguments.seconds,
        seed = arguments.seed,
        narrowed = arguments.narrow_after.map(narrowed).unwrap_or_default(),
        measured = cells.len(),
        known = cell::cells().len(),
        programs = found.chain(missing).collect::<String>(),
        summary = tables::summary(cells),
        transfers = tables::transfers(cells),
        waits = tables::waits(cells),
        failures = tables::failures(cells),
    )
}

/// Describes the rounds of the contenders that cannot decide a cell.
fn narrowed(after: usize) -> String {
    let [far, near] = FAR_BEHIND;
    let later = after * SECOND_NARROWING;
    format!(
        "; programs {far} times worse than the best of the others after {after} rounds, or {near} times after {later}, have no \
         further ones in that cell, and neither have linerate and the bare loop with options that far behind linerate's best"
    )
}

const METHOD: &str = "## Method

- Each round runs every cell once with every program, cells and programs in an order that the seed decides, so that a
  change of the machine's speed meets all of them. Only runs of the same round are compared. Every run has a fresh server on
  a fresh port; of `clients-N`, each client has its own.
- A program runs with its defaults and, where it has options that make the cell faster, with those; the tables name them. The
  first table compares the better of linerate's two with the best of the others, both chosen by the figure that decides.
- linerate is the static program of its packages (`cargo xtask dist`).
- The bare loop makes the system calls of linerate's data path and nothing else: no protocol, intervals, samples or accounts.
- Goodput is the rate at the receiver, as the client's document states it; with `--bidir` of both directions together. Packets
  received are goodput over the size of a datagram. Loss and jitter are the receiver's.
- CPU seconds are user and system time of both processes, all threads, start-up included (`getrusage`), per gigabit that
  reached the receiver. The machine's are those of /proc/stat, in which the kernel's deferred interrupts are, too; on a machine
  that does something else they are of no use. Waits are voluntary context switches of all threads per second.
- Figures are medians over the rounds. A ratio is the median of the rounds' ratios, in brackets its 95 % interval (percentile
  bootstrap, 10 000 draws). Above 1 is more: good for goodput, bad for processor time and waits. What decides a cell is the
  goodput, at a limited rate the processor time, else the wait.
- Receivers that discard the payload in the kernel (`--skip-rx-copy`) are cheaper than any application, which reads it.
- At a limited rate all programs mostly wait: a test of a second costs little more than its start, its end and its wake-ups.
  linerate has more of the latter where it sends smaller bursts. A slow stream without a requested block size sends 20 segments
  at a time, at most 128 KiB and a second's bytes (29 kB over Ethernet), and as many in each second, iperf3 128 KiB: a short
  queue holds the smaller burst. In a test of a second at 10 Mbit/s that is 10 Mbit; iperf3's ten blocks are 10.5. A thread
  for each stream costs its creation, too, next to programs that have one for all. docs/benchmark-profiles.md has profiles.
- Client, server and the kernel between them share the processors of one machine. On few processors the figures show the work
  of a program, not the speed of a network.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::program::{BenchProgram, Dialect};
    use crate::bench::series::tests::series;

    #[test]
    fn missing_programs_are_named_as_not_run() {
        let peers = BenchPeers {
            programs: vec![BenchProgram::named("linerate", Dialect::Iperf3, "")],
            missing: vec![("xfr", "no network".to_owned())],
        };
        let machine = TestMachine::read(Some("2026-01-01".to_owned())).expect("this is Linux");
        let cells = [series("tcp-p1-up", &[("linerate", Dialect::Iperf3, 1e9)])];
        let text = document(&machine, &BenchArguments::default(), &peers, &cells);
        assert!(text.contains("| linerate | `linerate` |\n| xfr | not run: no network |\n"), "{text}");
        assert!(text.contains("Written by `cargo xtask bench` on 2026-01-01."), "{text}");
        assert!(!text.contains("no further"), "{text}");
        let arguments = BenchArguments { narrow_after: Some(2), ..BenchArguments::default() };
        assert!(
            document(&machine, &arguments, &peers, &cells).contains("after 2 rounds, or 1.15 times after 6,"),
            "{text}"
        );
    }
}
