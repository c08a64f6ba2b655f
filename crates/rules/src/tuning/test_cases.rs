//! Hosts and paths of the rules' test cases.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict, TransferDiagnosis};
use linerate_model::host::kernel::KernelVersion;
use linerate_units::{BitRate, ByteCount, StreamCount};

use super::goal::TuningGoal;
use super::inputs::{TuningHost, TuningInputs};

/// Returns a host with kernel 6.12, 16 GiB and these values.
pub(super) fn host(values: &[(&str, &str)]) -> TuningHost {
    TuningHost {
        kernel: Some(KernelVersion::new(6, 12)),
        settings: values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        memory: Some(ByteCount::from_mebibytes(16 * 1024)),
        page: Some(ByteCount::new(4096)),
        ..TuningHost::default()
    }
}

/// Returns that host on the path of Red Hat's guide, 10 Gbit/s and 117 ms, with one connection.
pub(super) fn rhel(near: TuningHost) -> TuningInputs {
    let rate = BitRate::from_bits_per_second(10e9);
    let flows = Some(StreamCount::new(1));
    TuningInputs {
        flows,
        ..TuningInputs::from_rate_and_rtt(TuningGoal::WanBulk, near, None, rate, Duration::from_millis(117))
    }
}

/// Returns the same inputs after a measurement that named this cause.
pub(super) fn diagnosed(mut inputs: TuningInputs, cause: Cause) -> TuningInputs {
    let verdict = DiagnosisVerdict {
        cause,
        confidence: Confidence::High,
        text: cause.explanation().to_owned(),
        share: None,
        without: None,
        together_with: None,
        evidence: Vec::new(),
        advice: Vec::new(),
        tune: None,
    };
    inputs.diagnosis = Some(TransferDiagnosis {
        verdicts: vec![verdict],
        states: Vec::new(),
        goodput: inputs.seen.goodput.unwrap_or_default(),
        bounds: Vec::new(),
        next: None,
        contradictions: Vec::new(),
        notes: Vec::new(),
    });
    inputs
}
