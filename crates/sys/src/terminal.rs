//! The terminal.

use core::sync::atomic::{AtomicI32, Ordering};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr};

use crate::error::{Error, Result};
use crate::poll::{self, PollInterest, PollItem, Waker};
use crate::signals;

/// True for a terminal.
pub fn is_terminal(descriptor: &impl AsFd) -> bool {
    descriptor.as_fd().is_terminal()
}

/// Number of characters per line: the width of the terminal at standard output (else at standard error), else
/// `$COLUMNS`, else 80.
#[must_use]
pub fn width() -> usize {
    let told = || window_columns(io::stdout().as_fd()).or_else(|| window_columns(io::stderr().as_fd()));
    let configured = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    told().or_else(configured).filter(|columns| *columns > 0).unwrap_or(80)
}

/// Number of lines of the terminal at standard output (else at standard error); `None` when neither is one.
#[must_use]
pub fn height() -> Option<usize> {
    let rows = |size: Option<Winsize>| size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
    rows(window_size(io::stdout().as_fd())).or_else(|| rows(window_size(io::stderr().as_fd())))
}

fn window_columns(descriptor: BorrowedFd<'_>) -> Option<usize> {
    window_size(descriptor).map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn window_size(descriptor: BorrowedFd<'_>) -> Option<Winsize> {
    tcgetwinsize(descriptor).ok()
}

/// Maximum length of a password, in bytes.
const MAX_PASSWORD_BYTES: usize = 4096;

/// Asks the user for a password on the terminal, without echo.
///
/// The terminal is restored in every case, also when a signal (Ctrl-C, `SIGTERM`, `SIGHUP`, Ctrl-\) comes; the signal
/// then has its usual effect, and [`Error::Cancelled`] is returned if the process survives that.
pub fn read_password(prompt: &str) -> Result<String> {
    let operation = "asking for a password on the terminal";
    let failed = |cause| Error::system(operation, cause);
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|cause| {
        let hint = "there is no terminal to ask on: give the password in the environment instead";
        failed(cause).hint_on(libc::ENXIO, hint).hint_on(libc::ENODEV, hint).hint_on(libc::ENOENT, hint)
    })?;
    read_password_on(&terminal, prompt).map_err(failed)?.ok_or_else(|| Error::Cancelled { operation: operation.into() })
}

/// `None` when a signal came.
fn read_password_on(mut terminal: &File, prompt: &str) -> io::Result<Option<String>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let signals = CaughtSignals::catch()?;
    let line = {
        let _silence = EchoOff::of(terminal)?;
        terminal.write_all(prompt.as_bytes())?;
        let line = read_line(terminal, &signals);
        // The newline that was typed was not shown either.
        terminal.write_all(b"\n")?;
        line?
    };
    let number = signals.number();
    drop(signals);
    if number != 0 {
        // The signal that it would have got, under the handling it had.
        signals::raise(number);
        return Ok(None);
    }
    Ok(Some(line))
}

fn read_line(mut terminal: &File, signals: &CaughtSignals) -> io::Result<String> {
    let mut line = Vec::new();
    while signals.number() == 0 {
        let mut items = [PollItem::new(terminal, PollInterest::READ), PollItem::new(signals.waker, PollInterest::READ)];
        poll::wait(&mut items, None)?;
        if !items[0].is_readable() {
            continue;
        }
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if line.len() < MAX_PASSWORD_BYTES => line.push(byte[0]),
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::E2BIG)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::from_raw_os_error(libc::EILSEQ))
}

/// Turns off a terminal's echo.
struct EchoOff<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> EchoOff<'a> {
    fn of(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        silent.local_modes.insert(LocalModes::ICANON | LocalModes::ISIG);
        // What was typed before the question is thrown away.
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for EchoOff<'_> {
    fn drop(&mut self) {
        // If it is gone there is nothing to restore.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

static NUMBER: AtomicI32 = AtomicI32::new(0);
static WAKER: OnceLock<Waker> = OnceLock::new();

const CAUGHT: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Holds signals that would end the process until the terminal is restored.
struct CaughtSignals {
    waker: &'static Waker,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl CaughtSignals {
    fn catch() -> io::Result<Self> {
        let waker = signals::lasting_waker(&WAKER)?;
        waker.drain();
        NUMBER.store(0, Ordering::Release);
        let mut caught = Self { waker, before: Vec::with_capacity(CAUGHT.len()) };
        for number in CAUGHT {
            caught.before.push((number, signals::replace_handler(number, note_signal, 0)?));
        }
        Ok(caught)
    }

    #[expect(clippy::unused_self, reason = "the number means something only while signals are caught")]
    fn number(&self) -> libc::c_int {
        NUMBER.load(Ordering::Acquire)
    }
}

impl Drop for CaughtSignals {
    fn drop(&mut self) {
        for (number, action) in &self.before {
            signals::restore_handler(*number, action);
        }
    }
}

extern "C" fn note_signal(number: libc::c_int) {
    NUMBER.store(number, Ordering::Release);
    signals::wake_in_handler(&WAKER);
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::os::unix::ffi::OsStrExt;
    use std::thread::JoinHandle;

    use super::*;
    use crate::signals::{InterruptSignals, SIGNAL_TESTS, Signal};

    /// Both ends of a new terminal: the user's, and the program's.
    fn terminal() -> (File, File) {
        let person = OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("a terminal");
        rustix::pty::unlockpt(&person).expect("ours");
        let name = rustix::pty::ptsname(&person, []).expect("a name");
        let path = std::ffi::OsStr::from_bytes(name.to_bytes());
        let program = {
            use std::os::unix::fs::OpenOptionsExt;
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).expect("its other end")
        };
        (person, program)
    }

    fn shows_typing(terminal: &File) -> bool {
        tcgetattr(terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    /// Reads the user's view of the terminal until it ends with `text`.
    fn see(person: &mut File, text: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            assert!(
                poll::wait_for(&*person, PollInterest::READ, Some(Duration::from_secs(10))).expect("poll"),
                "{seen:?}"
            );
            let mut byte = [0];
            person.read_exact(&mut byte).expect("readable");
            seen.push(byte[0]);
        }
        String::from_utf8(seen).expect("text")
    }

    fn ask(program: &File) -> JoinHandle<io::Result<Option<String>>> {
        let program = program.try_clone().expect("descriptors");
        std::thread::spawn(move || read_password_on(&program, "Password: "))
    }

    #[test]
    fn typed_characters_are_not_shown() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut person, program) = terminal();
        assert!(shows_typing(&program));
        let asked = ask(&program);
        see(&mut person, "Password: ");
        assert!(!shows_typing(&program));
        person.write_all("sécret \n".as_bytes()).expect("typed");
        assert_eq!(asked.join().expect("no panic").expect("read").as_deref(), Some("sécret "));
        assert_eq!(see(&mut person, "\n"), "\r\n");
        assert!(shows_typing(&program));
    }

    #[test]
    fn the_end_of_input_is_an_empty_password() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut person, program) = terminal();
        let asked = ask(&program);
        see(&mut person, "Password: ");
        person.write_all(&[4]).expect("Ctrl-D typed");
        assert_eq!(asked.join().expect("no panic").expect("read").as_deref(), Some(""));
    }

    #[test]
    fn a_signal_restores_the_terminal_and_has_its_effect() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = InterruptSignals::install().expect("signals can be caught");
        let (mut person, program) = terminal();
        let asked = ask(&program);
        see(&mut person, "Password: ");
        person.write_all(b"half").expect("typed");
        signals::raise(libc::SIGHUP);
        assert_eq!(asked.join().expect("no panic").expect("read"), None);
        assert!(shows_typing(&program));
        assert_eq!(interrupts.pending(), Some(Signal::Hangup));
        interrupts.rearm().expect("signals can be caught");
    }

    #[test]
    fn a_file_is_no_terminal_and_a_terminal_is() {
        let (person, program) = terminal();
        assert!(is_terminal(&program));
        assert!(!is_terminal(&File::open("/dev/null").expect("there")));
        let size = Winsize { ws_row: 24, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&person, size).expect("resized");
        assert_eq!(window_columns(program.as_fd()), Some(132));
        assert_eq!(window_size(program.as_fd()).map(|size| size.ws_row), Some(24));
        assert!(width() > 0);
    }
}
