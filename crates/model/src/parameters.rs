//! Parameters of a throughput test. The client decides; the server validates and applies them.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use linerate_units::{BitRate, BlockCount, ByteCount, FlowLabel, Mss, PacketCount, StreamCount, TypeOfService};

/// The transport under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestProtocol {
    /// TCP, or Multipath TCP when [`TestParameters::multipath`] is set.
    Tcp,
    /// UDP with iperf3's sequence header.
    Udp,
}

/// Direction of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestDirection {
    /// The client sends.
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both send at once, over separate streams (`--bidir`).
    Bidirectional,
}

/// End condition of a test. Totals are over all streams, per direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCondition {
    /// After this time, not counting [`TestParameters::omit`] (`-t`). Zero: until interrupted.
    Time(Duration),
    /// After exactly this many bytes (`-n`).
    Bytes(ByteCount),
    /// After exactly this many blocks of [`TestParameters::block_size`] (`-k`).
    Blocks(BlockCount),
}

impl EndCondition {
    /// Time limit, if there is one.
    #[must_use]
    pub fn time_limit(self) -> Option<Duration> {
        match self {
            Self::Time(time) if !time.is_zero() => Some(time),
            _ => None,
        }
    }
}

/// The parameters of one test, as the client sends them to the server (iperf3 `send_parameters`).
#[derive(Clone, Debug, PartialEq)]
pub struct TestParameters {
    /// Transport.
    pub protocol: TestProtocol,
    /// Direction.
    pub direction: TestDirection,
    /// End condition.
    pub end: EndCondition,
    /// Omitted time at the start (`-O`): the run lasts this long plus the end condition.
    pub omit: Duration,
    /// Parallel streams per direction (`-P`), 1 to 128.
    pub parallel: StreamCount,
    /// Bytes per write, and for UDP per datagram (`-l`). TCP up to 1 MiB; UDP 16 to 65507.
    pub block_size: ByteCount,
    /// Target rate per stream and direction (`-b`); `None` is unlimited.
    pub rate: Option<BitRate>,
    /// Blocks sent back to back when paced (`-b rate/burst`), 1 to 1000.
    pub burst: Option<PacketCount>,
    /// Kernel pacing rate per stream (`--fq-rate`, `SO_MAX_PACING_RATE`).
    pub fq_rate: Option<BitRate>,
    /// Time whose blocks a paced sender sends together (`--pacing-timer`), unless [`TestParameters::burst`] is set.
    pub pacing_timer: Duration,
    /// Socket buffer size on both sides (`-w`).
    pub window: Option<ByteCount>,
    /// Maximum segment size (`-M`).
    pub mss: Option<Mss>,
    /// `TCP_NODELAY` (`-N`).
    pub no_delay: bool,
    /// Multipath TCP (`-m`, RFC 8684).
    pub multipath: bool,
    /// Type-of-service octet (`-S`, `--dscp`).
    pub type_of_service: TypeOfService,
    /// IPv6 flow label (`-L`).
    pub flow_label: Option<FlowLabel>,
    /// Congestion control algorithm by the kernel's name (`-C`).
    pub congestion: Option<String>,
    /// Title (`-T`).
    pub title: Option<String>,
    /// Free text copied into both JSON documents (`--extra-data`).
    pub extra_data: Option<String>,
    /// The client wants the server's own output (`--get-server-output`).
    pub get_server_output: bool,
    /// UDP packet numbers have 64 bits (`--udp-counters-64bit`).
    pub udp_counters_64bit: bool,
    /// The payload is a repeating pattern instead of random bytes (`--repeating-payload`).
    pub repeating_payload: bool,
    /// TCP senders use `sendfile` (`-Z`).
    pub zero_copy: bool,
    /// IPv4 "don't fragment" for UDP (`--dont-fragment`).
    pub dont_fragment: bool,
    /// TCP receivers drop the data in the kernel (`--skip-rx-copy`, `MSG_TRUNC`).
    pub skip_receive_copy: bool,
    /// Processor for the server's session (`-A n,m`).
    pub server_affinity: Option<CpuIndex>,
    /// UDP segmentation and receive offload requested explicitly (`--gsro`).
    pub segmentation_offload: bool,
    /// Time between the interval reports that the server sends to this client; `None` leaves it to the server. Ignored
    /// by iperf3.
    pub far_interval: Option<Duration>,
    /// True when the server sends its interval reports together at the end, compressed, so that they take nothing from the
    /// path during the test. Ignored by iperf3.
    pub far_reports_at_end: bool,
    /// True when both hosts report their sockets with each interval, and the server its host at the end. Ignored by
    /// iperf3.
    pub far_details: bool,
    /// True when both hosts trace their kernel's events during the test, where they may. Ignored by iperf3.
    pub kernel_events: bool,
    /// True when the data of TCP streams is in TLS to its end, with the keys of the conversation. iperf3 has none.
    pub tls_data: bool,
}

/// Method by which a receiver takes the payload from its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReceiveMethod {
    /// Copied to the program, as an application does that uses the data.
    Copy,
    /// Discarded in the kernel (`MSG_TRUNC`, tcp(7)): this takes less processor time than any application needs.
    Discard,
}

/// Processor index, as in `/proc/cpuinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuIndex(pub u16);

impl Default for TestParameters {
    /// iperf3's defaults for TCP: one stream, ten seconds, 128 KiB blocks, as fast as it goes.
    fn default() -> Self {
        Self {
            protocol: TestProtocol::Tcp,
            direction: TestDirection::Forward,
            end: EndCondition::Time(Duration::from_secs(10)),
            omit: Duration::ZERO,
            parallel: StreamCount::new(1),
            block_size: ByteCount::from_kibibytes(128),
            rate: None,
            burst: None,
            fq_rate: None,
            pacing_timer: Duration::from_millis(1),
            window: None,
            mss: None,
            no_delay: false,
            multipath: false,
            type_of_service: TypeOfService::default(),
            flow_label: None,
            congestion: None,
            title: None,
            extra_data: None,
            get_server_output: false,
            udp_counters_64bit: false,
            repeating_payload: false,
            zero_copy: false,
            dont_fragment: false,
            skip_receive_copy: false,
            server_affinity: None,
            segmentation_offload: false,
            far_interval: None,
            far_reports_at_end: false,
            far_details: false,
            kernel_events: false,
            tls_data: false,
        }
    }
}

impl TestParameters {
    /// iperf3's defaults, with receivers that discard the payload, as no measurement of linerate's own wants it.
    #[must_use]
    pub fn discarding() -> Self {
        Self { skip_receive_copy: true, ..Self::default() }
    }

    /// Streams over both directions.
    #[must_use]
    pub fn total_streams(&self) -> StreamCount {
        match self.direction {
            TestDirection::Bidirectional => self.parallel + self.parallel,
            TestDirection::Forward | TestDirection::Reverse => self.parallel,
        }
    }
}
