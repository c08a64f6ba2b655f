//! The state bytes of the control connection (iperf3 `iperf_api.h`).

/// A state byte. Signed in iperf3; the two negative ones are 0xFF and 0xFE here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Server to client: all streams are up, get ready.
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
    /// Server to client: the parameters are good, open the streams.
    CreateStreams,
    /// Server to client: the server got a signal.
    ServerTerminate,
    /// Client to server: the client got a signal.
    ClientTerminate,
    /// Server to client: send your results; mine follow.
    ExchangeResults,
    /// Server to client: all has been said.
    DisplayResults,
    /// Not used on the wire: an idle server.
    IperfStart,
    /// Client to server: the last byte.
    IperfDone,
    /// Server to client: busy. Also the answer to a stream with a wrong cookie.
    AccessDenied,
    /// Server to client: an error; its numbers follow ([`crate::error`]).
    ServerError,
}

impl State {
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

    /// Its byte on the wire.
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

    /// The state of a byte; `None` when iperf3 has none.
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
        for state in State::ALL {
            assert_eq!(State::from_byte(state.byte()), Some(state));
        }
        assert_eq!((0..=255).filter_map(State::from_byte).count(), State::ALL.len());
        assert_eq!(State::from_byte(0), None);
        assert_eq!(State::from_byte(0x11), None);
        assert_eq!(State::from_byte(crate::extension::MARKER), None, "the extension stays outside iperf3's set");
    }
}
