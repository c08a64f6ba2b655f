//! Parameter errors with iperf3's numbers and texts, which scripts match.

use linerate_units::iperf3::Iperf3NumberError;

/// Value or combination of options that iperf3 refuses before a test.
///
/// Source: iperf3 `src/iperf_api.h` for the numbers, `iperf_strerror` for the texts. Texts that end in `": "` are
/// those to which iperf3 appends the system's error, of which there is none while options are read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ParameterError {
    /// iperf3's `i_errno`.
    pub(crate) code: i32,
    /// iperf3's text.
    pub(crate) text: String,
    /// Replacement to type, shown on a line of its own.
    pub(crate) hint: Option<&'static str>,
}

/// Reason for a failed parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentsError {
    /// Unknown option, or one without its argument: `getopt`'s message.
    Usage(String),
    /// A refused value or combination.
    Parameter {
        /// Error with iperf3's number and text.
        error: ParameterError,
        /// Format of a `--timestamps` parsed before the error (`strftime`): the printed line begins with the time.
        timestamps: Option<String>,
    },
}

/// Reason for stopping the parse early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParseStop {
    Help,
    Version,
    Refused(ParameterError),
}

impl From<ParameterError> for ParseStop {
    fn from(error: ParameterError) -> Self {
        Self::Refused(error)
    }
}

impl From<Iperf3NumberError> for ParameterError {
    fn from(error: Iperf3NumberError) -> Self {
        Self { code: 38, text: error.to_string(), hint: None }
    }
}

impl From<Iperf3NumberError> for ParseStop {
    fn from(error: Iperf3NumberError) -> Self {
        Self::Refused(error.into())
    }
}

/// Refusals with a fixed text per number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterRefusal {
    ServerAndClient = 1,
    NoRole = 2,
    ServerOnly = 3,
    ClientOnly = 4,
    Duration = 5,
    Streams = 6,
    BlockSize = 7,
    WindowSize = 8,
    Interval = 9,
    Mss = 10,
    Omit = 12,
    Burst = 15,
    EndConditions = 16,
    NoSctp = 18,
    UdpBlockSize = 20,
    TypeOfService = 21,
    ClientAuthentication = 22,
    ServerAuthentication = 23,
    Format = 24,
    /// `-f a` or `-f A` of iperf 2: adaptive units, which are the default without the option.
    AdaptiveFormat = -24,
    ReverseAndBidirectional = 25,
    Port = 26,
    AveragingInterval = 28,
    TimeSkew = 29,
    IdleTimeout = 30,
    ReceiveTimeout = 31,
    ReceiveTimeoutOfSender = 32,
    SendTimeout = 33,
    UdpFile = 34,
    KeepAlive = 36,
    DscpValue = 40,
    FlowLabel = 127,
    Affinity = 132,
}

impl ParameterRefusal {
    const fn text(self) -> &'static str {
        match self {
            Self::ServerAndClient => "cannot be both server and client",
            Self::NoRole => "must either be a client (-c) or server (-s)",
            Self::ServerOnly => "some option you are trying to set is server only",
            Self::ClientOnly => "some option you are trying to set is client only",
            Self::Duration => "test duration valid values are 0 to 86400 seconds",
            Self::Streams => "invalid number of parallel streams (min = 1, max = 128)",
            Self::BlockSize => "block size too large (maximum = 1048576 bytes)",
            Self::WindowSize => "socket buffer size too large (maximum = 536870912 bytes)",
            Self::Interval => "invalid report interval (min = 0.1, max = 60 seconds)",
            Self::Mss => "TCP MSS too large (maximum = 32767 bytes)",
            Self::Omit => "bogus value for --omit (maximum = 600 seconds)",
            Self::Burst => "invalid burst count (maximum = 1000)",
            Self::EndConditions => "only one test end condition (-t, -n, -k) may be specified",
            Self::NoSctp => "no SCTP support available",
            Self::UdpBlockSize => "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)",
            Self::TypeOfService => "bad TOS value (must be between 0 and 255 inclusive)",
            Self::ClientAuthentication => "you must specify a username, password, and path to a valid RSA public key",
            Self::ServerAuthentication => {
                "you must specify a path to a valid RSA private key and a user credential file"
            }
            Self::Format | Self::AdaptiveFormat => "bad format specifier (valid formats are in the set [kmgtKMGT])",
            Self::ReverseAndBidirectional => "cannot be both reverse and bidirectional",
            Self::Port => "port number must be between 1 and 65535 inclusive",
            Self::AveragingInterval => "invalid time interval for calculating average data rate",
            Self::TimeSkew => "skew threshold must be a positive number",
            Self::IdleTimeout => "idle timeout parameter is not positive or larger than allowed limit",
            Self::ReceiveTimeout => "receive timeout value is incorrect or not in range: ",
            Self::ReceiveTimeoutOfSender => "client receive timeout is valid only in receiving mode: ",
            Self::SendTimeout => "send timeout value is incorrect or not in range: ",
            Self::UdpFile => "cannot transfer file using UDP",
            Self::KeepAlive => {
                "control connection Keepalive period should be larger than the full retry period (interval * count): "
            }
            Self::DscpValue => {
                "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, af31-33, af41-43, cs1-7, \
                 ef, va, lowdelay, throughput, reliability])"
            }
            Self::FlowLabel => "unable to set IPv6 flow label",
            Self::Affinity => "unable to set CPU affinity: ",
        }
    }
}

impl ParameterRefusal {
    const fn hint(self) -> Option<&'static str> {
        match self {
            Self::AdaptiveFormat => {
                Some("leave -f out: adaptive units are the default of iperf3 (or -f M for MBytes/s)")
            }
            _ => None,
        }
    }
}

impl From<ParameterRefusal> for ParameterError {
    fn from(refusal: ParameterRefusal) -> Self {
        Self { code: (refusal as i32).abs(), text: refusal.text().to_owned(), hint: refusal.hint() }
    }
}

impl From<ParameterRefusal> for ParseStop {
    fn from(refusal: ParameterRefusal) -> Self {
        Self::Refused(refusal.into())
    }
}
