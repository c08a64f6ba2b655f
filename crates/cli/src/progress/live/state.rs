//! State of the live picture: what the events of a measurement have reported so far.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::path::HopsSnapshot;

use super::curve::SampleCurve;

/// Phase of the measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct LivePhase {
    pub(super) name: String,
    /// Begin and end; `None` before.
    pub(super) begun: Option<Duration>,
    pub(super) ended: Option<Duration>,
    /// Expected end; `None` when it depends on the measurement.
    pub(super) expected_end: Option<Duration>,
    /// Text about the end where it depends on the measurement.
    pub(super) awaited: Option<String>,
    /// Result in one line; else the latest figures are one.
    pub(super) result: Option<String>,
    pub(super) latest: LiveFigures,
}

/// Latest figures of a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveFigures {
    pub(super) up: Option<f64>,
    pub(super) down: Option<f64>,
    pub(super) rtt: Option<Duration>,
    pub(super) retransmits: Option<u64>,
    pub(super) limits: Option<linerate_model::limit::LimitShares>,
}

/// Hops of the path, and the one whose rounds are drawn.
#[derive(Clone, Debug)]
pub(super) struct HopsView {
    pub(super) snapshot: HopsSnapshot,
    /// Distance of the hop that a key selected.
    selected: Option<u8>,
}

/// Change of the selected hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopSelection {
    Previous,
    Next,
    None,
}

impl HopsView {
    /// True when a key selected a hop.
    pub(super) const fn is_selected(&self) -> bool {
        self.selected.is_some()
    }

    /// Index of the selected hop, or of the last one; `None` without hops.
    pub(super) fn charted(&self) -> Option<usize> {
        let hops = &self.snapshot.hops;
        let selected = self.selected.and_then(|distance| hops.iter().position(|hop| hop.distance == distance));
        selected.or_else(|| hops.len().checked_sub(1))
    }

    fn select(&mut self, selection: HopSelection) {
        let Some(present) = self.charted() else { return };
        let last = self.snapshot.hops.len() - 1;
        let place = match selection {
            HopSelection::None => None,
            HopSelection::Previous if self.is_selected() => Some(present.saturating_sub(1)),
            HopSelection::Next if self.is_selected() => Some((present + 1).min(last)),
            // The first key shows the hop that the chart has, or would have.
            HopSelection::Previous | HopSelection::Next => Some(present),
        };
        self.selected = place.map(|place| self.snapshot.hops[place].distance);
    }
}

/// State of the picture.
#[derive(Clone, Debug)]
pub(crate) struct LivePicture {
    pub(super) title: String,
    pub(super) phases: Vec<LivePhase>,
    /// Index of the running phase.
    pub(super) current: Option<usize>,
    pub(super) up: SampleCurve,
    pub(super) down: SampleCurve,
    pub(super) rtt: SampleCurve,
    /// Round trip of the idle path: the last of the phase `idle`, else the smallest.
    pub(super) idle_rtt: Option<Duration>,
    pub(super) note: Option<String>,
    /// Hops of the path, where they are what is measured.
    pub(super) hops: Option<HopsView>,
    /// True after the request to stop.
    pub(super) is_stopping: bool,
    /// Time since the start.
    pub(super) now: Duration,
}

/// Name of the phase without load.
const IDLE: &str = "idle";

impl LivePicture {
    /// A picture before the first event; `planned` are the names of the phases, as far as they are known.
    pub(crate) fn new(title: impl Into<String>, planned: &[&str]) -> Self {
        let phase = |name: &&str| LivePhase { name: (*name).to_owned(), ..LivePhase::default() };
        Self {
            title: title.into(),
            phases: planned.iter().map(phase).collect(),
            current: None,
            up: SampleCurve::default(),
            down: SampleCurve::default(),
            rtt: SampleCurve::default(),
            idle_rtt: None,
            note: None,
            hops: None,
            is_stopping: false,
            now: Duration::ZERO,
        }
    }

    /// Takes up an event.
    pub(crate) fn apply(&mut self, event: &ProgressEvent) {
        let at = Duration::from_nanos(event.at_ns);
        self.now = self.now.max(at);
        match event.event {
            EventKind::Phase => self.phase(at, event),
            EventKind::Sample => self.sample(at, event),
            EventKind::Run => {
                if let Some(phase) = self.running() {
                    phase.result.clone_from(&event.text);
                }
                self.end_phase(at);
            }
            EventKind::Note | EventKind::Error => self.note.clone_from(&event.text),
            EventKind::Start | EventKind::Interval | EventKind::Result => {}
        }
    }

    /// Replaces the hops; the selected one stays selected.
    pub(crate) fn show_hops(&mut self, snapshot: &HopsSnapshot) {
        let selected = self.hops.as_ref().and_then(|view| view.selected);
        self.hops = Some(HopsView { snapshot: snapshot.clone(), selected });
    }

    /// Selects another hop.
    pub(super) fn select_hop(&mut self, selection: HopSelection) {
        if let Some(view) = &mut self.hops {
            view.select(selection);
        }
    }

    /// The running phase.
    pub(super) fn running(&mut self) -> Option<&mut LivePhase> {
        self.phases.get_mut(self.current?)
    }

    fn phase(&mut self, at: Duration, event: &ProgressEvent) {
        let name = event.phase.as_deref().unwrap_or_default();
        if self.running().is_none_or(|phase| phase.name != name) {
            self.end_phase(at);
            self.begin_phase(at, name);
        }
        let expected_end = event.left_ns.map(|left| at + Duration::from_nanos(left));
        if let Some(phase) = self.running() {
            phase.expected_end = expected_end;
            phase.awaited.clone_from(&event.text);
        }
    }

    fn begin_phase(&mut self, at: Duration, name: &str) {
        let planned = self.phases.iter().position(|phase| phase.name == name && phase.begun.is_none());
        let index = planned.unwrap_or_else(|| {
            // Before those that are still to come.
            let next = self.phases.iter().position(|phase| phase.begun.is_none()).unwrap_or(self.phases.len());
            self.phases.insert(next, LivePhase { name: name.to_owned(), ..LivePhase::default() });
            next
        });
        // Planned phases before this one were left out.
        let mut before = 0;
        self.phases.retain(|phase| {
            before += 1;
            before > index || phase.begun.is_some()
        });
        self.current = self.phases.iter().position(|phase| phase.begun.is_none());
        if let Some(phase) = self.running() {
            phase.begun = Some(at);
        }
        for curve in [&mut self.up, &mut self.down, &mut self.rtt] {
            curve.interrupt();
        }
    }

    fn end_phase(&mut self, at: Duration) {
        let Some(phase) = self.running() else { return };
        phase.ended = Some(at);
        let idle = phase.latest.rtt.filter(|_| phase.name == IDLE);
        self.idle_rtt = idle.or(self.idle_rtt);
        self.current = None;
    }

    fn sample(&mut self, at: Duration, event: &ProgressEvent) {
        let rtt = event.rtt_ns.map(Duration::from_nanos);
        let seconds = at.as_secs_f64();
        for (curve, value) in [
            (&mut self.up, event.up_bits_per_second),
            (&mut self.down, event.down_bits_per_second),
            (&mut self.rtt, rtt.map(|rtt| rtt.as_secs_f64())),
        ] {
            if let Some(value) = value {
                curve.push(seconds, value);
            }
        }
        let has_idle_phase = self.phases.iter().any(|phase| phase.name == IDLE);
        if !has_idle_phase {
            self.idle_rtt = rtt.into_iter().chain(self.idle_rtt).min();
        }
        let Some(phase) = self.running() else { return };
        if let Some(left) = event.left_ns {
            phase.expected_end = Some(at + Duration::from_nanos(left));
        }
        let latest = &mut phase.latest;
        latest.up = event.up_bits_per_second.or(latest.up);
        latest.down = event.down_bits_per_second.or(latest.down);
        latest.rtt = rtt.or(latest.rtt);
        latest.limits = event.limits.or(latest.limits);
        if let Some(more) = event.retransmitted_segments {
            latest.retransmits = Some(latest.retransmits.unwrap_or(0) + more);
        }
    }

    /// Figures of the running phase, else of the one before.
    pub(super) fn figures(&self) -> LiveFigures {
        let last = || self.phases.iter().rposition(|phase| phase.begun.is_some());
        let index = self.current.or_else(last);
        index.and_then(|index| self.phases.get(index)).map(|phase| phase.latest.clone()).unwrap_or_default()
    }

    /// Time that the queues of the path add to the idle round trip; `None` when it is little, or unknown.
    pub(super) fn queueing(&self) -> Option<Duration> {
        /// Smallest added delay that is a queue: less is scheduling.
        const MIN_QUEUE: Duration = Duration::from_millis(1);
        let (idle, rtt) = (self.idle_rtt?, self.figures().rtt?);
        let added = rtt.saturating_sub(idle);
        (added >= MIN_QUEUE && added * 5 >= idle).then_some(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mut event: ProgressEvent, seconds: f64) -> ProgressEvent {
        event.at_ns = Duration::from_secs_f64(seconds).as_nanos().try_into().expect("small");
        event
    }

    fn names(picture: &LivePicture) -> Vec<(&str, bool)> {
        picture.phases.iter().map(|phase| (phase.name.as_str(), phase.begun.is_some())).collect()
    }

    #[test]
    fn phases_follow_the_plan_and_unplanned_ones_come_where_they_begin() {
        let mut picture = LivePicture::new("path", &["idle", "hops", "capacity up"]);
        picture.apply(&at(ProgressEvent::phase("path MTU", Some(0)), 0.1));
        assert_eq!(names(&picture), [("path MTU", true), ("idle", false), ("hops", false), ("capacity up", false)]);
        picture.apply(&at(ProgressEvent::phase("idle", None), 0.2));
        picture.apply(&at(ProgressEvent::phase("idle", Some(2_000_000_000)), 1.0));
        assert_eq!(picture.phases[1].expected_end, Some(Duration::from_secs(3)), "the same phase goes on");
        picture.apply(&at(ProgressEvent::phase("capacity up", None), 3.0));
        assert_eq!(names(&picture), [("path MTU", true), ("idle", true), ("capacity up", true)], "no hops");
        assert_eq!(picture.phases[1].ended, Some(Duration::from_secs(3)));
    }

    #[test]
    fn samples_belong_to_their_phase_and_a_queue_is_what_exceeds_the_idle_path() {
        let mut picture = LivePicture::new("load", &["idle", "down"]);
        let sample = |rtt: u64, down: Option<f64>| ProgressEvent {
            rtt_ns: Some(rtt * 1_000_000),
            down_bits_per_second: down,
            ..ProgressEvent::new(EventKind::Sample)
        };
        picture.apply(&at(ProgressEvent::phase("idle", None), 0.0));
        picture.apply(&at(sample(20, None), 1.0));
        assert_eq!((picture.idle_rtt, picture.queueing()), (None, None));
        picture.apply(&at(ProgressEvent::phase("down", None), 2.0));
        picture.apply(&at(sample(21, Some(9e6)), 3.0));
        assert_eq!(picture.queueing(), None, "a twentieth is no queue");
        picture.apply(&at(sample(150, Some(9.5e6)), 4.0));
        assert_eq!(picture.queueing(), Some(Duration::from_millis(130)));
        assert_eq!(picture.down.segments().len(), 1);
        assert_eq!(picture.rtt.segments().len(), 2, "no line from one phase to the next");
    }
}
