//! iperf3's error numbers, their texts, and the message that carries them.
//!
//! Numbers and texts are those of iperf3 3.21 (`iperf_api.h`, `iperf_strerror`): scripts match the texts.

use core::fmt;
use std::borrow::Cow;

use crate::state::ControlState;

/// An error number of iperf3 (`i_errno`). Any number may come from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i32);

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal $(, $strerror:ident)?;)*) => {
        impl ErrorCode {
            $($(#[$doc])* #[doc = concat!("\n\n```text\n", $text, "\n```")] pub const $name: Self = Self($number);)*

            /// Every number with a text, in ascending order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            fn entry(self) -> Option<(&'static str, bool)> {
                match self.0 {
                    $($number => Some(($text, false $(|| error_codes!(@$strerror))?)),)*
                    _ => None,
                }
            }
        }
    };
    (@strerror) => { true };
}

error_codes! {
    /// No error.
    NONE = 0, "no error";
    /// `-s` and `-c` together.
    SERVER_AND_CLIENT = 1, "cannot be both server and client";
    /// Neither `-s` nor `-c`.
    NO_ROLE = 2, "must either be a client (-c) or server (-s)";
    /// Server option on a client.
    SERVER_ONLY = 3, "some option you are trying to set is server only";
    /// Client option on a server.
    CLIENT_ONLY = 4, "some option you are trying to set is client only";
    /// `-t` out of range.
    DURATION = 5, "test duration valid values are 0 to 86400 seconds";
    /// `-P` out of range.
    STREAM_COUNT = 6, "invalid number of parallel streams (min = 1, max = 128)";
    /// `-l` out of range (TCP).
    BLOCK_SIZE = 7, "block size too large (maximum = 1048576 bytes)";
    /// `-w` out of range.
    SOCKET_BUFFER = 8, "socket buffer size too large (maximum = 536870912 bytes)";
    /// `-i` out of range.
    INTERVAL = 9, "invalid report interval (min = 0.1, max = 60 seconds)";
    /// `-M` out of range.
    MSS = 10, "TCP MSS too large (maximum = 32767 bytes)";
    /// `sendfile` is not supported.
    NO_SENDFILE = 11, "this OS does not support sendfile";
    /// `-O` out of range.
    OMIT = 12, "bogus value for --omit (maximum = 600 seconds)";
    /// Known but not implemented.
    NOT_IMPLEMENTED = 13, "an option you are trying to set is not implemented yet";
    /// `-F` cannot be opened.
    FILE = 14, "unable to open -F file", strerror;
    /// `-b RATE/BURST` out of range.
    BURST = 15, "invalid burst count (maximum = 1000)";
    /// Two of `-t`, `-n`, `-k`.
    END_CONDITIONS = 16, "only one test end condition (-t, -n, -k) may be specified";
    /// `--logfile` cannot be opened.
    LOG_FILE = 17, "unable to open log file", strerror;
    /// SCTP is not in this build.
    NO_SCTP = 18, "no SCTP support available";
    /// No longer used.
    BIND = 19, "--bind must be specified to use --cport";
    /// `-l` out of range (UDP).
    UDP_BLOCK_SIZE = 20, "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)";
    /// `-S` out of range.
    TYPE_OF_SERVICE = 21, "bad TOS value (must be between 0 and 255 inclusive)";
    /// Client authentication options incomplete.
    CLIENT_AUTHENTICATION = 22, "you must specify a username, password, and path to a valid RSA public key";
    /// Server authentication options incomplete.
    SERVER_AUTHENTICATION = 23, "you must specify a path to a valid RSA private key and a user credential file";
    /// `-f` with an unknown letter.
    FORMAT = 24, "bad format specifier (valid formats are in the set [kmgtKMGT])";
    /// `-R` and `--bidir` together.
    REVERSE_AND_BIDIRECTIONAL = 25, "cannot be both reverse and bidirectional";
    /// `-p` out of range.
    PORT = 26, "port number must be between 1 and 65535 inclusive";
    /// More than `--server-bitrate-limit`.
    TOTAL_RATE = 27, "total required bandwidth is larger than server limit";
    /// The time of `--server-bitrate-limit` is out of range.
    TOTAL_RATE_INTERVAL = 28, "invalid time interval for calculating average data rate";
    /// `--time-skew-threshold` out of range.
    TIME_SKEW = 29, "skew threshold must be a positive number";
    /// `--idle-timeout` out of range.
    IDLE_TIMEOUT = 30, "idle timeout parameter is not positive or larger than allowed limit";
    /// `--rcv-timeout` out of range.
    RECEIVE_TIMEOUT = 31, "receive timeout value is incorrect or not in range", strerror;
    /// `--rcv-timeout` on a sending client.
    RECEIVE_TIMEOUT_ROLE = 32, "client receive timeout is valid only in receiving mode", strerror;
    /// `--snd-timeout` out of range.
    SEND_TIMEOUT = 33, "send timeout value is incorrect or not in range", strerror;
    /// `-F` with UDP.
    UDP_FILE = 34, "cannot transfer file using UDP";
    /// `--authorized-users-path` cannot be read.
    AUTHORIZED_USERS = 35, "cannot access authorized users file";
    /// `--cntl-ka` with too short an idle time.
    CONTROL_KEEPALIVE = 36, "control connection Keepalive period should be larger than the full retry period (interval * count)";
    /// More than `--server-max-duration`.
    MAX_DURATION = 37, "client's requested duration exceeds the server's maximum permitted limit";
    /// A number with an unknown suffix. iperf3 appends `: '…'`.
    UNIT = 38, "invalid unit value or suffix";

    /// Out of memory for a test.
    NEW_TEST = 100, "unable to create a new test", strerror;
    /// A test could not be set up.
    INIT_TEST = 101, "test initialization failed", strerror;
    /// The listener could not be opened.
    LISTEN = 102, "unable to start listener for connections", strerror;
    /// The server could not be reached.
    CONNECT = 103, "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.", strerror;
    /// `accept` failed.
    ACCEPT = 104, "unable to accept connection from client", strerror;
    /// The cookie could not be sent.
    SEND_COOKIE = 105, "unable to send cookie to server", strerror;
    /// No complete cookie was received.
    RECEIVE_COOKIE = 106, "unable to receive cookie at server", strerror;
    /// Writing failed.
    CONTROL_WRITE = 107, "unable to write to the control socket", strerror;
    /// Reading failed.
    CONTROL_READ = 108, "unable to read from the control socket", strerror;
    /// The peer closed the connection.
    CONTROL_CLOSED = 109, "control socket has closed unexpectedly";
    /// Unexpected byte.
    UNKNOWN_MESSAGE = 110, "received an unknown control message (ensure other side is iperf3 and not iperf)";
    /// A state byte could not be sent.
    SEND_MESSAGE = 111, "unable to send control message - port may not be available, the other side may have stopped running, etc.", strerror;
    /// A state byte was not received.
    RECEIVE_MESSAGE = 112, "unable to receive control message - port may not be available, the other side may have stopped running, etc.", strerror;
    /// The parameters could not be sent.
    SEND_PARAMETERS = 113, "unable to send parameters to server", strerror;
    /// The parameters were not received, or are invalid.
    RECEIVE_PARAMETERS = 114, "unable to receive parameters from client", strerror;
    /// Out of memory for results.
    PACKAGE_RESULTS = 115, "unable to package results", strerror;
    /// The results could not be sent.
    SEND_RESULTS = 116, "unable to send results", strerror;
    /// The results were not received, or are invalid.
    RECEIVE_RESULTS = 117, "unable to receive results", strerror;
    /// `select` failed.
    SELECT = 118, "select failed", strerror;
    /// The client received a signal.
    CLIENT_TERMINATED = 119, "the client has terminated";
    /// The server received a signal.
    SERVER_TERMINATED = 120, "the server has terminated";
    /// The server is running another test.
    ACCESS_DENIED = 121, "the server is busy running a test. try again later";
    /// `TCP_NODELAY` refused.
    SET_NO_DELAY = 122, "unable to set TCP/SCTP NODELAY", strerror;
    /// `TCP_MAXSEG` refused.
    SET_MSS = 123, "unable to set TCP/SCTP MSS", strerror;
    /// `SO_SNDBUF` or `SO_RCVBUF` refused.
    SET_SOCKET_BUFFER = 124, "unable to set socket buffer size", strerror;
    /// `IP_TOS` refused.
    SET_TYPE_OF_SERVICE = 125, "unable to set IP TOS", strerror;
    /// `IPV6_TCLASS` refused.
    SET_TRAFFIC_CLASS = 126, "unable to set IPv6 traffic class", strerror;
    /// The flow label was refused, or is out of range.
    SET_FLOW_LABEL = 127, "unable to set IPv6 flow label";
    /// `SO_REUSEADDR` refused.
    REUSE_ADDRESS = 128, "unable to reuse address on socket", strerror;
    /// `O_NONBLOCK` refused.
    SET_NON_BLOCKING = 129, "unable to set socket to non-blocking", strerror;
    /// The window size was refused.
    SET_WINDOW = 130, "unable to set socket window size", strerror;
    /// Unknown transport.
    PROTOCOL = 131, "protocol does not exist";
    /// `-A` refused, or out of range.
    AFFINITY = 132, "unable to set CPU affinity", strerror;
    /// `daemon` failed.
    DAEMON = 133, "unable to become a daemon", strerror;
    /// `-C` refused.
    SET_CONGESTION = 134, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host";
    /// `-I` could not be written.
    PID_FILE = 135, "unable to write PID file", strerror;
    /// `IPV6_V6ONLY` refused.
    SET_IPV6_ONLY = 136, "Unable to set/reset IPV6_V6ONLY", strerror;
    /// SCTP.
    SET_SCTP_FRAGMENTS = 137, "unable to set SCTP_DISABLE_FRAGMENTS", strerror;
    /// SCTP.
    SET_SCTP_STREAMS = 138, "unable to set SCTP_INIT num of SCTP streams", strerror;
    /// SCTP.
    SET_SCTP_BIND = 139, "unable to process sctp_bindx() parameters", strerror;
    /// `SO_MAX_PACING_RATE` refused.
    SET_PACING = 140, "unable to set socket pacing", strerror;
    /// The buffer is smaller than `-w`.
    SOCKET_BUFFER_TOO_SMALL = 141, "socket buffer size not set correctly";
    /// User, password, key or clock.
    AUTHORIZATION = 142, "test authorization failed";
    /// `SO_BINDTODEVICE` refused.
    BIND_DEVICE = 143, "Unable to bind-to-device (check perror, maybe permissions?)";
    /// Nothing received for `--rcv-timeout`.
    IDLE_RECEIVER = 144, "idle timeout for receiving data";
    /// `IP_MTU_DISCOVER` refused.
    SET_DONT_FRAGMENT = 145, "unable to set IP Do-Not-Fragment flag";
    /// `SO_BINDTODEVICE` is not supported.
    NO_BIND_DEVICE = 146, "`<ip>%<dev>` is not supported as system does not support bind to device";
    /// `%dev` with an address that is not link-local.
    HOST_DEVICE = 147, "host device name (ip%<dev>) is supported (and required) only for IPv6 link-local address";
    /// `TCP_USER_TIMEOUT` refused.
    SET_USER_TIMEOUT = 148, "unable to set TCP USER_TIMEOUT", strerror;
    /// Threads.
    THREAD_CREATE = 150, "unable to create thread", strerror;
    /// Threads.
    THREAD_CANCEL = 151, "unable to cancel thread", strerror;
    /// Threads.
    THREAD_JOIN = 152, "unable to join thread", strerror;
    /// Threads.
    THREAD_ATTRIBUTES = 153, "unable to create thread attributes", strerror;
    /// Threads.
    THREAD_ATTRIBUTES_DESTROY = 154, "unable to destroy thread attributes", strerror;
    /// `SO_KEEPALIVE` refused.
    SET_KEEPALIVE = 155, "unable to set socket keepalive (SO_KEEPALIVE) option", strerror;
    /// `TCP_KEEPIDLE` refused.
    SET_KEEPALIVE_IDLE = 156, "unable to set socket keepalive TCP period (TCP_KEEPIDLE) option", strerror;
    /// `TCP_KEEPINTVL` refused.
    SET_KEEPALIVE_INTERVAL = 157, "unable to set/get socket keepalive TCP retry interval (TCP_KEEPINTVL) option", strerror;
    /// `TCP_KEEPCNT` refused.
    SET_KEEPALIVE_COUNT = 158, "unable to set/get socket keepalive TCP number of retries (TCP_KEEPCNT) option", strerror;
    /// Threads.
    THREAD_SIGNAL_MASK = 159, "unable to change mask of blocked signals";
    /// The server's watchdog.
    TEST_DURATION_EXPIRED = 160, "server test duration expired", strerror;

    /// A stream could not be created.
    CREATE_STREAM = 200, "unable to create a new stream", strerror;
    /// A stream could not be set up.
    INIT_STREAM = 201, "unable to initialize stream", strerror;
    /// The listener for streams could not be opened.
    STREAM_LISTEN = 202, "unable to start stream listener", strerror;
    /// A stream could not connect.
    STREAM_CONNECT = 203, "unable to connect stream", strerror;
    /// A stream could not be accepted.
    STREAM_ACCEPT = 204, "unable to accept stream connection", strerror;
    /// Writing to a stream failed.
    STREAM_WRITE = 205, "unable to write to stream socket", strerror;
    /// Reading from a stream failed.
    STREAM_READ = 206, "unable to read from stream socket", strerror;
    /// A stream closed too early.
    STREAM_CLOSED = 207, "stream socket has closed unexpectedly";
    /// Results for an unknown stream.
    STREAM_ID = 208, "stream has an invalid id";

    /// Timers.
    NEW_TIMER = 300, "unable to create new timer", strerror;
    /// Timers.
    UPDATE_TIMER = 301, "unable to update timer", strerror;
}

impl ErrorCode {
    /// iperf3's text without the system's message; `int_errno=N` for a number without a text.
    #[must_use]
    pub fn text(self) -> Cow<'static, str> {
        match self.entry() {
            Some((text, _)) => Cow::Borrowed(text),
            None => Cow::Owned(format!("int_errno={}", self.0)),
        }
    }

    /// True when iperf3 appends `: ` and the system's text for `errno`, as for unknown numbers.
    #[must_use]
    pub fn appends_strerror(self) -> bool {
        self.entry().is_none_or(|(_, strerror)| strerror)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Bytes of an error message after its state byte.
pub const ERROR_LENGTH: usize = 8;

/// Encodes a server's error message: FE, the error number, and 0 for `errno`.
///
/// iperf3 sends its current `errno`, and clients print it unless it is 0.
#[must_use]
pub fn encode(code: ErrorCode) -> [u8; 1 + ERROR_LENGTH] {
    let [a, b, c, d] = code.0.to_be_bytes();
    [ControlState::ServerError.byte(), a, b, c, d, 0, 0, 0, 0]
}

/// Decodes a server's error message after its state byte: the error number, and an `errno` of the server's system or 0.
#[must_use]
#[expect(clippy::many_single_char_names, reason = "bytes in order")]
pub fn decode(message: [u8; ERROR_LENGTH]) -> (ErrorCode, i32) {
    let [a, b, c, d, e, f, g, h] = message;
    (ErrorCode(i32::from_be_bytes([a, b, c, d])), i32::from_be_bytes([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_ascend() {
        assert!(ErrorCode::ALL.is_sorted_by(|a, b| a < b));
        for code in ErrorCode::ALL {
            assert!(!code.text().is_empty());
        }
    }

    #[test]
    fn texts_are_those_of_iperf3() {
        for (number, text, strerror) in [
            (5, "test duration valid values are 0 to 86400 seconds", false),
            (27, "total required bandwidth is larger than server limit", false),
            (37, "client's requested duration exceeds the server's maximum permitted limit", false),
            (109, "control socket has closed unexpectedly", false),
            (114, "unable to receive parameters from client", true),
            (121, "the server is busy running a test. try again later", false),
            (142, "test authorization failed", false),
            (160, "server test duration expired", true),
            (208, "stream has an invalid id", false),
            (149, "int_errno=149", true),
            (-1, "int_errno=-1", true),
            (i32::MIN, "int_errno=-2147483648", true),
        ] {
            let code = ErrorCode(number);
            assert_eq!((code.text().as_ref(), code.appends_strerror()), (text, strerror), "{number}");
        }
    }

    #[test]
    fn the_message_has_nine_bytes() {
        let message = encode(ErrorCode::AUTHORIZATION);
        assert_eq!(message, [0xFE, 0, 0, 0, 142, 0, 0, 0, 0]);
        let payload = message[1..].try_into().expect("eight bytes");
        assert_eq!(decode(payload), (ErrorCode::AUTHORIZATION, 0));
        assert_eq!(decode([0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 13]), (ErrorCode(-1), 13));
    }
}
