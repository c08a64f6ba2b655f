//! Recent samples of one flow.

use std::collections::VecDeque;

use linerate_model::flow::FlowChange;

/// Number of samples retained.
pub(crate) const MAX_SAMPLES: usize = 120;

/// Series for the plots, the oldest sample first; unknown values are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowHistory {
    points: VecDeque<[f32; 3]>,
}

impl FlowHistory {
    pub(crate) fn push(&mut self, change: &FlowChange) {
        if self.points.len() == MAX_SAMPLES {
            self.points.pop_front();
        }
        let time = change.rtt.map_or(0.0, |time| time.as_secs_f32());
        let window = change.congestion_window.map_or(0.0, |window| narrow(window.as_f64()));
        self.points.push_back([narrow(change.total_rate().bits_per_second()), time, window]);
    }

    /// Rates in bit/s, both directions together.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.series(0)
    }

    /// Round-trip times in seconds.
    pub(crate) fn round_trips(&self) -> Vec<f64> {
        self.series(1)
    }

    /// Congestion windows in bytes.
    pub(crate) fn windows(&self) -> Vec<f64> {
        self.series(2)
    }

    fn series(&self, which: usize) -> Vec<f64> {
        self.points.iter().map(|point| f64::from(point[which])).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a plot has eight levels")]
fn narrow(value: f64) -> f32 {
    value as f32
}
