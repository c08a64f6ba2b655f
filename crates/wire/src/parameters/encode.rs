use core::time::Duration;

use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};

use super::{MAX_UDP_BLOCK_SIZE, ParametersExtra};
use crate::extension;
use crate::json::JsonWriter;

/// Maximum number of segments of one buffer with segmentation offload (iperf3 `GSO_BF_MAX_DGRAMS`, the kernel's
/// `UDP_MAX_SEGMENTS`).
const MAX_SEGMENTS: u64 = 128;

/// Encodes the parameters document, with keys in iperf3's order.
///
/// Fractions of a second are rounded up: the client ends the test, the server only has to wait long enough.
#[must_use]
pub fn encode(parameters: &TestParameters, extra: &ParametersExtra<'_>) -> String {
    let mut document = JsonWriter::new();
    write_extent(&mut document, parameters);
    write_streams(&mut document, parameters);
    write_offload(&mut document, parameters);
    write_addressing(&mut document, parameters, extra);
    write_options(&mut document, parameters);
    if let Some(token) = &extra.authentication_token {
        document.string("authtoken", token);
    }
    if parameters.skip_receive_copy {
        document.integer("skip_rx_copy", 1);
    }
    document.string("client_version", extra.client_version);
    if extra.announces_linerate {
        let mut linerate = JsonWriter::new();
        linerate.string("version", extension::VERSION);
        if let Some(interval) = parameters.far_interval {
            linerate.integer("interval_ns", u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
        }
        if parameters.far_reports_at_end {
            linerate.integer("reports_at_end", 1);
        }
        if parameters.far_details {
            linerate.integer("details", 1);
        }
        if parameters.kernel_events {
            linerate.integer("kernel_events", 1);
        }
        if parameters.tls_data {
            linerate.integer("tls_data", 1);
        }
        document.raw("linerate", &linerate.finish());
    }
    document.finish()
}

fn write_extent(document: &mut JsonWriter, parameters: &TestParameters) {
    document.flag(match parameters.protocol {
        TestProtocol::Tcp => "tcp",
        TestProtocol::Udp => "udp",
    });
    document.integer("omit", whole_seconds(parameters.omit));
    if let Some(cpu) = parameters.server_affinity {
        document.integer("server_affinity", cpu.0);
    }
    let (time, bytes, blocks) = match parameters.end {
        EndCondition::Time(time) => (whole_seconds(time), 0, 0),
        EndCondition::Bytes(bytes) => (0, bytes.get(), 0),
        EndCondition::Blocks(blocks) => (0, 0, blocks.get()),
    };
    document.integer("time", time);
    document.integer("num", bytes);
    document.integer("blockcount", blocks);
}

fn write_streams(document: &mut JsonWriter, parameters: &TestParameters) {
    if let Some(mss) = parameters.mss {
        document.integer("MSS", mss.get());
    }
    if parameters.no_delay {
        document.flag("nodelay");
    }
    document.integer("parallel", parameters.parallel.get());
    match parameters.direction {
        TestDirection::Forward => {}
        TestDirection::Reverse => document.flag("reverse"),
        TestDirection::Bidirectional => document.flag("bidirectional"),
    }
    if parameters.multipath {
        document.flag("mptcp");
    }
    if let Some(window) = parameters.window {
        document.integer("window", window.get());
    }
    if !parameters.block_size.is_zero() {
        document.integer("len", parameters.block_size.get());
    }
    if let Some(rate) = parameters.rate {
        document.integer("bandwidth", rate.whole_bits_per_second());
    }
    if let Some(rate) = parameters.fq_rate {
        document.integer("fqrate", rate.whole_bits_per_second());
    }
    document.integer("pacing_timer", u64::try_from(parameters.pacing_timer.as_micros()).unwrap_or(u64::MAX));
    if let Some(burst) = parameters.burst {
        document.integer("burst", burst.get());
    }
}

fn write_offload(document: &mut JsonWriter, parameters: &TestParameters) {
    if parameters.protocol != TestProtocol::Udp {
        return;
    }
    let on = u8::from(parameters.segmentation_offload);
    let size = parameters.block_size.get();
    let most = MAX_UDP_BLOCK_SIZE.get();
    let segments = most.checked_div(size).unwrap_or(0).min(MAX_SEGMENTS);
    let (datagram, buffer) = if on == 1 { (size, segments * size) } else { (0, most) };
    document.integer("gso", on);
    document.integer("gso_dg_size", datagram);
    document.integer("gso_bf_size", buffer);
    document.integer("gro", on);
    document.integer("gro_bf_size", most);
}

fn write_addressing(document: &mut JsonWriter, parameters: &TestParameters, extra: &ParametersExtra<'_>) {
    if parameters.type_of_service.get() != 0 {
        document.integer("TOS", parameters.type_of_service.get());
    }
    if let Some(label) = parameters.flow_label {
        document.integer("flowlabel", label.get());
    }
    let texts = [
        ("title", &parameters.title),
        ("extra_data", &parameters.extra_data),
        ("congestion", &parameters.congestion),
        ("congestion_used", &extra.congestion_used),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            document.string(key, text);
        }
    }
}

fn write_options(document: &mut JsonWriter, parameters: &TestParameters) {
    let options = [
        ("get_server_output", parameters.get_server_output),
        ("udp_counters_64bit", parameters.udp_counters_64bit),
        ("repeating_payload", parameters.repeating_payload),
        ("zerocopy", parameters.zero_copy),
        ("dont_fragment", parameters.dont_fragment),
    ];
    for (key, _) in options.into_iter().filter(|(_, on)| *on) {
        document.integer(key, 1);
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
