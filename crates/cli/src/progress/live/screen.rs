//! Thread that draws the picture and reads the keys.

use std::cell::RefCell;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_report::throughput_text::TextStyle;
use linerate_sys::clock;
use linerate_sys::full_screen::{ControlKeys, FullScreen};
use linerate_sys::poll::Waker;
use linerate_sys::signals::{InterruptSignals, Signal};
use linerate_units::MonotonicTime;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::draw;
use super::state::{HopSelection, LivePicture};
use crate::keys::{KeyPress, parse_keys};

/// Shortest time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// The picture on the terminal; dropping it restores the terminal.
pub(crate) struct LiveScreen {
    shared: Arc<SharedPicture>,
    thread: Option<JoinHandle<()>>,
}

/// State that the measurement updates and the thread draws.
struct SharedPicture {
    picture: Mutex<LivePicture>,
    is_ended: AtomicBool,
    waker: Waker,
}

impl SharedPicture {
    fn picture(&self) -> MutexGuard<'_, LivePicture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveScreen {
    /// Takes the terminal and starts the thread; `begun` is the zero of the events' times.
    pub(crate) fn open(
        picture: LivePicture,
        begun: MonotonicTime,
        style: TextStyle,
        stop: InterruptSignals,
    ) -> linerate_sys::Result<Self> {
        let waker = Waker::new()?;
        let shared = Arc::new(SharedPicture { picture: Mutex::new(picture), is_ended: AtomicBool::new(false), waker });
        let view = FullScreen::enter(ControlKeys::Signals)?;
        let drawn = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("picture".to_owned()).spawn(move || {
            // A terminal that is gone ends the picture; SIGHUP ends the measurement.
            let _ = run(view, &drawn, begun, style, stop);
        });
        // Without the thread the terminal is restored, as it owns the view.
        Ok(Self { shared, thread: thread.ok() })
    }

    /// Changes the picture.
    pub(crate) fn update(&self, change: impl FnOnce(&mut LivePicture)) {
        change(&mut self.shared.picture());
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Frame on its way to the terminal.
#[derive(Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Terminal of one size.
struct Canvas {
    frame: FrameBytes,
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
}

impl Canvas {
    fn new((width, height): (usize, usize)) -> io::Result<Self> {
        let frame = FrameBytes::default();
        let cells = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        let viewport = Viewport::Fixed(Rect::new(0, 0, cells(width), cells(height)));
        let terminal = Terminal::with_options(CrosstermBackend::new(frame.clone()), TerminalOptions { viewport })?;
        frame.0.borrow_mut().extend_from_slice(b"\x1b[0m\x1b[2J");
        Ok(Self { frame, terminal })
    }

    fn draw(&mut self, view: &mut FullScreen, picture: &LivePicture, style: TextStyle) -> io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, picture, style))?;
        let bytes = core::mem::take(&mut *self.frame.0.borrow_mut());
        view.write(&String::from_utf8_lossy(&bytes)).map_err(io::Error::from)
    }
}

fn run(
    mut view: FullScreen,
    shared: &SharedPicture,
    begun: MonotonicTime,
    style: TextStyle,
    stop: InterruptSignals,
) -> io::Result<()> {
    let mut canvas = Canvas::new(view.size())?;
    while !shared.is_ended.load(Ordering::Acquire) {
        let picture = {
            let mut picture = shared.picture();
            picture.now = clock::monotonic_now().since(begun);
            picture.is_stopping |= stop.pending().is_some();
            picture.clone()
        };
        canvas.draw(&mut view, &picture, style)?;
        let next = clock::monotonic_now() + FRAME_INTERVAL;
        loop {
            let left = next.since(clock::monotonic_now());
            let woken = view.wait(&[shared.waker.as_fd()], left)?;
            if woken.resized {
                canvas = Canvas::new(view.size())?;
            }
            if woken.keys {
                let keys = view.read_keys()?;
                if keys.is_empty() {
                    return Ok(());
                }
                for key in parse_keys(&keys) {
                    act(key, shared, stop);
                }
            }
            if woken.ending || left.is_zero() {
                break;
            }
        }
    }
    Ok(())
}

fn act(key: KeyPress, shared: &SharedPicture, stop: InterruptSignals) {
    if let Some(selection) = hop_selection(key) {
        shared.picture().select_hop(selection);
    }
    match key {
        KeyPress::Character('q' | 'Q') => stop.request(Signal::Interrupt),
        KeyPress::Character('s' | 'S' | ' ') => stop.request_phase_end(),
        _ => {}
    }
}

/// Selection of a hop that a key asks for.
const fn hop_selection(key: KeyPress) -> Option<HopSelection> {
    match key {
        KeyPress::Up | KeyPress::Character('k') => Some(HopSelection::Previous),
        KeyPress::Down | KeyPress::Character('j') => Some(HopSelection::Next),
        KeyPress::Escape => Some(HopSelection::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_and_letters_select_hops() {
        let selections: Vec<_> = parse_keys(b"\x1b[A\x1bOBjkq\x1b").into_iter().map(hop_selection).collect();
        let (previous, next) = (Some(HopSelection::Previous), Some(HopSelection::Next));
        assert_eq!(selections, [previous, next, next, previous, None, Some(HopSelection::None)]);
    }
}
