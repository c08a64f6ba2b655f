//! Tests of the live picture in a terminal (tmux): the screen in the middle of a run, and what every end leaves behind.

use std::process::Command;
use std::time::Duration;

use crate::support::process::{eventually, run};
use crate::support::{Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(60);

/// Terminal of tmux with a shell, on a socket of its own; killed when dropped.
struct TmuxTerminal {
    folder: Scratch,
}

impl TmuxTerminal {
    fn new((width, height): (u16, u16)) -> Self {
        let terminal = Self { folder: Scratch::new() };
        let size = [width, height].map(|length| length.to_string());
        // A shell without a start-up file, with a prompt that no output contains.
        let shell = "env -u NO_COLOR LC_ALL=C.UTF-8 PS1='prompt> ' bash --norc --noprofile";
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], shell]);
        terminal.tmux(&["set-option", "-g", "status", "off"]);
        terminal.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
        terminal.wait_for("prompt>");
        terminal
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.path("socket")).args(arguments);
        command
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        run(self.command(arguments), LIMIT).expect_code(0).stdout
    }

    /// Lines of the screen, without blanks at their ends.
    fn screen(&self) -> Vec<String> {
        self.tmux(&["capture-pane", "-p"]).lines().map(|line| line.trim_end().to_owned()).collect()
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> Vec<String> {
        self.wait_until(text, |screen| screen.iter().any(|line| line.contains(text)))
    }

    #[track_caller]
    fn wait_until(&self, expected: &str, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut screen = Vec::new();
        let came = eventually(LIMIT, || {
            screen = self.screen();
            holds(&screen)
        });
        assert!(came, "no {expected:?} on the screen:\n{}", screen.join("\n"));
        screen
    }

    /// Waits for a whole picture for which `holds` is true; `part` names what that is about.
    #[track_caller]
    fn wait_for_picture(&self, size: (u16, u16), command: &str, part: &str, holds: impl Fn(&[String]) -> bool) {
        let (mut screen, mut lacking) = (Vec::new(), Vec::new());
        let came = eventually(LIMIT, || {
            screen = self.screen();
            lacking = lacking_parts(&screen, size, command);
            lacking.extend((!holds(&screen)).then(|| part.to_owned()));
            lacking.is_empty()
        });
        assert!(came, "the picture lacks {lacking:?}:\n{}", screen.join("\n"));
    }

    /// Types a command line.
    fn start(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.press("Enter");
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn is_alternate(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Waits for the shell's prompt after the program, on the normal screen, and returns the program's exit code and
    /// what is on the screen. The terminal must echo what is typed again.
    #[track_caller]
    fn end(&self) -> (String, String) {
        self.wait_until("an empty prompt", |screen| {
            screen.iter().rfind(|line| !line.is_empty()).is_some_and(|line| line == "prompt>")
        });
        assert!(!self.is_alternate(), "{}", self.screen().join("\n"));
        let before = self.screen().join("\n");
        let file = self.folder.path("state");
        self.start(&format!("(echo code=$?; stty -a; echo done) >{file}"));
        let state = || std::fs::read_to_string(&file).unwrap_or_default();
        assert!(eventually(LIMIT, || state().contains("done")), "{}", state());
        let state = state();
        let has_mode = |mode: &&&str| state.split([' ', ';', '\n']).any(|word| word == **mode);
        let missing: Vec<_> = ["echo", "icanon", "isig", "opost"].iter().filter(|mode| !has_mode(mode)).collect();
        assert!(missing.is_empty(), "the terminal is not restored, without {missing:?}: {state}");
        let code = state.lines().next().unwrap_or_default().to_owned();
        let _ = std::fs::remove_file(&file);
        (code, before)
    }
}

impl Drop for TmuxTerminal {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

fn server() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    Server::listening(command, port)
}

/// `linerate COMMAND 127.0.0.1 -p PORT` with more arguments, without a record.
fn line(command: &str, port: u16, more: &str) -> String {
    let program = linerate().get_program().to_string_lossy().into_owned();
    format!("clear; {program} --no-history {command} 127.0.0.1 -p {port} {more}")
}

/// Parts of a picture that the screen lacks: its title, both charts with a curve, the limit, and the keys, all within the width.
fn lacking_parts(screen: &[String], (width, height): (u16, u16), command: &str) -> Vec<String> {
    let mut lacking = Vec::new();
    let mut expect = |holds: bool, part: &str| lacking.extend((!holds).then(|| part.to_owned()));
    let title = format!("linerate {command} 127.0.0.1, port ");
    expect(screen.first().is_some_and(|line| line.starts_with(&title)), &title);
    expect(screen.len() <= usize::from(height), "its height");
    expect(screen.iter().all(|line| line.chars().count() <= usize::from(width)), "its width");
    expect(is_full_picture(screen), "rates, round-trip times and the remaining time");
    let line_of = |part: &str| screen.iter().position(|line| line.starts_with(part));
    for part in ["Goodput", "Delay", "LIMITED BY", "q: stop, show the results   s: end this phase"] {
        expect(line_of(part).is_some(), part);
    }
    let is_curve = |character: char| ('\u{2801}'..='\u{28ff}').contains(&character) || character == '•';
    // Below the title, which has a legend, and above the next part.
    let has_curve = |title: &str, next: &str| {
        let lines = line_of(title).zip(line_of(next)).and_then(|(title, next)| screen.get(title + 1..next));
        lines.is_some_and(|lines| lines.iter().any(|line| line.contains(is_curve)))
    };
    expect(has_curve("Goodput", "Delay"), "a curve of the goodput");
    expect(has_curve("Delay", "LIMITED BY"), "a curve of the delay");
    lacking
}

fn is_full_picture(screen: &[String]) -> bool {
    let has = |text: &str| screen.iter().any(|line| line.contains(text));
    has("LIMITED BY") && has("bit/s") && has("RTT ") && !has("RTT -") && has("s left")
}

#[test]
fn the_picture_fits_in_the_middle_of_a_run_at_every_size() {
    let server = server();
    for size in [(120, 30), (80, 24), (60, 16)] {
        let terminal = TmuxTerminal::new(size);
        terminal.start(&line("test", server.port, "-P 1 -t 30s"));
        terminal.wait_for_picture(size, "test", "a limit", |screen| !screen.iter().any(|line| line == "LIMITED BY  -"));
        assert!(terminal.is_alternate());
        terminal.press("q");
        let (code, screen) = terminal.end();
        assert_eq!(code, "code=3", "{screen}");
        assert!(screen.contains("127.0.0.1 · port") && screen.contains("↑ up    1 stream"), "{screen}");
    }
}

#[test]
fn ended_phases_are_followed_by_the_next_and_the_summary_stays() {
    let server = server();
    let terminal = TmuxTerminal::new((80, 24));
    terminal.start(&line("test", server.port, "-P 1 -t 60s"));
    terminal.wait_until("the first run", |screen| is_full_picture(screen) && screen[2].starts_with("up, 1 stream"));
    terminal.press("s");
    terminal.wait_until("the second run", |screen| is_full_picture(screen) && screen[2].starts_with("down, 1 stream"));
    terminal.press("Space");
    let (code, screen) = terminal.end();
    assert_eq!(code, "code=0", "ended phases are complete: {screen}");
    let summary: Vec<&str> = screen.lines().filter(|line| !line.is_empty() && !line.contains("prompt>")).collect();
    assert!(summary.len() <= 12 && summary[0].starts_with("127.0.0.1 · port"), "{screen}");
    assert!(screen.contains("↑ up    1 stream") && screen.contains("↓ down  1 stream"), "{screen}");
}

#[test]
fn the_load_goes_through_its_phases() {
    let server = server();
    let terminal = TmuxTerminal::new((80, 24));
    terminal.start(&line("load", server.port, "--phases down,up --idle 60s -t 60s"));
    terminal.wait_until("the idle phase", |screen| screen.get(2).is_some_and(|line| line.starts_with("idle  ")));
    terminal.wait_for("RTT ");
    // An end of the ramp begins the measured part, one of that part ends the phase. Where the ramp ends by itself before the
    // key is read, that ends the measured part: with a wait for a change after each key, at most one is too many, which
    // ends the ramp of the upload.
    let stage = |screen: &[String]| screen.get(2).map(|line| line.replace(|letter: char| letter.is_ascii_digit(), ""));
    let mut before = stage(&terminal.screen());
    while !before.as_ref().is_some_and(|stage| stage.starts_with("up  ")) {
        terminal.press("s");
        let screen = terminal.wait_until("the next part", |screen| stage(screen) != before);
        before = stage(&screen);
    }
    terminal.wait_for_picture((80, 24), "load", "an upload as the third phase", |screen| {
        screen[1].starts_with("✓ idle   ✓ down   ▶ up")
            && screen.iter().any(|line| line.starts_with("Goodput") && line.contains("↑ up "))
    });
    terminal.press("q");
    let (code, screen) = terminal.end();
    assert_eq!(code, "code=3", "{screen}");
    let lines = screen.lines().filter(|line| !line.is_empty() && !line.contains("prompt>")).count();
    assert!(lines <= 14, "a summary, and the note on the load: {screen}");
}

#[test]
fn the_path_is_drawn() {
    let server = server();
    let terminal = TmuxTerminal::new((80, 24));
    terminal.start(&line("path", server.port, ""));
    let screen = terminal.wait_until("a search", |screen| {
        let has = |text: &str| screen.iter().any(|line| line.contains(text));
        has("LIMITED BY") && has("capacity") && has("bit/s")
    });
    assert!(screen[0].starts_with("linerate path 127.0.0.1, port "), "{screen:#?}");
    terminal.press("q");
    terminal.end();
}

#[test]
fn every_end_restores_the_terminal() {
    let server = server();
    for (end, expected) in [("C-c", "code=3"), ("TERM", "code=3"), ("INT INT", "code=3"), ("QUIT", "code=131")] {
        let terminal = TmuxTerminal::new((80, 24));
        terminal.start(&line("test", server.port, "-P 1 -t 60s"));
        terminal.wait_until("a picture", is_full_picture);
        if end == "C-c" {
            terminal.press(end);
        } else {
            // Two at once are one request, as by timeout(1).
            let kill =
                end.split(' ').map(|name| format!("kill -{name} $(pgrep -P $shell -x linerate)")).collect::<Vec<_>>();
            let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
            let mut command = Command::new("sh");
            command.args(["-c", &format!("shell={}; {}", shell.trim(), kill.join("; "))]);
            run(command, LIMIT);
        }
        let (code, screen) = terminal.end();
        assert_eq!(code, expected, "{end}:\n{screen}");
        assert!(code != "code=3" || screen.contains("↑ up    1 stream"), "{end}: {screen}");
    }
}

#[test]
fn a_suspended_run_returns_the_terminal_and_takes_it_again() {
    let server = server();
    let terminal = TmuxTerminal::new((80, 24));
    terminal.start(&line("test", server.port, "-P 1 -t 120s"));
    terminal.wait_until("a picture", is_full_picture);
    terminal.press("C-z");
    terminal.wait_for("Stopped");
    assert!(!terminal.is_alternate());
    terminal.start("fg");
    terminal.wait_until("the picture again", |screen| is_full_picture(screen) && terminal.is_alternate());
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    terminal.wait_for_picture((100, 30), "test", "its phases", |screen| {
        screen.iter().any(|line| line.contains("  Phases"))
    });
    terminal.tmux(&["resize-window", "-x", "20", "-y", "8"]);
    terminal.wait_until("lines only", |screen| {
        screen.first().is_some_and(|line| line.chars().count() <= 20) && screen.iter().any(|line| line == "q: stop")
    });
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.wait_until("a picture", is_full_picture);
    terminal.press("q");
    let (code, screen) = terminal.end();
    assert_eq!(code, "code=3", "{screen}");
}

#[test]
fn a_narrow_terminal_and_no_live_have_the_line() {
    let server = server();
    for (size, more) in [((20, 24), ""), ((80, 24), "--no-live"), ((40, 24), "--live")] {
        let terminal = TmuxTerminal::new(size);
        terminal.start(&line("test", server.port, &format!("-P 1 --up -t 2s {more}")));
        terminal.wait_until("a progress line", |screen| {
            assert!(!screen.iter().any(|line| line.starts_with("LIMITED BY")), "{screen:#?}");
            screen.iter().any(|line| line.contains("↑ up    1 stream"))
        });
        assert!(!terminal.is_alternate());
        let (code, screen) = terminal.end();
        assert_eq!(code, "code=0", "{screen}");
        assert_eq!(screen.contains("the picture needs"), more == "--live", "{screen}");
    }
}

#[test]
fn without_a_terminal_a_picture_is_refused() {
    let server = server();
    let mut command = linerate();
    command.args(["--no-history", "test", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1s", "--live"]);
    let refused = run(command, LIMIT).expect_code(2);
    assert!(
        refused.stderr.contains("--live needs a terminal") && refused.stderr.contains("--json-stream"),
        "{refused:#?}"
    );
}

#[test]
fn a_refused_connection_shows_no_picture() {
    let terminal = TmuxTerminal::new((80, 24));
    terminal.start(&line("load", free_port(), ""));
    terminal.wait_for("linerate serve");
    let (code, screen) = terminal.end();
    assert_eq!(code, "code=2", "{screen}");
    assert!(screen.contains("Connection refused") && screen.contains("linerate serve"), "{screen}");
}
