//! Several hosts: one series after the other, in one table.

use linerate_model::throughput::ThroughputResult;
use linerate_report::throughput_text::HostTable;
use linerate_sys::signals::InterruptSignals;

use super::{
    FinishedSeries, RunDisplay, SeriesStart, TestArguments, conclude_alone, ending, for_display, measure,
    missed_thresholds,
};
use crate::cmd::measurement::{print_run_line, report_missed};
use crate::console;
use crate::exit::ExitStatus;
use crate::far_session;

/// Most rows of the table: with the heading and the last line, 12 lines.
const MAX_ROWS: usize = 10;

/// Measures the hosts; what prevents one does not keep others from being measured.
pub(super) fn run(hosts: &mut [TestArguments], stop: InterruptSignals) -> ExitStatus {
    if let Some(emulated) = hosts.iter().find(|arguments| arguments.host().starts_with("lab:")) {
        console::error(&format!("{}: an emulated path is measured alone", emulated.host()), None);
        return ExitStatus::Unable;
    }
    let names: Vec<String> = hosts.iter().map(|arguments| arguments.host().to_owned()).collect();
    let table = HostTable::new(names.iter().map(String::as_str), console::data_style());
    let mut output = TableOutput { table, rows: 0 };
    let mut exits = Vec::new();
    for arguments in hosts.iter_mut() {
        exits.push(run_one(arguments, stop, &mut output));
        if stop.pending().is_some() {
            return ExitStatus::Partial;
        }
    }
    output.finish();
    exit_of(&exits)
}

/// Measures one of the hosts.
fn run_one(arguments: &mut TestArguments, stop: InterruptSignals, output: &mut TableOutput) -> ExitStatus {
    let host = arguments.host().to_owned();
    let server = match far_session::of_host(&host, &mut arguments.common) {
        Ok(server) => server,
        Err(exit) => {
            output.unreached(arguments);
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
        output.show(arguments, &done);
        conclude(arguments, &done, stop)
    };
    far_session::close(server);
    exit
}

/// Records the series, and reports its errors with its host.
fn conclude(arguments: &TestArguments, done: &FinishedSeries, stop: InterruptSignals) -> ExitStatus {
    let host = arguments.host();
    if done.is_measured() {
        arguments.common.record(&done.run);
    }
    if let Some(error) = &done.failure {
        console::error(&format!("{host}: {}", error.advice().map_or_else(|| error.to_string(), str::to_owned)), None);
    }
    match (done.failure.is_some(), stop.pending().is_some(), done.is_measured()) {
        (true, _, false) => ExitStatus::Unable,
        (true, ..) | (_, true, _) => ExitStatus::Partial,
        _ => {
            let missed = missed_thresholds(arguments, &done.result);
            report_missed(&missed.iter().map(|line| format!("{host}: {line}")).collect::<Vec<_>>());
            if missed.is_empty() { ExitStatus::Success } else { ExitStatus::Missed }
        }
    }
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
    fn show(&mut self, arguments: &TestArguments, done: &FinishedSeries) {
        if arguments.common.json {
            return print_run_line(&done.run);
        }
        let result = for_display(&done.result);
        let row = if done.is_measured() { self.table.row(&result) } else { self.table.failure(&result.host) };
        self.push(arguments, &row);
    }

    /// Shows a host whose server could not be started.
    fn unreached(&mut self, arguments: &TestArguments) {
        if !arguments.common.json {
            let row = self.table.failure(arguments.host());
            return self.push(arguments, &row);
        }
        let result = ThroughputResult {
            host: arguments.host().to_owned(),
            port: arguments.common.port(),
            peer_is_linerate: false,
            idle_rtt: None,
            runs: Vec::new(),
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
