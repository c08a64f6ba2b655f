//! Progress of the running measurement, for those that follow it: events as lines of JSON (`--json-stream`), and the live
//! picture. Whatever shows progress publishes its events here; a process has one measurement at a time.

mod live;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Args;
use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::path::HopsSnapshot;
use linerate_model::limit::LimitShares;
use linerate_model::sample::{IntervalReport, TcpInterval};
use linerate_model::stream::StreamRole;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, full_screen, terminal};
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime, SegmentCount};

use crate::console;
use crate::exit::ExitStatus;
use live::{LivePicture, LiveScreen};

/// Live picture of a measurement.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LiveArguments {
    /// Draw goodput and delay as graphs while it measures [default on a terminal of 60 by 16 characters or more]
    #[arg(long, conflicts_with_all = ["no_live", "quiet", "json", "json_stream"])]
    live: bool,
    /// Show progress in one line instead
    #[arg(long)]
    no_live: bool,
}

impl LiveArguments {
    /// True with `--live`.
    pub(crate) const fn is_requested(self) -> bool {
        self.live
    }
}

/// The running measurement.
struct RunningMeasurement {
    begun: MonotonicTime,
    /// True with `--json-stream`.
    is_streamed: bool,
    picture: PictureState,
}

enum PictureState {
    None,
    /// Opened at the first phase or sample: a refused connection must not flash.
    Waiting(Box<LivePicture>, InterruptSignals),
    Open(LiveScreen),
}

static RUNNING: Mutex<Option<RunningMeasurement>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<RunningMeasurement>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measurement, until this is dropped.
#[must_use]
pub(crate) struct FollowedMeasurement(());

impl Drop for FollowedMeasurement {
    fn drop(&mut self) {
        close_picture();
        *running() = None;
    }
}

/// Begins a measurement; `text` is its command line.
pub(crate) fn begin(text: &str, is_streamed: bool) -> FollowedMeasurement {
    let begun = clock::monotonic_now();
    *running() = Some(RunningMeasurement { begun, is_streamed, picture: PictureState::None });
    publish(ProgressEvent::with_text(EventKind::Start, text));
    FollowedMeasurement(())
}

/// Has the measurement drawn, where that is wanted and possible; `planned` are its phases.
pub(crate) fn draw(
    how: LiveArguments,
    is_default: bool,
    (title, planned): (&str, &[&str]),
    stop: InterruptSignals,
) -> Result<(), ExitStatus> {
    match availability(how) {
        Ok(()) if how.live || is_default => {
            let picture = Box::new(LivePicture::new(title, planned));
            if let Some(running) = running().as_mut() {
                running.picture = PictureState::Waiting(picture, stop);
            }
        }
        Err(Unavailable::NoTerminal) if how.live && console::has_relay() => {
            console::note("there is no picture of an emulated path, whose time is not this host's: progress is a line");
        }
        Err(Unavailable::NoTerminal) if how.live => {
            let text = "--live needs a terminal at standard output and standard error, in the foreground\n\
                        use --json-stream for the figures while it measures";
            console::error(text, None);
            return Err(ExitStatus::Unable);
        }
        Err(Unavailable::TooSmall) if how.live => {
            let (width, height) = live::MIN_SIZE;
            console::note(&format!("the picture needs {width} columns and {height} lines: progress is a line"));
        }
        _ => {}
    }
    Ok(())
}

/// Reason why there is no picture.
enum Unavailable {
    NoTerminal,
    TooSmall,
}

fn availability(how: LiveArguments) -> Result<(), Unavailable> {
    let is_terminal = terminal::is_terminal(&io::stdout()) && terminal::is_terminal(&io::stderr());
    if how.no_live || !is_terminal || console::progress_style().is_none() || !full_screen::is_available() {
        return Err(Unavailable::NoTerminal);
    }
    let (width, height) = live::MIN_SIZE;
    let fits = terminal::width() >= width && terminal::height().is_some_and(|lines| lines >= height);
    if fits { Ok(()) } else { Err(Unavailable::TooSmall) }
}

/// True when a picture shows the progress, so that lines of text must not.
pub(crate) fn has_picture() -> bool {
    running().as_ref().is_some_and(|running| !matches!(running.picture, PictureState::None))
}

/// True when events are wanted, so that making one is worth its time.
pub(crate) fn is_followed() -> bool {
    let running = running();
    running.as_ref().is_some_and(|running| running.is_streamed || !matches!(running.picture, PictureState::None))
}

/// True with `--json-stream`.
pub(crate) fn is_streamed() -> bool {
    running().as_ref().is_some_and(|running| running.is_streamed)
}

/// Passes an event on; returns false when its reader is gone.
pub(crate) fn publish(mut event: ProgressEvent) -> bool {
    let is_streamed = {
        let mut guard = running();
        let Some(running) = guard.as_mut() else { return true };
        event.at_ns = nanoseconds(clock::monotonic_now().since(running.begun));
        running.show(&event);
        running.is_streamed
    };
    // A failed write is an event, too: nothing is locked here.
    match serde_json::to_string(&event) {
        Ok(line) if is_streamed => console::relay_data(format!("{line}\n").as_bytes()),
        _ => true,
    }
}

impl RunningMeasurement {
    fn show(&mut self, event: &ProgressEvent) {
        if matches!(event.event, EventKind::Phase | EventKind::Sample) {
            self.open_picture();
        }
        match &mut self.picture {
            PictureState::None => {}
            PictureState::Waiting(picture, _) => picture.apply(event),
            PictureState::Open(screen) => screen.update(|picture| picture.apply(event)),
        }
    }

    fn open_picture(&mut self) {
        let PictureState::Waiting(picture, stop) = &self.picture else { return };
        let opened = LiveScreen::open((**picture).clone(), self.begun, console::data_style(), *stop);
        self.picture = match opened {
            Ok(screen) => {
                console::hold();
                PictureState::Open(screen)
            }
            // Progress is not worth an end: the results come.
            Err(_) => PictureState::None,
        };
    }
}

/// Shows the hops of a path in the picture.
pub(crate) fn show_hops(snapshot: &HopsSnapshot) {
    if let Some(running) = running().as_mut() {
        match &mut running.picture {
            PictureState::None => {}
            PictureState::Waiting(picture, _) => picture.show_hops(snapshot),
            PictureState::Open(screen) => screen.update(|picture| picture.show_hops(snapshot)),
        }
    }
}

/// Ends the picture: what was printed meanwhile appears.
pub(crate) fn close_picture() {
    let picture = running().as_mut().map(|running| core::mem::replace(&mut running.picture, PictureState::None));
    if matches!(picture, Some(PictureState::Open(_))) {
        drop(picture);
        console::release();
    }
}

/// Figures of an interval of a transfer, as this host knows them.
pub(crate) fn interval_sample(interval: &IntervalReport) -> ProgressEvent {
    let moved = |role: StreamRole| {
        let streams = interval.streams.iter().filter(|stream| stream.role == role);
        let bytes: Vec<ByteCount> = streams.map(|stream| stream.bytes).collect();
        let rate = || bytes.iter().copied().sum::<ByteCount>().rate_over(interval.length()).bits_per_second();
        (!bytes.is_empty()).then(rate)
    };
    ProgressEvent {
        up_bits_per_second: moved(StreamRole::Sender),
        down_bits_per_second: moved(StreamRole::Receiver),
        ..sender_sample(interval)
    }
}

/// Figures of the senders in an interval, of either end.
pub(crate) fn sender_sample(interval: &IntervalReport) -> ProgressEvent {
    let tcp: Vec<&TcpInterval> = interval.streams.iter().filter_map(|stream| stream.tcp.as_ref()).collect();
    let limits: Vec<LimitShares> = tcp.iter().filter_map(|tcp| tcp.limits).collect();
    let retransmits: Vec<SegmentCount> = tcp.iter().filter_map(|tcp| tcp.retransmits).collect();
    ProgressEvent {
        rtt_ns: tcp.iter().filter_map(|tcp| tcp.rtt).max().map(nanoseconds),
        retransmitted_segments: (!retransmits.is_empty()).then(|| retransmits.into_iter().sum::<SegmentCount>().get()),
        limits: LimitShares::mean(&limits),
        ..ProgressEvent::new(EventKind::Sample)
    }
}
