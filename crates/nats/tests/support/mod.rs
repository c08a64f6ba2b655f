//! Real servers for tests: processes of nats-server with `JetStream`, ended on drop.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Version that `packaging/prerequisites.sh` installs.
pub(crate) const VERSION: &str = "2.15.2";

/// Longest wait for an event: elections take up to nine seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Program of the servers.
///
/// # Panics
///
/// Panics when it is not installed: the test did not run.
pub(crate) fn server_program() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let program = cache.expect("a home").join(format!("linerate/nats-server-{VERSION}/nats-server"));
    assert!(program.is_file(), "not run: {} is missing: run packaging/prerequisites.sh test", program.display());
    program
}

/// Waits until `holds`, at most [`LIMIT`].
#[track_caller]
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    wait_for(&|| what.to_owned(), holds);
}

#[track_caller]
fn wait_for(what: &dyn Fn() -> String, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "not within {LIMIT:?}: {}", what());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// Folder that is removed on drop.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linerate-nats-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[derive(Debug)]
struct Node {
    port: u16,
    monitor: u16,
    configuration: PathBuf,
    child: Option<Child>,
}

/// One server or a cluster of three.
#[derive(Debug)]
pub(crate) struct NatsServers {
    nodes: Vec<Node>,
    folder: Folder,
}

impl NatsServers {
    /// Cluster of three servers.
    pub(crate) fn cluster() -> Self {
        Self::start(3, true, "")
    }

    /// One server with further lines of configuration.
    pub(crate) fn single(lines: &str) -> Self {
        Self::start(1, true, lines)
    }

    /// One server without `JetStream`.
    pub(crate) fn without_jetstream() -> Self {
        Self::start(1, false, "")
    }

    fn start(count: usize, has_jetstream: bool, lines: &str) -> Self {
        let folder = Folder::new();
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let urls: Vec<String> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let nodes = routes.iter().enumerate().map(|(index, route)| {
            let (port, monitor) = (free_port(), free_port());
            let mut text = format!(
                "server_name: n{index}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n{lines}\n"
            );
            if has_jetstream {
                let store = folder.path(&format!("store{index}"));
                let _ = writeln!(text, "jetstream {{ store_dir: \"{}\" }}", store.display());
            }
            if count > 1 {
                let routes = urls.join(", ");
                let _ = writeln!(text, "cluster {{ name: test, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}");
            }
            let configuration = folder.file(&format!("n{index}.conf"), &text);
            Node { port, monitor, configuration, child: None }
        });
        let mut servers = Self { nodes: nodes.collect(), folder };
        for index in 0..count {
            servers.run(index);
        }
        let members = format!("\"cluster_size\": {count}");
        for node in &servers.nodes {
            wait_for(&|| servers.log(), || {
                let is_member =
                    || node.get("/jsz").is_some_and(|text| text.contains(&members) && text.contains("\"leader\""));
                node.is_healthy() && (count == 1 || is_member())
            });
        }
        servers
    }

    /// Addresses of the servers.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("nats://127.0.0.1:{}", node.port)).collect()
    }

    /// Port of the first server.
    pub(crate) fn port(&self) -> u16 {
        self.nodes[0].port
    }

    /// Folder of the servers, for further files.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Kills a server as `kill -9` does.
    pub(crate) fn kill(&mut self, index: usize) {
        let mut child = self.nodes[index].child.take().expect("it runs");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }

    /// Starts a server that was killed, and waits until it has caught up.
    pub(crate) fn restart(&mut self, index: usize) {
        self.run(index);
        wait_for(&|| self.log(), || self.nodes[index].is_healthy());
    }

    fn run(&mut self, index: usize) {
        let log = File::create(self.folder.path(&format!("log{index}"))).expect("a log");
        let mut command = Command::new(server_program());
        command.arg("-c").arg(&self.nodes[index].configuration).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.nodes[index].child = Some(command.spawn().expect("nats-server starts"));
    }

    /// Ends of the logs.
    fn log(&self) -> String {
        let texts: BTreeMap<usize, String> = (0..self.nodes.len())
            .map(|index| {
                let text = fs::read_to_string(self.folder.path(&format!("log{index}"))).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                (index, lines[lines.len().saturating_sub(5)..].join("\n"))
            })
            .collect();
        format!("the servers are ready: {texts:#?}")
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().filter_map(|node| node.child.as_mut()) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Node {
    fn is_healthy(&self) -> bool {
        self.get("/healthz").is_some_and(|text| text.contains("\"status\":\"ok\""))
    }

    /// Answer of the server's monitor.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// Certificates of an authority and a server on 127.0.0.1, by openssl.
pub(crate) fn certificates(folder: &Path) {
    let script = "
        set -e
        cd \"$0\"
        for name in ca other; do
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=$name \
                -keyout $name.key -out $name.pem
        done
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout server.key -out server.csr
        printf 'subjectAltName=IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' > server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
    ";
    let done = Command::new("sh").args(["-c", script]).arg(folder).output().expect("sh");
    assert!(done.status.success(), "not run: openssl is needed: {}", String::from_utf8_lossy(&done.stderr));
}
