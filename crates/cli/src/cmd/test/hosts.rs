//! Several hosts: one series after the other, in one table.

use linerate_model::throughput::ThroughputResult;
use linerate_report::throughput_text::HostTable;
use linerate_sys::signals::InterruptSignals;

use super::record::{SeriesStart, ending};
use super::{FinishedSeries, RunDisplay, TestArguments, conclude_alone, measure};
use crate::cmd::measurement::print_run_line;
use crate::console;
use crate::exit::ExitStatus;
use crate::far_session;

/// Most rows of the table: with the heading and the last line, 12 lines.
const MAX_ROWS: usize = 10;

/// Measures the hosts, which are shown as they were `typed`; what prevents one does not keep others from being measured.
pub(super) fn run(typed: &[String], hosts: &mut [TestArguments], stop: InterruptSignals) -> ExitStatus {
    if hosts.iter().any(|arguments| arguments.live.is_requested()) {
        console::error("--live draws one host: test each alone", None);
        return ExitStatus::Unable;
    }
    if let Some(emulated) = hosts.iter().find(|arguments| arguments.host().starts_with("lab:")) {
        console::error(&format!("{}: an emulated path is measured alone", emulated.host()), None);
        return ExitStatus::Unable;
    }
    let table = HostTable::new(typed.iter().map(String::as_str), console::data_style());
    let mut output = TableOutput { table, rows: 0 };
    let mut exits = Vec::new();
    for (name, arguments) in typed.iter().zip(hosts) {
        exits.push(run_one(name, arguments, stop, &mut output));
        if stop.pending().is_some() {
            return ExitStatus::Partial;
        }
    }
    output.finish();
    exit_of(&exits)
}

/// Measures one of the hosts.
fn run_one(name: &str, arguments: &mut TestArguments, stop: InterruptSignals, output: &mut TableOutput) -> ExitStatus {
    let host = arguments.host().to_owned();
    let server = match far_session::of_host(&host, &mut arguments.common) {
        Ok(server) => server,
        Err(exit) => {
            output.unreached(name, arguments);
            return exit;
        }
    };
    let common = &arguments.common;
    let exit = if common.verbose {
        let done = measure(arguments, stop, RunDisplay::AsTheyEnd);
        let exit = conclude_alone(arguments, &done, stop);
        console::data("\n");
        exit
    } else {
        let done = measure(arguments, stop, RunDisplay::None);
        output.show(name, arguments, &done);
        conclude(name, arguments, &done, stop)
    };
    far_session::close(server);
    exit
}

/// Records the series, and reports its errors with its host.
fn conclude(name: &str, arguments: &TestArguments, done: &FinishedSeries, stop: InterruptSignals) -> ExitStatus {
    if done.is_measured() {
        arguments.common.record(&done.run);
    }
    if let Some(error) = &done.failure {
        console::error(&format!("{name}: {}", error.advice().map_or_else(|| error.to_string(), str::to_owned)), None);
    }
    super::exit_of(arguments, done, stop, &format!("{name}: "))
}

/// Exit status of all hosts: 2 when none was measured, 3 when some were not, 1 when one missed a threshold.
fn exit_of(exits: &[ExitStatus]) -> ExitStatus {
    let is_measured = |exit: &ExitStatus| matches!(exit, ExitStatus::Success | ExitStatus::Missed);
    match () {
        () if !exits.iter().any(|exit| is_measured(exit) || *exit == ExitStatus::Partial) => ExitStatus::Unable,
        () if !exits.iter().all(is_measured) => ExitStatus::Partial,
        () if exits.contains(&ExitStatus::Missed) => ExitStatus::Missed,
        () => ExitStatus::Success,
    }
}

/// Rows that are printed as hosts are done.
struct TableOutput {
    table: HostTable,
    /// Number of hosts so far.
    rows: usize,
}

impl TableOutput {
    /// Shows a host that was measured, or failed.
    fn show(&mut self, name: &str, arguments: &TestArguments, done: &FinishedSeries) {
        if arguments.common.json {
            return print_run_line(&done.run);
        }
        let row = if done.is_measured() { self.table.row(name, &done.result) } else { self.table.failure(name) };
        self.push(arguments, &row);
    }

    /// Shows a host whose server could not be started.
    fn unreached(&mut self, name: &str, arguments: &TestArguments) {
        if !arguments.common.json {
            let row = self.table.failure(name);
            return self.push(arguments, &row);
        }
        let result = ThroughputResult {
            host: arguments.host().to_owned(),
            port: arguments.common.port(),
            dialed_in: false,
            peer_is_linerate: false,
            idle_rtt: None,
            runs: Vec::new(),
            quic: None,
        };
        let reason = "no server could be started over ssh".to_owned();
        let termination = ending(&result, Some(reason));
        print_run_line(&SeriesStart::now(arguments).finish(&result, termination));
    }

    fn push(&mut self, arguments: &TestArguments, row: &str) {
        if self.rows == 0 && !arguments.common.brief {
            console::data(&self.table.heading());
        }
        self.rows += 1;
        if self.rows <= MAX_ROWS {
            console::data(row);
        }
    }

    /// Shows how many rows were left out.
    fn finish(&self) {
        if self.rows > MAX_ROWS {
            let more = self.rows - MAX_ROWS;
            console::data(&format!("and {more} more hosts: --json and -v have all of them\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_that_fails_fails_the_command() {
        use ExitStatus::{Missed, Partial, Success, Unable};
        for (exits, expected) in [
            (&[Success, Success][..], Success),
            (&[Success, Missed], Missed),
            (&[Unable, Unable], Unable),
            (&[Unable, Missed], Partial),
            (&[Success, Partial], Partial),
            (&[Partial, Unable], Partial),
        ] {
            assert_eq!(exit_of(exits), expected, "{exits:?}");
        }
    }
}
