//! Figures of one run, as they are kept and compared.

use serde_json::{Map, Value};

/// Kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Rate at the receivers in bit/s.
    Goodput,
    /// Datagrams that reached the receivers, per second.
    PacketRate,
    /// Lost datagrams over sent ones.
    Loss,
    /// Jitter of the datagrams (RFC 3550) in milliseconds.
    Jitter,
    /// Processor seconds of all processes per received gigabit.
    Cpu,
    /// Processor seconds of the machine per received gigabit.
    MachineCpu,
    /// Waits of the processes' threads per second.
    Waits,
    /// Wall time in milliseconds, of the cells that wait for something.
    Wait,
}

const FIGURES: [(Figure, &str); 8] = [
    (Figure::Goodput, "goodput"),
    (Figure::PacketRate, "packets"),
    (Figure::Loss, "loss"),
    (Figure::Jitter, "jitter"),
    (Figure::Cpu, "cpu"),
    (Figure::MachineCpu, "machine_cpu"),
    (Figure::Waits, "waits"),
    (Figure::Wait, "wait_ms"),
];

/// Figures of one run; `None` where a figure does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BenchRun([Option<f64>; FIGURES.len()]);

impl BenchRun {
    /// Returns the run with a figure.
    pub(super) fn with(mut self, figure: Figure, value: Option<f64>) -> Self {
        self.0[figure as usize] = value;
        self
    }

    /// Returns a figure.
    pub(super) const fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure as usize]
    }

    /// Returns the object that [`BenchRun::parse`] reads.
    pub(super) fn to_json(self) -> Value {
        let known = FIGURES.iter().filter_map(|(figure, key)| Some(((*key).to_owned(), self.get(*figure)?.into())));
        Value::Object(known.collect::<Map<_, _>>())
    }

    /// Reads an object of [`BenchRun::to_json`].
    pub(super) fn parse(value: &Value) -> Self {
        FIGURES.iter().fold(Self::default(), |run, (figure, key)| run.with(*figure, value[*key].as_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written() {
        for (index, (figure, _)) in FIGURES.iter().enumerate() {
            assert_eq!(*figure as usize, index);
        }
        let run = BenchRun::default().with(Figure::Goodput, Some(1e9)).with(Figure::Wait, Some(2.5));
        assert_eq!(run.to_json().to_string(), r#"{"goodput":1000000000.0,"wait_ms":2.5}"#);
        assert_eq!(BenchRun::parse(&run.to_json()), run);
    }
}
