//! The command line of everything but iperf3's own.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};
use linerate_units::{BitRate, ByteCount, Port, parse};

use crate::cmd::measurement::MeasurementArguments;

/// Measures a Linux network path, says what limits it, and proves every change.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 80, help_expected = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 done but a threshold was missed, 2 usage or environment, 3 broken off \
                        with a partial result, 4 privilege needed, 5 changes tried and taken back. `linerate iperf3` \
                        has iperf3's: 0 and 1.")]
pub(crate) struct App {
    /// Do not keep this run in the history
    #[arg(long, global = true)]
    pub(crate) no_history: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the throughput to a server, up and down, over one connection and over several
    Test(TestArguments),
    /// Measure the path itself, each way: sizes, delays, losses, order, marks, hops, capacity, policers
    Path(crate::cmd::path::PathArguments),
    /// What limits a transfer, from both ends: the application, a host or the network, and what would come next
    Diagnose(crate::cmd::diagnose::DiagnoseArguments),
    /// Latency under load: the delay while the path is idle, full down, up and both ways, with a grade
    Load(crate::cmd::load::LoadArguments),
    /// The framework for TCP throughput testing (RFC 6349): path, transfers, windows, and the three metrics
    Rfc6349(crate::cmd::rfc6349::Rfc6349Arguments),
    /// What of this host slows transfers: settings, links, counters, each with its source and the exact change
    Audit(crate::cmd::audit::AuditArguments),
    /// What this host can do without a network: memory, disk and ciphers, as one table
    Baseline(crate::cmd::baseline::BaselineArguments),
    /// Every TCP flow of this host: process, rate, round trip, retransmissions, and what limits it now
    Watch(crate::cmd::watch::WatchArguments),
    /// Change the one thing that limits, on trial, and keep it only if the measurements say so
    Tune(crate::cmd::tune::TuneArguments),
    /// Hold a line a little below its rate, so that a full one delays nobody; proven by measurement, and taken back exactly
    Shape(Box<crate::cmd::shape::ShapeArguments>),
    /// All of it in order: measure, explain, change, prove, report
    Doctor(crate::cmd::doctor::DoctorArguments),
    /// What linerate has changed on this host, and the way back
    Rollback(crate::cmd::rollback::RollbackArguments),
    /// Carry out a plan and wait, for tests
    #[command(name = "__trial", hide = true)]
    Trial(crate::cmd::rollback::TrialArguments),
    /// Serve measurements: iperf3 clients and linerate's, any number at once
    Serve(ServeArguments),
    /// Emulated paths on a real Linux TCP stack, in virtual time, without privileges
    Lab(LabArguments),
    /// Compute what a path can give: every formula with units, in each direction
    Calc(crate::cmd::calc::CalcArguments),
    /// The runs that are kept: list, show, compare, trends, export and import
    History(crate::cmd::history::HistoryArguments),
    /// Finished runs as something to read, to look at and to send: HTML, text, Markdown
    Report(crate::cmd::report::ReportArguments),
    /// iperf3, complete: same options, output and exit codes (see `linerate iperf3 --help`)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Iperf3 {
        /// iperf3's own arguments
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
        command: Option<String>,
    },
}

/// `linerate test`.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The server: a linerate (`linerate serve`) or any iperf3; or an emulated path, as `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Time of each run
    #[arg(short, long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Time at the start of each run that does not count
    #[arg(short, long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    pub(crate) omit: Duration,
    /// Streams of the parallel runs; 1 leaves them out
    #[arg(short = 'P', long, default_value = "4", value_name = "STREAMS", value_parser = clap::value_parser!(u64).range(1..=128))]
    pub(crate) parallel: u64,
    /// Only from here to the server
    #[arg(long, conflicts_with = "down")]
    pub(crate) up: bool,
    /// Only from the server to here
    #[arg(long)]
    pub(crate) down: bool,
    /// Time between readings, 10ms to 1min; without it 200ms, and 1s where the server sends. Below 200ms the ends do not
    /// tell each other of their sockets, and there is no diagnosis
    #[arg(long, value_parser = interval, value_name = "TIME")]
    pub(crate) interval: Option<Duration>,
    /// Congestion control on both ends, for example cubic or bbr
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Socket buffers on both ends, for example 4MiB
    #[arg(short, long, value_parser = size, value_name = "SIZE")]
    pub(crate) window: Option<ByteCount>,
    /// Exit with 1 when the best run up is slower than this, for example 900M
    #[arg(long, value_parser = rate, value_name = "RATE")]
    pub(crate) min_up: Option<BitRate>,
    /// Exit with 1 when the best run down is slower than this
    #[arg(long, value_parser = rate, value_name = "RATE")]
    pub(crate) min_down: Option<BitRate>,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
}

/// From where and over which family.
#[derive(Debug, Args)]
pub(crate) struct NetworkArguments {
    /// Address to use on this host
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Network interface to use on this host
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) bind_dev: Option<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    pub(crate) ipv6: bool,
}

/// `linerate serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Port, for TCP and UDP; 0 lets the system choose
    #[arg(short, long, default_value = "5201")]
    pub(crate) port: u16,
    /// Sessions at once; further clients are told that the server is busy, or wait with --queue
    #[arg(long, value_name = "N")]
    pub(crate) max_sessions: Option<NonZeroUsize>,
    /// Let clients wait for their turn instead of telling them that the server is busy
    #[arg(long)]
    pub(crate) queue: bool,
    /// Refuse tests that ask for more than this rate in all, and end those that exceed it
    #[arg(long, value_parser = rate, value_name = "RATE")]
    pub(crate) server_bitrate_limit: Option<BitRate>,
    /// Refuse tests that last longer, and tests without a time limit
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) server_max_duration: Option<Duration>,
    /// End tests in which nothing has moved for this long
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME")]
    pub(crate) stall_timeout: Duration,
    /// Read from each TCP connection no faster than this, as a slow application would, for example 5MB/s
    #[arg(long, value_parser = rate, value_name = "RATE")]
    pub(crate) read_rate: Option<BitRate>,
    /// RSA private key (PEM): only known users may test
    #[arg(long, requires = "authorized_users_path", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// The known users: lines of `name,hash` as iperf3 has them
    #[arg(long, requires = "rsa_private_key_path", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// UDP port on which STAMP senders are answered (RFC 8762), 0 for none; else 862, or if that cannot be had, the port
    /// after the server's
    #[arg(long, value_name = "PORT")]
    pub(crate) stamp_port: Option<u16>,
    /// Answer only STAMP senders that have this key (authenticated mode): a file with hexadecimal digits or the key itself
    #[arg(long, conflicts_with = "no_stamp", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stamp_key_file: Option<PathBuf>,
    /// Answer no STAMP senders, as --stamp-port 0
    #[arg(long, conflicts_with = "stamp_port")]
    pub(crate) no_stamp: bool,
    /// Open the port in this host's firewall while serving
    #[arg(long, conflicts_with = "user")]
    pub(crate) open_firewall: bool,
    /// Become this user once the port is bound
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Print one JSON document per finished test, each on a line
    #[arg(long)]
    pub(crate) json: bool,
    /// The network side.
    #[command(flatten)]
    pub(crate) network: NetworkArguments,
}

/// `linerate lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// The commands of the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the paths of the library, each with its story
    List {
        /// Only those with this cause, for example loss or receive-window
        #[arg(long, value_name = "LABEL")]
        label: Option<String>,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Draw a path with its delays and queues, and what the formulas expect of it
    Show {
        /// A path of the library, or a TOML file
        #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
        path: String,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long, conflicts_with_all = ["plan", "toml"])]
        json: bool,
        /// Print the description itself, as a start for one of your own
        #[arg(long, conflicts_with = "plan")]
        toml: bool,
        /// Print what would be set up, as lines of ip, tc and sysctl
        #[arg(long)]
        plan: bool,
    },
    /// Run a command on a path: linerate's own (`test far`, `iperf3 -c far`) or a program of this host (`ping far`)
    Run(LabRunArguments),
    /// Say which ways to emulate a path work on this host, and why others do not
    Check {
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// The lab's kernel
    #[command(arg_required_else_help = true)]
    Kernel {
        /// What to do.
        #[command(subcommand)]
        command: KernelCommand,
    },
}

/// `linerate lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// A path of the library, or a TOML file
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: String,
    /// The command with its arguments; without one, the path's own scenario. The hosts are called near (where it runs)
    /// and far; a linerate server listens on far
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// How the lab is run.
    #[command(flatten)]
    pub(crate) lab: LabOptions,
}

/// How the lab is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct LabOptions {
    /// Capture the packets of one device into this file (pcap with nanoseconds)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Device to capture at, as HOST:DEVICE
    #[arg(long, value_name = "HOST:DEVICE", default_value = "near:eth0", requires = "pcap")]
    pub(crate) pcap_at: String,
    /// How the path is emulated
    #[arg(long, value_enum, default_value = "uml")]
    pub(crate) back_end: BackEnd,
    /// Seed of everything random; without it, the path's own
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Give up when the guest's time stands still for this long
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub(crate) stall_limit: Duration,
    /// Kernel to use instead of the one that `lab kernel build` made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kernel: Option<PathBuf>,
    /// Say on the standard error output what is set up, and how fast time passed
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            pcap: None,
            pcap_at: "near:eth0".to_owned(),
            back_end: BackEnd::Uml,
            seed: None,
            stall_limit: Duration::from_secs(60),
            kernel: None,
            verbose: false,
        }
    }
}

/// How a path is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackEnd {
    /// A Linux kernel as a process, in virtual time (User-Mode Linux)
    Uml,
    /// Network namespaces of this host with netem, in real time; needs root
    Namespaces,
}

/// `linerate lab kernel`.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build the kernel, once; it stays in the user's cache
    Build {
        /// Do nothing when it is there
        #[arg(long)]
        if_missing: bool,
        /// Sources to build from (a kernel.org tarball or an unpacked tree) instead of the distribution's package
        #[arg(long, value_name = "TARBALL", value_hint = ValueHint::AnyPath)]
        source: Option<PathBuf>,
        /// Compilers at once; without it, one for each processor
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        /// No progress on the standard error output
        #[arg(short, long)]
        quiet: bool,
    },
    /// Say which kernels are in the cache
    Status {
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn port(text: &str) -> Result<Port, String> {
    text.parse().ok().and_then(Port::new).ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    parse::rate(text).map_err(|error| error.to_string())
}

pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    parse::size(text).map_err(|error| error.to_string())
}

/// A time between readings.
fn interval(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let (least, most) = (Duration::from_millis(10), Duration::from_secs(60));
    if time < least || time > most { Err("readings are 10ms to 1min apart".to_owned()) } else { Ok(time) }
}

/// A time with its unit; a bare number is seconds, as iperf3's options have taught everybody.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let with_unit = if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !text.is_empty() {
        format!("{text}s")
    } else {
        text.to_owned()
    };
    parse::time(&with_unit).map_err(|error| error.to_string())
}
