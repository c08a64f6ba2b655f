//! Events of one run: kept for the result, shown, and published.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_model::direction::Direction;
use linerate_model::event::{TestEvent, TestStart};
use linerate_model::report::{TestReport, TestTermination};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::StreamRole;
use linerate_report::throughput_text::{self, TestProgress, TextStyle};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, SegmentCount, StreamCount};

use super::{SAMPLE_INTERVAL, run_name};
use crate::{console, progress};

/// Observer of one run.
pub(super) struct RunObserver {
    flow: Direction,
    streams: StreamCount,
    total: Option<Duration>,
    style: Option<TextStyle>,
    rates: Vec<BitRate>,
    /// Bytes moved since the last of these rates, and their time.
    since_rate: (ByteCount, Duration),
    retransmits: SegmentCount,
    /// Latest figures of a sender at the far end.
    far: Option<ProgressEvent>,
    pub(super) start: Option<TestStart>,
    pub(super) intervals: Vec<IntervalReport>,
    pub(super) report: Option<TestReport>,
}

impl RunObserver {
    pub(super) fn new(
        flow: Direction,
        streams: StreamCount,
        total: Option<Duration>,
        style: Option<TextStyle>,
    ) -> Self {
        Self {
            flow,
            streams,
            total,
            style,
            rates: Vec::new(),
            since_rate: (ByteCount::ZERO, Duration::ZERO),
            retransmits: SegmentCount::ZERO,
            far: None,
            start: None,
            intervals: Vec::new(),
            report: None,
        }
    }

    pub(super) fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Connected(_) | TestEvent::Debug(_) => {}
            TestEvent::FarInterval(interval) => {
                self.far = Some(progress::sender_sample(interval)).filter(|_| self.flow == Direction::Down);
            }
            TestEvent::Started(start) => {
                self.start = Some((**start).clone());
                let time = self.total.map(|total| nanoseconds(total + start.parameters.omit));
                progress::publish(ProgressEvent::phase(run_name(self.flow, self.streams), time));
            }
            TestEvent::Interval(interval) => self.interval(interval),
            TestEvent::Warning(text) => {
                console::note(&format!("warning: {text}"));
                progress::publish(ProgressEvent::with_text(EventKind::Note, text));
            }
            TestEvent::Finished(report) => {
                let report = (**report).clone();
                if self.start.is_some() || report.termination == TestTermination::Complete {
                    self.report = Some(report);
                }
            }
        }
    }

    /// Passes the figures on; those of a sender at the far end come with its latest report.
    fn publish(&mut self, interval: &IntervalReport) {
        let own = progress::interval_sample(interval);
        progress::publish(match self.far.take() {
            Some(far) => ProgressEvent { down_bits_per_second: own.down_bits_per_second, ..far },
            None => own,
        });
    }

    fn interval(&mut self, interval: &IntervalReport) {
        if progress::is_followed() {
            self.publish(interval);
        }
        self.intervals.push(interval.clone());
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        self.since_rate = (self.since_rate.0 + moved, self.since_rate.1 + interval.length());
        let senders = interval.streams.iter().filter(|stream| stream.role == StreamRole::Sender);
        let tcp: Vec<_> = senders.filter_map(|stream| stream.tcp.as_ref()).collect();
        self.retransmits += tcp.iter().filter_map(|tcp| tcp.retransmits).sum();
        let Some(style) = self.style else { return };
        // Updates are limited to the visible rate: a line per 10 ms sample would cost time.
        if self.since_rate.1 * 10 < SAMPLE_INTERVAL * 9 {
            return;
        }
        let (moved, time) = core::mem::take(&mut self.since_rate);
        self.rates.push(moved.rate_over(time));
        let line = throughput_text::progress_line(
            &TestProgress {
                flow: self.flow,
                streams: self.streams,
                elapsed: interval.end,
                total: self.total,
                rates: &self.rates,
                rtt: tcp.first().and_then(|tcp| tcp.rtt),
                retransmits: (!tcp.is_empty()).then_some(self.retransmits),
            },
            style,
        );
        console::progress(&line);
    }
}
