//! iperf3's text output, character for character: profile 3.21.
//!
//! The caller adds everything outside a line's text: the title or the time stamp before each line, flushing, and the
//! messages on the standard error output (`iperf3: error - …`, `iperf3: interrupt - …`, warnings).

mod intervals;
mod lines;
mod start;
mod summary;

use std::io::{self, Write};

use linerate_model::event::{ConnectionEstablished, TestEvent};
use linerate_model::stream::EndpointRole;
use linerate_units::Port;
use linerate_units::iperf3::UnitFormat;

use crate::figures::TestContext;

/// Options of the text output.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// The unit of the bitrate column (`-f`).
    pub format: UnitFormat,
    /// More lines (`-V`).
    pub verbose: bool,
    /// First line of `-V`, for example `iperf 3.21`.
    pub version: String,
    /// Second line of `-V`: the system as `uname -a` names it.
    pub system_information: String,
}

/// Writes the events of one test after the other as iperf3 does.
///
/// Write errors are the only errors.
#[derive(Debug)]
pub struct Iperf3Renderer {
    options: TextOptions,
    /// The control connection of the current test, until the test starts.
    pending: Option<ConnectionEstablished>,
    /// True when its greeting has been written.
    greeted: bool,
    context: Option<TestContext>,
    interval_shown: bool,
}

impl Iperf3Renderer {
    /// A renderer that has written nothing yet.
    #[must_use]
    pub fn new(options: TextOptions) -> Self {
        Self { options, pending: None, greeted: false, context: None, interval_shown: false }
    }

    /// Writes the lines before everything else: with `-V` the version and the system.
    pub fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.options.verbose {
            writeln!(out, "{}", self.options.version)?;
            writeln!(out, "{}", self.options.system_information)?;
        }
        Ok(())
    }

    /// Writes a server's banner; `test` counts from 1.
    pub fn listening(&mut self, port: Port, test: u64, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", lines::BANNER)?;
        writeln!(out, "Server listening on {port} (test #{test})")?;
        writeln!(out, "{}", lines::BANNER)
    }

    /// Writes the lines of one event. [`TestEvent::Warning`] has none here: warnings belong on the standard error output.
    pub fn event(&mut self, event: &TestEvent, out: &mut dyn Write) -> io::Result<()> {
        match event {
            TestEvent::Connected(connected) => self.connected(connected, out),
            TestEvent::Started(start) => {
                let connected = self.pending.take();
                start::write(&self.options, connected.as_ref(), start, out)?;
                self.context = Some(TestContext::of(start));
                Ok(())
            }
            TestEvent::Interval(interval) => {
                let Some(context) = &self.context else { return Ok(()) };
                if !context.shows(interval) {
                    return Ok(());
                }
                let first = !self.interval_shown;
                self.interval_shown = true;
                intervals::write(self.options.format, context, interval, first, out)
            }
            TestEvent::FarInterval(_) | TestEvent::Warning(_) | TestEvent::Debug(_) => Ok(()),
            TestEvent::Finished(report) => {
                if let Some(connected) = self.pending.take().filter(|_| !self.greeted) {
                    start::write_greeting(&connected, out)?;
                }
                self.interval_shown = false;
                let Some(context) = self.context.take() else { return Ok(()) };
                summary::write(&self.options, &context, report, out)
            }
        }
    }

    /// With `-V` the time precedes this line and is known only when the test starts: the line is delayed until then.
    fn connected(&mut self, connected: &ConnectionEstablished, out: &mut dyn Write) -> io::Result<()> {
        self.context = None;
        self.interval_shown = false;
        self.pending = Some(connected.clone());
        self.greeted = !self.options.verbose;
        if self.greeted {
            return start::write_greeting(connected, out);
        }
        if let (EndpointRole::Client, Some(mss)) = (connected.side, connected.control_mss) {
            writeln!(out, "Control connection MSS {mss}")?;
        }
        Ok(())
    }
}
