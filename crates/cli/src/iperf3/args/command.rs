//! Parsed commands of `linerate iperf3`.

use linerate_engine::tls::ServerTrust;
use linerate_model::address_family::AddressFamily;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::parameters::{CpuIndex, TestParameters};
use linerate_units::iperf3::UnitFormat;
use linerate_units::{BitRate, ByteCount, Port};

/// Successfully parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedCommand {
    /// Selected command.
    pub(crate) command: Iperf3Command,
    /// Warnings for stderr, without the leading `warning: `.
    pub(crate) warnings: Vec<String>,
}

impl From<Iperf3Command> for ParsedCommand {
    fn from(command: Iperf3Command) -> Self {
        Self { command, warnings: Vec::new() }
    }
}

/// Selected command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Iperf3Command {
    /// Print the help and exit with 0.
    Help,
    /// Print version and features and exit with 0.
    Version,
    /// Run the server.
    Server(Box<ServerArguments>),
    /// Run a test.
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
    pub(crate) format: UnitFormat,
    /// Report interval (`-i`), 0.1 to 60 s; `None`: no interval reports.
    pub(crate) interval: Option<Duration>,
    /// `-V`.
    pub(crate) verbose: bool,
    /// JSON output instead of text.
    pub(crate) json: Option<JsonOutput>,
    /// File that receives the output and errors (`--logfile`).
    pub(crate) log_file: Option<PathBuf>,
    /// Flush after each interval (`--forceflush`).
    pub(crate) force_flush: bool,
    /// `strftime` format of the time before each line (`--timestamps`).
    pub(crate) timestamps: Option<String>,
    /// File for the process ID (`-I`).
    pub(crate) pid_file: Option<PathBuf>,
    /// File to send, or to receive into (`-F`).
    pub(crate) file: Option<PathBuf>,
    /// Processor to run on (`-A n`).
    pub(crate) affinity: Option<CpuIndex>,
    /// Longest wait of a receiver for data (`--rcv-timeout`), 0.1 to 86400 s.
    pub(crate) receive_timeout: Duration,
    /// Longest time that sent data may stay unacknowledged (`--snd-timeout`, `TCP_USER_TIMEOUT`); `None`: the kernel's
    /// rule.
    pub(crate) send_timeout: Option<Duration>,
    /// Keep-alive of the control connection (`--cntl-ka`); `None`: off.
    pub(crate) control_keep_alive: Option<KeepAlive>,
    /// Address family (`-4` or `-6`); `None`: both.
    pub(crate) address_family: Option<AddressFamily>,
    /// PKCS#1 padding instead of OAEP in authentication (`--use-pkcs1-padding`).
    pub(crate) pkcs1_padding: bool,
    /// Debugging output (`-d`); `None`: off.
    pub(crate) debug: Option<DebugLevel>,
}

impl CommonArguments {
    /// Receive time-out of iperf3.
    pub(crate) const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);

    /// True when debugging output is shown: with JSON, it would corrupt the document.
    pub(crate) const fn shows_debugging(&self) -> bool {
        self.debug.is_some() && self.json.is_none()
    }
}

impl Default for CommonArguments {
    fn default() -> Self {
        Self {
            port: Port::IPERF3,
            bind: None,
            bind_device: None,
            format: UnitFormat::AdaptiveBits,
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

/// Format of JSON output.
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
    /// Idle time before the first probe (`TCP_KEEPIDLE`).
    pub(crate) idle: Option<Duration>,
    /// Time between probes (`TCP_KEEPINTVL`).
    pub(crate) interval: Option<Duration>,
    /// Unanswered probes before the connection is given up (`TCP_KEEPCNT`).
    pub(crate) count: Option<NonZeroU32>,
}

/// Debugging level: 1 to 4, where 4 is everything.
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
    /// Time without a client after which the server listens afresh, or with `-1` exits (`--idle-timeout`).
    pub(crate) idle_timeout: Option<Duration>,
    /// `--server-bitrate-limit`.
    pub(crate) bitrate_limit: Option<BitrateLimit>,
    /// Refuse longer tests, and tests without a time (`--server-max-duration`).
    pub(crate) max_duration: Option<Duration>,
    /// Credentials for authentication of clients.
    pub(crate) authentication: Option<ServerAuthentication>,
    /// Listen with Multipath TCP (`-m`).
    pub(crate) multipath: bool,
    /// Largest number of concurrent sessions (`--max-sessions`); `None`: no limit. Extension of linerate.
    pub(crate) max_sessions: Option<NonZeroU32>,
    /// Lets clients above the limit wait instead of refusing them (`--queue`). Extension of linerate.
    pub(crate) queue: bool,
    /// Opens the port in the host's firewall while serving (`--open-firewall`). Extension of linerate.
    pub(crate) open_firewall: bool,
    /// User after the port is bound (`--user`). Extension of linerate.
    pub(crate) user: Option<String>,
}

/// Total rate limit of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitrateLimit {
    /// Sum over streams and directions.
    pub(crate) rate: BitRate,
    /// Time over which a running test is averaged, 0.1 to 60 s.
    pub(crate) averaging: Duration,
}

/// Keys and users for authentication of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAuthentication {
    /// RSA private key, PEM (`--rsa-private-key-path`).
    pub(crate) private_key: PathBuf,
    /// Users and password hashes (`--authorized-users-path`).
    pub(crate) users: PathBuf,
    /// Largest difference from the client's clock (`--time-skew-threshold`).
    pub(crate) time_skew: Duration,
}

/// `iperf3 -c HOST`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClientArguments {
    /// Options of both roles.
    pub(crate) common: CommonArguments,
    /// Server to test. An IPv6 link-local literal keeps its `%device`.
    pub(crate) host: String,
    /// Test parameters. For UDP without `-l`, the block size is only iperf3's fallback; see
    /// [`ClientArguments::block_size`].
    pub(crate) parameters: TestParameters,
    /// `-l`; `None`: not given, so that UDP derives it from the control connection's MSS.
    pub(crate) block_size: Option<ByteCount>,
    /// True when `-t`, `-n` or `-k` was given; if not, `-F` ends with its file.
    pub(crate) end_given: bool,
    /// First local port of the data connections (`--cport`).
    pub(crate) client_port: Option<Port>,
    /// Longest wait for the control connection (`--connect-timeout`); `None`: the kernel's.
    pub(crate) connect_timeout: Option<Duration>,
    /// Credentials to send.
    pub(crate) authentication: Option<ClientAuthentication>,
    /// TLS of the conversation, with a linerate; `None` is none. Extension of linerate.
    pub(crate) tls: Option<ServerTrust>,
}

/// Identity of a client. The password comes from the environment or the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientAuthentication {
    /// `--username`.
    pub(crate) username: String,
    /// The server's RSA public key, PEM (`--rsa-public-key-path`).
    pub(crate) public_key: PathBuf,
}
