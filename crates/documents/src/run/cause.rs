//! Cause that limits a direction of a run.

use linerate_model::diagnosis::DiagnosisVerdict;
use linerate_model::direction::Direction;

use super::{RunDocument, RunResult};

impl RunDocument {
    /// First verdict of a direction: that of one stream, which is what a program with one connection sees; `None` where the
    /// run looked for none.
    #[must_use]
    pub fn first_cause(&self, direction: Direction) -> Option<&DiagnosisVerdict> {
        match &self.result {
            RunResult::Throughput(throughput) => {
                let tests = throughput.runs.iter().filter(|test| test.direction == direction);
                let diagnosis = tests.min_by_key(|test| test.streams)?.diagnosis.as_ref()?;
                diagnosis.verdicts.first()
            }
            RunResult::Diagnose(diagnose) if diagnose.direction == direction => diagnose.verdicts.first(),
            _ => None,
        }
    }

    /// Payload that the run transferred, as far as its document tells: an estimate for a load.
    #[must_use]
    pub fn transferred_bytes(&self) -> u64 {
        match &self.result {
            RunResult::Throughput(throughput) => {
                let sizes = throughput.runs.iter().map(|test| test.sent_bytes.max(test.received_bytes));
                sizes.flatten().sum()
            }
            RunResult::Path(path) => path.traffic_bytes.unwrap_or_default(),
            RunResult::Diagnose(diagnose) => estimate(diagnose.goodput_bits_per_second, diagnose.duration_ns),
            RunResult::Load(load) => {
                let phases = load.phases.iter();
                let rates = phases.map(|phase| {
                    let up = phase.goodput_up_bits_per_second.unwrap_or_default();
                    estimate(
                        Some(up + phase.goodput_down_bits_per_second.unwrap_or_default()),
                        phase.end_ns.saturating_sub(phase.start_ns),
                    )
                });
                rates.sum()
            }
            _ => 0,
        }
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn estimate(bits_per_second: Option<f64>, duration_ns: u64) -> u64 {
    (bits_per_second.unwrap_or_default() / 8.0 * duration_ns as f64 / 1e9) as u64
}
