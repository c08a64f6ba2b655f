//! What a command line asks for.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::parameters::{Cpu, TestParameters};
use linerate_units::iperf3::Format;
use linerate_units::{BitRate, ByteCount, Port};

/// A command line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    /// What to do.
    pub(crate) command: Iperf3Command,
    /// What to tell on stderr first, without the leading `warning: `.
    pub(crate) warnings: Vec<String>,
}

impl From<Iperf3Command> for Parsed {
    fn from(command: Iperf3Command) -> Self {
        Self { command, warnings: Vec::new() }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Iperf3Command {
    /// Print the help and exit with 0.
    Help,
    /// Print version and features and exit with 0.
    Version,
    /// Serve.
    Server(Box<ServerArguments>),
    /// Measure.
    Client(Box<ClientArguments>),
}

/// Options of both roles, except those that are part of the test's parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommonArguments {
    /// Port to listen on or to connect to (`-p`).
    pub(crate) port: Port,
    /// Address or host name to bind to (`-B`). An IPv6 link-local literal keeps its `%device`.
    pub(crate) bind: Option<String>,
    /// Network device to bind to (`--bind-dev`, `-B host%device`, `-c host%device`).
    pub(crate) bind_device: Option<String>,
    /// Unit of the bitrate column (`-f`).
    pub(crate) format: Format,
    /// Time between reports (`-i`), 0.1 to 60 s; `None`: no interval reports.
    pub(crate) interval: Option<Duration>,
    /// `-V`.
    pub(crate) verbose: bool,
    /// JSON instead of text.
    pub(crate) json: Option<JsonOutput>,
    /// File that receives the output and errors (`--logfile`).
    pub(crate) log_file: Option<PathBuf>,
    /// Flush after each interval (`--forceflush`).
    pub(crate) force_flush: bool,
    /// `strftime` format of the time before each line (`--timestamps`).
    pub(crate) timestamps: Option<String>,
    /// File for the process number (`-I`).
    pub(crate) pid_file: Option<PathBuf>,
    /// File to send, or to write what is received to (`-F`).
    pub(crate) file: Option<PathBuf>,
    /// Processor to run on (`-A n`).
    pub(crate) affinity: Option<Cpu>,
    /// How long a receiver waits for data (`--rcv-timeout`), 0.1 to 86400 s.
    pub(crate) receive_timeout: Duration,
    /// How long sent data may stay unacknowledged (`--snd-timeout`, `TCP_USER_TIMEOUT`); `None`: the kernel's rule.
    pub(crate) send_timeout: Option<Duration>,
    /// Keep-alive of the control connection (`--cntl-ka`); `None`: off.
    pub(crate) control_keep_alive: Option<KeepAlive>,
    /// `-4` or `-6`; `None`: both.
    pub(crate) address_family: Option<AddressFamily>,
    /// PKCS#1 padding instead of OAEP in authentication (`--use-pkcs1-padding`).
    pub(crate) pkcs1_padding: bool,
    /// Debugging output (`-d`); `None`: off.
    pub(crate) debug: Option<DebugLevel>,
}

impl CommonArguments {
    /// iperf3's receive time-out.
    pub(crate) const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);
}

impl Default for CommonArguments {
    fn default() -> Self {
        Self {
            port: Port::IPERF3,
            bind: None,
            bind_device: None,
            format: Format::AdaptiveBits,
            interval: Some(Duration::from_secs(1)),
            verbose: false,
            json: None,
            log_file: None,
            force_flush: false,
            timestamps: None,
            pid_file: None,
            file: None,
            affinity: None,
            receive_timeout: Self::RECEIVE_TIMEOUT,
            send_timeout: None,
            control_keep_alive: None,
            address_family: None,
            pkcs1_padding: false,
            debug: None,
        }
    }
}

/// How results are written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonOutput {
    /// One document at the end (`-J`).
    Document,
    /// One line per event (`--json-stream`).
    Stream,
    /// Both (`--json-stream --json-stream-full-output`).
    StreamAndDocument,
}

/// TCP keep-alive settings; `None`: the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeepAlive {
    /// Silence before the first probe (`TCP_KEEPIDLE`).
    pub(crate) idle: Option<Duration>,
    /// Time between probes (`TCP_KEEPINTVL`).
    pub(crate) interval: Option<Duration>,
    /// Unanswered probes before the connection is given up (`TCP_KEEPCNT`).
    pub(crate) count: Option<NonZeroU32>,
}

/// The address family that host names resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressFamily {
    /// `-4`.
    Ipv4,
    /// `-6`.
    Ipv6,
}

/// How much debugging output: 1 to 4, where 4 is everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DebugLevel(pub(crate) u8);

impl DebugLevel {
    /// Everything.
    pub(crate) const ALL: Self = Self(4);
}

/// `iperf3 -s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerArguments {
    /// Options of both roles.
    pub(crate) common: CommonArguments,
    /// Run in the background (`-D`).
    pub(crate) daemon: bool,
    /// Exit after one test (`-1`).
    pub(crate) one_off: bool,
    /// Start listening afresh, or with `-1` exit, after this time without a client (`--idle-timeout`).
    pub(crate) idle_timeout: Option<Duration>,
    /// `--server-bitrate-limit`.
    pub(crate) bitrate_limit: Option<BitrateLimit>,
    /// Refuse longer tests, and tests without a time (`--server-max-duration`).
    pub(crate) max_duration: Option<Duration>,
    /// Only known users may test.
    pub(crate) authentication: Option<ServerAuthentication>,
    /// Listen with Multipath TCP (`-m`).
    pub(crate) multipath: bool,
    /// Sessions that may run at once (`--max-sessions`); `None`: no limit. linerate's own.
    pub(crate) max_sessions: Option<NonZeroU32>,
    /// Clients above the limit wait instead of being sent away (`--queue`). linerate's own.
    pub(crate) queue: bool,
    /// Open the port in the host's firewall while serving (`--open-firewall`). linerate's own.
    pub(crate) open_firewall: bool,
    /// User to become once the port is bound (`--user`). linerate's own.
    pub(crate) user: Option<String>,
}

/// The total rate that a server grants one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitrateLimit {
    /// Sum over streams and directions.
    pub(crate) rate: BitRate,
    /// Time over which a running test is averaged, 0.1 to 60 s.
    pub(crate) averaging: Duration,
}

/// What a server checks credentials with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAuthentication {
    /// RSA private key, PEM (`--rsa-private-key-path`).
    pub(crate) private_key: PathBuf,
    /// Users and password hashes (`--authorized-users-path`).
    pub(crate) users: PathBuf,
    /// How far the client's clock may be off (`--time-skew-threshold`).
    pub(crate) time_skew: Duration,
}

/// `iperf3 -c HOST`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClientArguments {
    /// Options of both roles.
    pub(crate) common: CommonArguments,
    /// The server. An IPv6 link-local literal keeps its `%device`.
    pub(crate) host: String,
    /// The test. For UDP without `-l` its block size is only iperf3's last resort; see
    /// [`ClientArguments::block_size`].
    pub(crate) parameters: TestParameters,
    /// `-l`; `None`: not given, so that UDP derives it from the control connection's MSS.
    pub(crate) block_size: Option<ByteCount>,
    /// Whether `-t`, `-n` or `-k` was given; if not, `-F` ends with its file.
    pub(crate) end_given: bool,
    /// First local port of the data connections (`--cport`).
    pub(crate) client_port: Option<Port>,
    /// Longest wait for the control connection (`--connect-timeout`); `None`: the kernel's.
    pub(crate) connect_timeout: Option<Duration>,
    /// Credentials to send.
    pub(crate) authentication: Option<ClientAuthentication>,
}

/// Who a client says it is. The password comes from the environment or the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientAuthentication {
    /// `--username`.
    pub(crate) username: String,
    /// The server's RSA public key, PEM (`--rsa-public-key-path`).
    pub(crate) public_key: PathBuf,
}
