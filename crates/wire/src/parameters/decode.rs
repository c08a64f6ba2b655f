use core::fmt::Display;
use core::time::Duration;

use linerate_model::parameters::{CpuIndex, EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_units::{BitRate, BlockCount, ByteCount, FlowLabel, Mss, PacketCount, StreamCount, TypeOfService};

use super::{
    DEFAULT_UDP_BLOCK_SIZE, MAX_BLOCK_SIZE, MAX_BURST, MAX_CPU, MAX_FAR_INTERVAL, MAX_MSS, MAX_OMIT, MAX_STREAMS,
    MAX_TIME, MAX_UDP_BLOCK_SIZE, MAX_WINDOW, MIN_FAR_INTERVAL, MIN_UDP_BLOCK_SIZE, ParametersRefusal,
    ReceivedParameters, ServerLimits,
};
use crate::error::ErrorCode;
use crate::json::{self, JsonError, JsonObject};

/// Parses a client's parameters document.
///
/// The root must be an object, every known key must have its type and occur once, and unknown keys are ignored;
/// otherwise the error is 114. Then the ranges are checked in the order of the keys, then the block size, the longest
/// duration and the total rate; when several checks fail, the last one is reported, as in iperf3. `false` for a flag
/// means "not set", as on an iperf3 server.
pub fn decode(document: &[u8], limits: &ServerLimits) -> Result<ReceivedParameters, ParametersRefusal> {
    let text = json::text(document).map_err(|error| malformed(&error))?;
    let keys = ParameterKeys(JsonObject::parse(&text).map_err(|error| malformed(&error))?);
    let mut checks = RangeChecks::default();
    let protocol = keys.protocol(limits, &mut checks)?;
    let mut parameters = keys.extent(protocol, &mut checks)?;
    keys.streams(limits, &mut parameters, &mut checks)?;
    keys.rates(&mut parameters, &mut checks)?;
    keys.addressing(&mut parameters, &mut checks)?;
    keys.options(&mut parameters)?;
    let linerate_version = keys.linerate(&mut parameters)?;
    let block_size_given = keys.block_size(&mut parameters, &mut checks)?;
    check_limits(limits, &parameters, &mut checks);
    let received = ReceivedParameters {
        parameters,
        block_size_given,
        authentication_token: keys.string("authtoken")?,
        congestion_used: keys.string("congestion_used")?,
        client_version: keys.string("client_version")?,
        linerate_version,
    };
    checks.refusal.map_or(Ok(received), Err)
}

fn malformed(error: &JsonError) -> ParametersRefusal {
    refused(ErrorCode::RECEIVE_PARAMETERS, format_args!("the document {error}"))
}

fn refused(code: ErrorCode, detail: impl Display) -> ParametersRefusal {
    ParametersRefusal { code, detail: detail.to_string() }
}

/// The range check that failed last.
#[derive(Default)]
struct RangeChecks {
    refusal: Option<ParametersRefusal>,
}

impl RangeChecks {
    fn require(&mut self, holds: bool, code: ErrorCode, detail: impl Display) {
        if !holds {
            self.refusal = Some(refused(code, detail));
        }
    }

    /// Returns `value` when it is within 0 to `most`; else 0, and the check fails.
    fn within(&mut self, key: &str, value: i128, most: u64, code: ErrorCode) -> u64 {
        match u64::try_from(value) {
            Ok(value) if value <= most => value,
            _ => {
                self.require(false, code, format_args!("\"{key}\" is {value}, not within 0 to {most}"));
                0
            }
        }
    }
}

struct ParameterKeys<'a>(JsonObject<'a>);

impl ParameterKeys<'_> {
    /// A whole number, in 64 bits with sign as in iperf3.
    fn integer(&self, key: &'static str) -> Result<Option<i128>, ParametersRefusal> {
        let value = self.0.integer(key).map_err(|error| malformed(&error))?;
        match value {
            Some(value) if i64::try_from(value).is_err() => {
                Err(malformed(&JsonError::WrongType { key, expected: "a whole number of 64 bits" }))
            }
            _ => Ok(value),
        }
    }

    /// A number that is 0 when absent and must not be negative.
    fn count(
        &self,
        key: &'static str,
        most: u64,
        code: ErrorCode,
        checks: &mut RangeChecks,
    ) -> Result<u64, ParametersRefusal> {
        Ok(checks.within(key, self.integer(key)?.unwrap_or(0), most, code))
    }

    fn flag(&self, key: &'static str) -> Result<bool, ParametersRefusal> {
        Ok(self.0.boolean(key).map_err(|error| malformed(&error))?.unwrap_or(false))
    }

    /// An option that iperf3 sends as the number 1.
    fn number_flag(&self, key: &'static str) -> Result<bool, ParametersRefusal> {
        let value = self.integer(key)?.unwrap_or(0);
        if value < 0 {
            return Err(malformed(&JsonError::WrongType { key, expected: "0 or 1" }));
        }
        Ok(value != 0)
    }

    fn string(&self, key: &'static str) -> Result<Option<String>, ParametersRefusal> {
        self.0.string(key).map_err(|error| malformed(&error))
    }

    fn protocol(&self, limits: &ServerLimits, checks: &mut RangeChecks) -> Result<TestProtocol, ParametersRefusal> {
        let (tcp, udp, sctp) = (self.flag("tcp")?, self.flag("udp")?, self.flag("sctp")?);
        if u8::from(tcp) + u8::from(udp) + u8::from(sctp) > 1 {
            return Err(refused(ErrorCode::RECEIVE_PARAMETERS, "more than one of \"tcp\", \"udp\" and \"sctp\""));
        }
        checks.require(!sctp, ErrorCode::NO_SCTP, "SCTP is not available");
        checks.require(!udp || limits.udp, ErrorCode::UDP_FILE, "this server writes to a file and accepts TCP only");
        Ok(if udp { TestProtocol::Udp } else { TestProtocol::Tcp })
    }

    fn extent(&self, protocol: TestProtocol, checks: &mut RangeChecks) -> Result<TestParameters, ParametersRefusal> {
        let mut parameters = TestParameters { protocol, ..TestParameters::default() };
        let omit = self.count("omit", MAX_OMIT.as_secs(), ErrorCode::OMIT, checks)?;
        parameters.omit = Duration::from_secs(omit);
        if let Some(cpu) = self.integer("server_affinity")? {
            let cpu = checks.within("server_affinity", cpu, u64::from(MAX_CPU), ErrorCode::AFFINITY);
            parameters.server_affinity = u16::try_from(cpu).ok().map(CpuIndex);
        }
        let time = self.integer("time")?.unwrap_or(10);
        let time = checks.within("time", time, MAX_TIME.as_secs(), ErrorCode::DURATION);
        let bytes = self.count("num", u64::MAX, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        let blocks = self.count("blockcount", u64::MAX, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        parameters.end = match (bytes, blocks) {
            (0, 0) => EndCondition::Time(Duration::from_secs(time)),
            (_, 0) => EndCondition::Bytes(ByteCount::new(bytes)),
            (0, _) => EndCondition::Blocks(BlockCount::new(blocks)),
            _ => {
                checks.require(false, ErrorCode::END_CONDITIONS, "both \"num\" and \"blockcount\"");
                parameters.end
            }
        };
        Ok(parameters)
    }

    fn streams(
        &self,
        limits: &ServerLimits,
        parameters: &mut TestParameters,
        checks: &mut RangeChecks,
    ) -> Result<(), ParametersRefusal> {
        let mss = self.count("MSS", u64::from(MAX_MSS), ErrorCode::MSS, checks)?;
        parameters.mss = u32::try_from(mss).ok().filter(|mss| *mss > 0).map(Mss::new);
        parameters.no_delay = self.flag("nodelay")?;
        let most = limits.max_streams.min(MAX_STREAMS);
        let parallel = self.integer("parallel")?.unwrap_or(1);
        let parallel = checks.within("parallel", parallel, most.get(), ErrorCode::STREAM_COUNT);
        checks.require(parallel >= 1, ErrorCode::STREAM_COUNT, format_args!("not within 1 to {} streams", most.get()));
        parameters.parallel = StreamCount::new(parallel);
        parameters.direction = match (self.flag("reverse")?, self.flag("bidirectional")?) {
            (false, false) => TestDirection::Forward,
            (true, false) => TestDirection::Reverse,
            (false, true) => TestDirection::Bidirectional,
            (true, true) => {
                checks.require(false, ErrorCode::REVERSE_AND_BIDIRECTIONAL, "both \"reverse\" and \"bidirectional\"");
                TestDirection::Forward
            }
        };
        parameters.multipath = self.flag("mptcp")?;
        let window = self.count("window", MAX_WINDOW.get(), ErrorCode::SOCKET_BUFFER, checks)?;
        parameters.window = (window > 0).then_some(ByteCount::new(window));
        Ok(())
    }

    fn rates(&self, parameters: &mut TestParameters, checks: &mut RangeChecks) -> Result<(), ParametersRefusal> {
        parameters.rate = self.rate("bandwidth", checks)?;
        parameters.fq_rate = self.rate("fqrate", checks)?;
        if let Some(timer) = self.integer("pacing_timer")? {
            let timer = checks.within("pacing_timer", timer, u64::MAX, ErrorCode::RECEIVE_PARAMETERS);
            parameters.pacing_timer = Duration::from_micros(timer);
        }
        if let Some(burst) = self.integer("burst")? {
            let burst = checks.within("burst", burst, MAX_BURST.get(), ErrorCode::BURST);
            checks.require(burst >= 1, ErrorCode::BURST, "\"burst\" is not within 1 to 1000");
            parameters.burst = Some(PacketCount::new(burst));
        }
        let gso = self.count("gso", u64::MAX, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        let gro = self.count("gro", 1, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        // The client's buffer sizes are checked, but not used: the engine computes its own.
        for key in ["gso_dg_size", "gso_bf_size", "gro_bf_size"] {
            self.count(key, u64::MAX, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        }
        parameters.segmentation_offload = parameters.protocol == TestProtocol::Udp && (gso > 0 || gro > 0);
        Ok(())
    }

    fn rate(&self, key: &'static str, checks: &mut RangeChecks) -> Result<Option<BitRate>, ParametersRefusal> {
        let bits = self.count(key, u64::MAX, ErrorCode::RECEIVE_PARAMETERS, checks)?;
        // A double holds every rate below 2^53 bit/s exactly.
        Ok((bits > 0).then(|| BitRate::from_bits_per_second(ByteCount::new(bits).as_f64())))
    }

    fn addressing(&self, parameters: &mut TestParameters, checks: &mut RangeChecks) -> Result<(), ParametersRefusal> {
        let octet = self.count("TOS", 255, ErrorCode::TYPE_OF_SERVICE, checks)?;
        parameters.type_of_service = TypeOfService::new(u8::try_from(octet).unwrap_or(0));
        if let Some(label) = self.integer("flowlabel")? {
            parameters.flow_label = u32::try_from(label).ok().and_then(FlowLabel::new);
            checks.require(
                parameters.flow_label.is_some(),
                ErrorCode::SET_FLOW_LABEL,
                format_args!("\"flowlabel\" is {label}, not within 1 to 1048575"),
            );
        }
        parameters.title = self.string("title")?;
        parameters.extra_data = self.string("extra_data")?;
        parameters.congestion = self.string("congestion")?;
        Ok(())
    }

    fn options(&self, parameters: &mut TestParameters) -> Result<(), ParametersRefusal> {
        parameters.get_server_output = self.number_flag("get_server_output")?;
        parameters.udp_counters_64bit = self.number_flag("udp_counters_64bit")?;
        parameters.repeating_payload = self.number_flag("repeating_payload")?;
        parameters.zero_copy = self.number_flag("zerocopy")?;
        parameters.dont_fragment = self.number_flag("dont_fragment")?;
        parameters.skip_receive_copy = self.number_flag("skip_rx_copy")?;
        Ok(())
    }

    /// Parses the block size; returns true when the client named one. A UDP block of 0 bytes, which iperf3 up to 3.21
    /// accepts (CVE-2026-102253), is refused like any other too small one.
    fn block_size(&self, parameters: &mut TestParameters, checks: &mut RangeChecks) -> Result<bool, ParametersRefusal> {
        let (least, most, code) = match parameters.protocol {
            TestProtocol::Tcp => (ByteCount::new(1), MAX_BLOCK_SIZE, ErrorCode::BLOCK_SIZE),
            TestProtocol::Udp => (MIN_UDP_BLOCK_SIZE, MAX_UDP_BLOCK_SIZE, ErrorCode::UDP_BLOCK_SIZE),
        };
        let given = self.integer("len")?;
        match given.map(u64::try_from) {
            Some(Ok(size)) if (least.get()..=most.get()).contains(&size) => {
                parameters.block_size = ByteCount::new(size);
            }
            Some(_) => {
                let size = given.unwrap_or(0);
                let (least, most) = (least.get(), most.get());
                checks.require(false, code, format_args!("\"len\" is {size}, not within {least} to {most}"));
            }
            None if parameters.protocol == TestProtocol::Udp => parameters.block_size = DEFAULT_UDP_BLOCK_SIZE,
            None => {}
        }
        Ok(given.is_some())
    }

    /// Parses the request of a linerate client and returns its version. Only types are checked, so that later versions
    /// may add keys.
    fn linerate(&self, parameters: &mut TestParameters) -> Result<Option<String>, ParametersRefusal> {
        let Some(text) = self.0.object("linerate").map_err(|error| malformed(&error))? else { return Ok(None) };
        let linerate = JsonObject::parse(text).map_err(|error| malformed(&error))?;
        let interval = linerate.integer("interval_ns").map_err(|error| malformed(&error))?;
        let interval = interval.and_then(|interval| u64::try_from(interval).ok()).map(Duration::from_nanos);
        parameters.far_interval = interval.map(|interval| interval.clamp(MIN_FAR_INTERVAL, MAX_FAR_INTERVAL));
        let flag = |key| Ok(linerate.integer(key).map_err(|error| malformed(&error))? == Some(1));
        parameters.far_reports_at_end = flag("reports_at_end")?;
        parameters.far_details = flag("details")?;
        parameters.kernel_events = flag("kernel_events")?;
        parameters.tls_data = flag("tls_data")?;
        linerate.string("version").map_err(|error| malformed(&error))
    }
}

fn check_limits(limits: &ServerLimits, parameters: &TestParameters, checks: &mut RangeChecks) {
    if let Some(most) = limits.max_duration {
        let asked = parameters.end.time_limit().map(|time| time + parameters.omit);
        checks.require(
            asked.is_some_and(|asked| asked <= most),
            ErrorCode::MAX_DURATION,
            format_args!("a test on this server may last {} s", most.as_secs()),
        );
    }
    if let Some(most) = limits.max_total_rate {
        for rate in [parameters.rate, parameters.fq_rate].into_iter().flatten() {
            let total = rate * parameters.total_streams().as_f64();
            let (asked, permitted) = (total.whole_bits_per_second(), most.whole_bits_per_second());
            checks.require(
                total <= most,
                ErrorCode::TOTAL_RATE,
                format_args!("{asked} bit/s in all, {permitted} bit/s are permitted"),
            );
        }
    }
}
