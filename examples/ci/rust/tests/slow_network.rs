//! The client over a bad network: the runner starts this test in the lab, where the other host is called far.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PORT: u16 = 9000;

/// The server on the other host: this program again, in that host's namespace.
struct Server(Child);

impl Server {
    fn start() -> Self {
        let own = std::env::current_exe().expect("the test's own file");
        let mut child = Command::new("ip")
            .args(["netns", "exec", "far"])
            .arg(own)
            .args(["--ignored", "--exact", "server", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("ip starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("ready")), "the server did not start");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "a process that the other test starts"]
fn server() {
    greeter::serve(PORT).expect("a free port");
}

#[test]
fn greets_within_its_deadline() {
    let _server = Server::start();
    for _ in 0..20 {
        let began = Instant::now();
        let line = greeter::greeting("far", PORT, Duration::from_secs(10)).expect("an answer");
        assert_eq!(line, "hello, hello");
        // Two round trips of 300 ms, and some for packets that were lost.
        assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
        assert!(began.elapsed() <= Duration::from_secs(8), "{:?}", began.elapsed());
    }
}
