//! The terminal.

use core::sync::atomic::{AtomicI32, Ordering};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result, check};
use crate::poll::{self, Interest, PollItem, Waker};
use crate::signals;

/// Whether a person may look at it.
pub fn is_terminal(descriptor: &impl AsFd) -> bool {
    descriptor.as_fd().is_terminal()
}

/// How many characters fit on a line: what the terminal at standard output (else at standard error) says, else
/// `$COLUMNS`, else 80.
#[must_use]
pub fn width() -> usize {
    let told = || window_columns(io::stdout().as_fd()).or_else(|| window_columns(io::stderr().as_fd()));
    let configured = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    told().or_else(configured).filter(|columns| *columns > 0).unwrap_or(80)
}

/// How many lines the terminal at standard output (else at standard error) has; `None` when neither is one.
#[must_use]
pub fn height() -> Option<usize> {
    let rows = |size: Option<libc::winsize>| size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
    rows(window_size(io::stdout().as_fd())).or_else(|| rows(window_size(io::stderr().as_fd())))
}

fn window_columns(descriptor: BorrowedFd<'_>) -> Option<usize> {
    window_size(descriptor).map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn window_size(descriptor: BorrowedFd<'_>) -> Option<libc::winsize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes one winsize, and `size` is one that is ours alone.
    check(unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) }).ok()?;
    Some(size)
}

/// The longest password that is read, in bytes.
const LONGEST_PASSWORD: usize = 4096;

/// Asks a person for a password on the terminal, which shows nothing of what is typed.
///
/// The terminal is put right again in every case, also when a signal (Ctrl-C, `SIGTERM`, `SIGHUP`, Ctrl-\) comes; the
/// signal then has its usual effect, and [`Error::Cancelled`] is returned if the process survives that.
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
        let _silence = Silence::of(terminal)?;
        terminal.write_all(prompt.as_bytes())?;
        let line = read_line(terminal, &signals);
        // The newline that was typed was not shown either.
        terminal.write_all(b"\n")?;
        line?
    };
    let number = signals.number();
    drop(signals);
    if number != 0 {
        // SAFETY: raise only sends this thread the signal that it would have got, under the handling it had.
        unsafe { libc::raise(number) };
        return Ok(None);
    }
    Ok(Some(line))
}

fn read_line(mut terminal: &File, signals: &CaughtSignals) -> io::Result<String> {
    let mut line = Vec::new();
    while signals.number() == 0 {
        let mut items = [PollItem::new(terminal, Interest::READ), PollItem::new(signals.waker, Interest::READ)];
        poll::wait(&mut items, None)?;
        if !items[0].is_readable() {
            continue;
        }
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if line.len() < LONGEST_PASSWORD => line.push(byte[0]),
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::E2BIG)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::from_raw_os_error(libc::EILSEQ))
}

/// Keeps a terminal from showing what is typed.
struct Silence<'a> {
    terminal: &'a File,
    before: libc::termios,
}

impl<'a> Silence<'a> {
    fn of(terminal: &'a File) -> io::Result<Self> {
        // SAFETY: termios is integers, for which zero is a value.
        let mut before: libc::termios = unsafe { core::mem::zeroed() };
        // SAFETY: `before` is ours alone.
        check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut before) })?;
        let mut silent = before;
        silent.c_lflag &= !(libc::ECHO | libc::ECHONL);
        silent.c_lflag |= libc::ICANON | libc::ISIG;
        // SAFETY: `silent` is filled and lives through the call. What was typed before the question is thrown away.
        check(unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSAFLUSH, &raw const silent) })?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        // SAFETY: `before` is what the terminal itself said. If it is gone there is nothing to put right.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSAFLUSH, &raw const self.before) };
    }
}

static NUMBER: AtomicI32 = AtomicI32::new(0);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static WAKER: OnceLock<Waker> = OnceLock::new();

const CAUGHT: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Holds signals that would end the process until the terminal has been put right.
struct CaughtSignals {
    waker: &'static Waker,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl CaughtSignals {
    fn catch() -> io::Result<Self> {
        let waker = if let Some(waker) = WAKER.get() {
            waker
        } else {
            let new = Waker::new()?;
            WAKER.get_or_init(|| new)
        };
        waker.drain();
        NUMBER.store(0, Ordering::Release);
        DESCRIPTOR.store(waker.as_fd().as_raw_fd(), Ordering::Release);
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
    signals::wake_in_handler(&DESCRIPTOR);
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::ffi::CStr;
    use std::os::unix::ffi::OsStrExt;
    use std::thread::JoinHandle;

    use super::*;
    use crate::signals::{Interrupts, SIGNAL_TESTS, Signal};

    /// Both ends of a new terminal: where a person would sit, and where a program would.
    fn terminal() -> (File, File) {
        let person = OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("a terminal");
        let mut name = [0_u8; 64];
        // SAFETY: the descriptor is open; the pointer and length describe `name`.
        unsafe {
            check(libc::unlockpt(person.as_raw_fd())).expect("ours");
            assert_eq!(libc::ptsname_r(person.as_raw_fd(), name.as_mut_ptr().cast(), name.len()), 0);
        }
        let name = CStr::from_bytes_until_nul(&name).expect("a name");
        let path = std::ffi::OsStr::from_bytes(name.to_bytes());
        let program = {
            use std::os::unix::fs::OpenOptionsExt;
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).expect("its other end")
        };
        (person, program)
    }

    fn shows_typing(terminal: &File) -> bool {
        // SAFETY: termios is integers, for which zero is a value.
        let mut state: libc::termios = unsafe { core::mem::zeroed() };
        // SAFETY: `state` is ours alone.
        check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut state) }).expect("a terminal");
        state.c_lflag & libc::ECHO != 0
    }

    /// Reads what the person sees until it ends with `text`.
    fn see(person: &mut File, text: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            assert!(poll::wait_for(&*person, Interest::READ, Some(Duration::from_secs(10))).expect("poll"), "{seen:?}");
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
    fn what_is_typed_is_not_shown() {
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
    fn a_signal_puts_the_terminal_right_and_has_its_effect() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = Interrupts::install().expect("signals can be caught");
        let (mut person, program) = terminal();
        let asked = ask(&program);
        see(&mut person, "Password: ");
        person.write_all(b"half").expect("typed");
        // SAFETY: raise only sends a signal to this thread, and a handler for it is installed.
        unsafe { libc::raise(libc::SIGHUP) };
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
        let size = libc::winsize { ws_row: 24, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request reads one winsize.
        check(unsafe { libc::ioctl(person.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).expect("resized");
        assert_eq!(window_columns(program.as_fd()), Some(132));
        assert_eq!(window_size(program.as_fd()).map(|size| size.ws_row), Some(24));
        assert!(width() > 0);
    }
}
