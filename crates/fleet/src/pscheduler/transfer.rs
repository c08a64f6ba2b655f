//! Options of a transfer: a specification as iperf3's command line.

use super::duration::DEFAULT_TRANSFER;
use super::specification::SpecValues;

/// Options of iperf3 for the transfer, without the host, its port and the addresses.
#[must_use]
pub fn transfer_options(spec: &SpecValues) -> Vec<String> {
    let whole = |time: core::time::Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let mut options = vec!["-t".to_owned(), whole(spec.duration.unwrap_or(DEFAULT_TRANSFER)).to_string()];
    let omit = spec.omit.map(whole).filter(|seconds| *seconds > 0).map(|seconds| seconds.to_string());
    let rate = spec.bandwidth.map(|rate| match spec.burst_size {
        Some(burst) => format!("{rate}/{burst}"),
        None => rate.to_string(),
    });
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    for (option, value) in [
        ("-O", omit),
        ("-P", number(spec.parallel)),
        ("-w", number(spec.window_size)),
        ("-M", number(spec.mss)),
        ("-b", rate),
        ("--fq-rate", number(spec.fq_rate)),
        ("-l", number(spec.buffer_length)),
        ("-S", number(spec.ip_tos.map(u64::from))),
        ("-C", spec.congestion.clone()),
        ("-L", number(spec.flow_label.map(u64::from))),
    ] {
        options.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    for (option, is_set) in [("-u", spec.udp), ("-N", spec.no_delay), ("-Z", spec.zero_copy), ("-R", spec.reverse)] {
        options.extend(is_set.then(|| option.to_owned()));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_value_becomes_its_option() {
        let of = |spec: serde_json::Value| {
            let spec: SpecValues = serde_json::from_value(spec).expect("a specification");
            transfer_options(&spec).join(" ")
        };
        assert_eq!(of(json!({})), "-t 10");
        assert_eq!(
            of(json!({
                "duration": "PT20.5S", "omit": "PT2S", "parallel": 4, "window-size": 65536, "mss": 1400, "bandwidth": 1_000_000,
                "burst-size": 8, "buffer-length": 1460, "ip-tos": 32, "congestion": "cubic", "flow-label": 7, "udp": true,
                "no-delay": true, "zero-copy": true, "reverse": true
            })),
            "-t 21 -O 2 -P 4 -w 65536 -M 1400 -b 1000000/8 -l 1460 -S 32 -C cubic -L 7 -u -N -Z -R"
        );
        assert_eq!(of(json!({ "fq-rate": 5_000_000, "omit": "PT0S", "udp": false })), "-t 10 --fq-rate 5000000");
    }
}
