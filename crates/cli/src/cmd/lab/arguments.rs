//! The command line of `linerate lab`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use linerate_lab::kernel::SeriesVersion;
use linerate_lab::session::SessionRequest;

use super::ad_hoc::AdHocPath;
use crate::{completion, values};

/// `linerate lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArguments {
    /// Task of the lab.
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
        /// A path of the library, a TOML file, or properties such as rate=10M,rtt=20ms
        #[arg(value_name = "PATH", add = ArgValueCompleter::new(completion::lab_paths))]
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
    /// Print a path for another tool: as a script of tc for hosts of your own, or as a topology for containerlab
    Export {
        /// A path of the library, a TOML file, or properties such as rate=10M,rtt=20ms
        #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
        path: String,
        /// Tool
        #[arg(long, value_enum, default_value = "tc")]
        format: ExportFormat,
    },
    /// Run a command on a path: linerate's own (`test far`, `iperf3 -c far`) or a program of this host (`ping far`, `/usr/bin/iperf3 -c far`)
    Run(Box<LabRunArguments>),
    /// Check which methods of emulation work on this host, and show why others do not
    Check {
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// The lab's kernel
    #[command(arg_required_else_help = true)]
    Kernel {
        /// Task of the lab.
        #[command(subcommand)]
        command: KernelCommand,
    },
}

/// `linerate lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// A path of the library, or a TOML file; without one, the options describe the path
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(completion::lab_paths), required_unless_present = "ad_hoc", conflicts_with = "ad_hoc")]
    pub(crate) path: Option<String>,
    /// Properties of a path without a file.
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocPath,
    /// The command with its arguments; without one, the path's own scenario. The hosts are called near (where it runs)
    /// and far; a linerate server listens on far
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// Options of a run in the lab.
    #[command(flatten)]
    pub(crate) lab: LabOptions,
}

/// Options of a run in the lab.
#[derive(Clone, Debug, Args)]
pub(crate) struct LabOptions {
    /// Capture the packets of one device into this file (pcap with nanoseconds)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Device to capture at, as HOST:DEVICE
    #[arg(long, value_name = "HOST:DEVICE", default_value = "near:eth0", requires = "pcap")]
    pub(crate) pcap_at: String,
    /// Emulation of the path
    #[arg(long, value_enum, default_value = "uml")]
    pub(crate) back_end: BackEnd,
    /// Seed of everything random; without it, the path's own
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Give up when the guest's time does not advance for this long
    #[arg(long, default_value = "60s", value_parser = values::duration, value_name = "TIME")]
    pub(crate) stall_limit: Duration,
    /// Kernel to use instead of the newest of `lab kernel build`: a file, or the version of a built one, such as 6.1
    #[arg(long, value_name = "FILE|VERSION", value_hint = ValueHint::FilePath)]
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
            stall_limit: SessionRequest::STALL_LIMIT,
            kernel: None,
            verbose: false,
        }
    }
}

/// Emulation of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackEnd {
    /// A Linux kernel as a process, in virtual time (User-Mode Linux)
    Uml,
    /// Network namespaces of this host with netem, in real time; needs root
    Namespaces,
}

/// Tool that an exported path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A shell script of tc commands, for the hosts at both ends
    Tc,
    /// A topology for containerlab (YAML)
    Containerlab,
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
        /// Version of the distribution's package, such as 6.1; without it, the newest that is known to work
        #[arg(long, value_name = "VERSION", conflicts_with = "source")]
        linux: Option<SeriesVersion>,
        /// Compilers at once; without it, one for each processor
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        /// No progress on the standard error output
        #[arg(short, long)]
        quiet: bool,
    },
    /// List the kernels in the cache
    Status {
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
}
