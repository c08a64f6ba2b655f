//! Tests of the web page in Chromium: the browser tests are in `tests/browser/web.mjs`.
//!
//! Without Node.js or Chromium this fails with the installation command: `packaging/prerequisites.sh test`. Pictures of the page
//! are stored in `LINERATE_SCREENSHOTS`, else below `target`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, Server, free_port, linerate};

fn serve(scratch: &Scratch, arguments: &[&str]) -> (Server, u16) {
    let (port, web) = (free_port(), free_port());
    let mut command = linerate();
    command.args(["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &port.to_string(), &format!("--web={web}")]);
    command.args(arguments).env("LINERATE_HISTORY", scratch.path("history"));
    (Server::listening(command, web), web)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[test]
fn a_browser_measures_and_shows_its_result() {
    let scratch = Scratch::new();
    // Phases of two seconds, so that the tests take a minute.
    let (_server, web) = serve(&scratch, &["--web-history", "--server-max-duration", "5s"]);
    let (_full, full) = serve(&scratch, &["--max-sessions", "1"]);
    // An unread download holds the only session.
    let mut holder = TcpStream::connect(("127.0.0.1", full)).expect("it listens");
    holder.write_all(b"GET /garbage?ckSize=1024 HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut status = [0; 12];
    holder.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200", "the only session is taken");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser");
    let advice = "`packaging/prerequisites.sh test` installs what is missing";
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path);
    let chromium = chromium.unwrap_or_else(|| panic!("no Chromium in $PATH: {advice}"));
    assert!(tests.join("node_modules/playwright-core").is_dir(), "tests/browser has no node_modules: {advice}");
    let screenshots = std::env::var_os("LINERATE_SCREENSHOTS")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-pages"), PathBuf::from);
    let output = Command::new("node")
        .arg(tests.join("web.mjs"))
        .args([format!("http://127.0.0.1:{web}/"), format!("http://127.0.0.1:{full}/")])
        .arg(screenshots)
        .env("CHROMIUM", chromium)
        .output()
        .unwrap_or_else(|error| panic!("cannot start node: {error}. {advice}"));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shown.lines().filter(|line| line.starts_with("ok ")).count(), 8, "{shown}");
}
