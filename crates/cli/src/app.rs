//! Command line of everything except `linerate iperf3`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::cmd::measurement::MeasurementArguments;
use crate::completion;

/// Measures a Linux network path, reports what limits it, and verifies every change.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 80, help_expected = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 done but a threshold was missed, 2 usage or environment, 3 broken off \
                        with a partial result, 4 privilege needed, 5 changes tried and rolled back. `linerate iperf3` \
                        has iperf3's: 0 and 1.")]
pub(crate) struct CliArguments {
    /// Do not keep this run in the history
    #[arg(long, global = true)]
    pub(crate) no_history: bool,
    /// Selected command.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Commands of linerate.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Measure the throughput to a server, up and down, over one connection and over several
    Test(crate::cmd::test::TestArguments),
    /// Measure the path itself, per direction: sizes, delay, loss, order, marks, hops, capacity, policers
    Path(crate::cmd::path::PathArguments),
    /// Find what limits a transfer, from both hosts: application, host or network, and the next limit
    Diagnose(crate::cmd::diagnose::DiagnoseArguments),
    /// Latency under load: the delay while the path is idle, full down, up and in both directions, with a grade
    Load(crate::cmd::load::LoadArguments),
    /// The framework for TCP throughput testing (RFC 6349): path, transfers, windows, and the three metrics
    Rfc6349(crate::cmd::rfc6349::Rfc6349Arguments),
    /// Requests and responses, connections or handshakes (TLS, QUIC) per second, with their latency
    Rr(crate::cmd::rr::RrArguments),
    /// Host settings, links and counters that slow transfers, each with its source and the exact change
    Audit(crate::cmd::audit::AuditArguments),
    /// Throughput of this host without a network: memory, disk and ciphers, as one table
    Baseline(crate::cmd::baseline::BaselineArguments),
    /// Every TCP flow of this host: process, rate, round trip, retransmissions, and its present limit
    Watch(crate::cmd::watch::WatchArguments),
    /// Change the limiting setting on trial, and keep it only if the measurements confirm an improvement
    Tune(crate::cmd::tune::TuneArguments),
    /// Shape an access link slightly below its rate to prevent bufferbloat; verified by measurement, fully reversible
    Shape(Box<crate::cmd::shape::ShapeArguments>),
    /// All steps in order: measure, explain, change, verify, report
    Doctor(crate::cmd::doctor::DoctorArguments),
    /// Changes that linerate made on this host, and their rollback
    Rollback(crate::cmd::rollback::RollbackArguments),
    /// Carry out a plan and wait, for tests
    #[command(name = "__trial", hide = true)]
    Trial(crate::cmd::rollback::TrialArguments),
    /// Serve measurements: iperf3 clients and linerate's, any number at once
    Serve(crate::cmd::serve::ServeArguments),
    /// Emulated paths on a real Linux TCP stack, in virtual time, without privileges
    Lab(crate::cmd::lab::LabArguments),
    /// Probe hosts all the time and test them on a schedule: history, usual ranges and alerts
    Monitor(Box<crate::cmd::monitor::MonitorArguments>),
    /// Tests between many hosts on one timetable: who, when, and what it costs
    Fleet(crate::cmd::fleet::FleetArguments),
    /// Plug-ins for pScheduler: the tool `linerate` and the test `diagnose`, with JSON on the standard input and output
    #[command(hide = true)]
    Pscheduler(crate::cmd::pscheduler::PschedulerArguments),
    /// Results of a fleet or a monitor for other systems: OpenTelemetry, Prometheus, pScheduler
    Export(crate::cmd::export::ExportCommandArguments),
    /// Compute limits of a path: every formula with units and its source
    Calc(crate::cmd::calc::CalcArguments),
    /// Recorded runs: list, show, compare, trends, export and import
    History(crate::cmd::history::HistoryArguments),
    /// Finished runs as a report: HTML, text, Markdown
    Report(crate::cmd::report::ReportArguments),
    /// iperf3, complete: same options, output and exit codes (see `linerate iperf3 --help`)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Iperf3 {
        /// iperf3's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<std::ffi::OsString>,
    },
    /// wondershaper's command line for `linerate shape` (see `linerate wondershaper -h`)
    #[command(disable_help_flag = true, hide = true)]
    Wondershaper {
        /// wondershaper's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of linerate, or of one of its commands
    Man {
        /// The command; without it, the page of linerate itself
        #[arg(add = ArgValueCompleter::new(completion::commands))]
        command: Option<String>,
        /// Write the pages of all commands to this directory instead, for example ~/.local/share/man/man1
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
        dir: Option<PathBuf>,
    },
}

impl CliCommand {
    /// True with `--json-stream`, which then implies `--json`: the document is the last event.
    pub(crate) fn take_json_stream(&mut self) -> bool {
        fn common(common: &mut MeasurementArguments) -> (&mut bool, bool) {
            (&mut common.json, common.json_stream)
        }
        let (json, is_streamed) = match self {
            Self::Test(arguments) => common(&mut arguments.common),
            Self::Path(arguments) => common(&mut arguments.common),
            Self::Load(arguments) => common(&mut arguments.common),
            Self::Rfc6349(arguments) => common(&mut arguments.common),
            Self::Rr(arguments) => common(&mut arguments.common),
            Self::Diagnose(arguments) => common(&mut arguments.common),
            Self::Tune(arguments) => common(&mut arguments.common),
            Self::Doctor(arguments) => common(&mut arguments.common),
            Self::Shape(arguments) => (&mut arguments.options.json, arguments.options.json_stream),
            Self::Baseline(arguments) => (&mut arguments.json, arguments.json_stream),
            Self::Watch(arguments) => (&mut arguments.json, arguments.json_stream),
            _ => return false,
        };
        *json |= is_streamed;
        is_streamed
    }
}
