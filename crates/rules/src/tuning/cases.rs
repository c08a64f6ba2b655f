//! Hosts and paths of the rules' own cases.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Diagnosis, Verdict};
use linerate_model::host::kernel::KernelVersion;
use linerate_units::{BitRate, ByteCount, StreamCount};

use super::goal::Goal;
use super::inputs::{Host, Inputs};

/// Kernel 6.12 on 16 GiB with these values.
pub(super) fn host(values: &[(&str, &str)]) -> Host {
    Host {
        kernel: Some(KernelVersion::new(6, 12)),
        settings: values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        memory: Some(ByteCount::from_mebibytes(16 * 1024)),
        page: Some(ByteCount::new(4096)),
        ..Host::default()
    }
}

/// That host at the path of Red Hat's guide, 10 Gbit/s and 117 ms, with one connection.
pub(super) fn rhel(near: Host) -> Inputs {
    let rate = BitRate::from_bits_per_second(10e9);
    let flows = Some(StreamCount::new(1));
    Inputs { flows, ..Inputs::given(Goal::WanBulk, near, None, rate, Duration::from_millis(117)) }
}

/// The same after a measurement that named this cause.
pub(super) fn diagnosed(mut inputs: Inputs, cause: Cause) -> Inputs {
    let verdict = Verdict {
        cause,
        confidence: Confidence::High,
        text: cause.explanation().to_owned(),
        evidence: Vec::new(),
        advice: Vec::new(),
    };
    inputs.diagnosis = Some(Diagnosis {
        verdicts: vec![verdict],
        states: Vec::new(),
        goodput: inputs.seen.goodput.unwrap_or_default(),
        bounds: Vec::new(),
        next: None,
    });
    inputs
}
