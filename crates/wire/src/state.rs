//! State bytes of the control connection (iperf3 `iperf_api.h`).

/// A state byte. Signed in iperf3; the two negative ones are 0xFF and 0xFE here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlState {
    /// Server to client: all streams are open, prepare.
    TestStart,
    /// Server to client: send and receive.
    TestRunning,
    /// Not used on the wire.
    ResultRequest,
    /// Client to server: the test is over.
    TestEnd,
    /// Not used on the wire.
    StreamBegin,
    /// Not used on the wire.
    StreamRunning,
    /// Not used on the wire.
    StreamEnd,
    /// Not used on the wire.
    AllStreamsEnd,
    /// Server to client: send the parameters.
    ParamExchange,
    /// Server to client: the parameters are accepted, open the streams.
    CreateStreams,
    /// Server to client: the server received a signal.
    ServerTerminate,
    /// Client to server: the client received a signal.
    ClientTerminate,
    /// Server to client: send the results; the server's follow.
    ExchangeResults,
    /// Server to client: the results have been exchanged.
    DisplayResults,
    /// Not used on the wire: an idle server.
    IperfStart,
    /// Client to server: the last byte.
    IperfDone,
    /// Server to client: busy. Also the reply to a stream with a wrong cookie.
    AccessDenied,
    /// Server to client: an error; its numbers follow ([`crate::error`]).
    ServerError,
}

impl ControlState {
    /// Every state, in the order of its declaration.
    pub const ALL: [Self; 18] = [
        Self::TestStart,
        Self::TestRunning,
        Self::ResultRequest,
        Self::TestEnd,
        Self::StreamBegin,
        Self::StreamRunning,
        Self::StreamEnd,
        Self::AllStreamsEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::IperfStart,
        Self::IperfDone,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// Byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::TestStart => 1,
            Self::TestRunning => 2,
            Self::ResultRequest => 3,
            Self::TestEnd => 4,
            Self::StreamBegin => 5,
            Self::StreamRunning => 6,
            Self::StreamEnd => 7,
            Self::AllStreamsEnd => 8,
            Self::ParamExchange => 9,
            Self::CreateStreams => 10,
            Self::ServerTerminate => 11,
            Self::ClientTerminate => 12,
            Self::ExchangeResults => 13,
            Self::DisplayResults => 14,
            Self::IperfStart => 15,
            Self::IperfDone => 16,
            Self::AccessDenied => 0xFF,
            Self::ServerError => 0xFE,
        }
    }

    /// State of a byte; `None` when iperf3 does not define it.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_states_match() {
        for state in ControlState::ALL {
            assert_eq!(ControlState::from_byte(state.byte()), Some(state));
        }
        assert_eq!((0..=255).filter_map(ControlState::from_byte).count(), ControlState::ALL.len());
        assert_eq!(ControlState::from_byte(0), None);
        assert_eq!(ControlState::from_byte(0x11), None);
        assert_eq!(ControlState::from_byte(crate::extension::MARKER), None, "the extension stays outside iperf3's set");
    }
}
