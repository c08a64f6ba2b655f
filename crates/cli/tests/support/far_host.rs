//! Host with an sshd and keys of its own, in a network namespace of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::namespace::Namespace;
use crate::support::process::{FinishedChild, Process, eventually, run};

pub(crate) const LIMIT: Duration = Duration::from_secs(900);

/// Linux programs of this host without debug information: what is copied is a tenth of the size.
pub(crate) fn stripped() -> &'static str {
    static STRIPPED: OnceLock<(Scratch, String)> = OnceLock::new();
    let (_, path) = STRIPPED.get_or_init(|| {
        let scratch = Scratch::new();
        let path = scratch.path("linerate");
        let done = Command::new("strip").args(["-o", &path, env!("CARGO_BIN_EXE_linerate")]).status();
        assert!(done.is_ok_and(|status| status.success()), "not run: strip of binutils is needed");
        (scratch, path)
    });
    path
}

/// Far host. Its commands run with a home, a directory for temporary files and a `PATH` of its own.
pub(crate) struct FarHost {
    pub(crate) namespace: Namespace,
    pub(crate) scratch: Scratch,
    sshd: Process,
}

impl FarHost {
    /// Host without linerate. `shell`: lines that its shell runs before each command.
    pub(crate) fn new(shell: &str) -> Self {
        Self::with_compression("no", shell)
    }

    /// The same with this value of sshd's `Compression`: ssh needs seconds to compress a program.
    pub(crate) fn with_compression(compression: &str, shell: &str) -> Self {
        let (namespace, scratch) = (Namespace::new(), Scratch::new());
        for directory in ["tmp", "home/.cache", "bin", "near", "state"] {
            fs::create_dir_all(scratch.path(directory)).expect("a directory");
        }
        // What is tested is not how fast loopback is: a slower link leaves the processors to the other suites.
        for line in ["ip link set lo up", "tc qdisc add dev lo root tbf rate 300mbit burst 1mb latency 50ms"] {
            let (program, arguments) = line.split_once(' ').expect("two words");
            let done = namespace.command(program).args(arguments.split(' ')).status();
            assert!(done.is_ok_and(|status| status.success()), "not run: ip and tc of iproute2 are needed");
        }
        for key in ["host_key", "user_key", "other_key"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &scratch.path(key)]).status();
            assert!(made.is_ok_and(|status| status.success()), "not run: openssh-client is needed");
        }
        let shell = format!(
            "#!/bin/sh\nunset XDG_RUNTIME_DIR\nexport HOME={} TMPDIR={} LINERATE_STATE={} PATH={}:/usr/bin:/bin\n{shell}\n\
             exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            scratch.path("home"),
            scratch.path("tmp"),
            scratch.path("state"),
            scratch.path("bin"),
        );
        scratch.script("shell", shell);
        let sshd = start_sshd(&namespace, &scratch, compression);
        let host = Self { namespace, scratch, sshd };
        host.trust("host_key");
        let config = format!(
            "Host far\n HostName 127.0.0.1\n User root\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n \
             GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n",
            host.scratch.path("user_key"),
            host.scratch.path("known_hosts"),
        );
        let config = host.scratch.file("ssh_config", config);
        // The user's ssh reads the configuration of the user, not of $HOME.
        host.scratch.script("near/ssh", format!("#!/bin/sh\nexec /usr/bin/ssh -F {config} \"$@\"\n"));
        host
    }

    /// The same with linerate in its `PATH`.
    pub(crate) fn with_linerate(shell: &str) -> Self {
        Self::new(shell).and_linerate()
    }

    /// Adds linerate to its `PATH`.
    pub(crate) fn and_linerate(self) -> Self {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), self.scratch.path("bin/linerate")).expect("a link");
        self
    }

    /// Makes this key the one that the near host knows of the far one.
    pub(crate) fn trust(&self, key: &str) {
        let public = fs::read_to_string(self.scratch.path(&format!("{key}.pub"))).expect("made before");
        self.scratch.file("known_hosts", format!("127.0.0.1 {public}"));
    }

    /// linerate on the near host.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(program);
        let path = std::env::var("PATH").expect("there is one");
        command.args(arguments).env("PATH", format!("{}:{path}", self.scratch.path("near")));
        command
            .env("LINERATE_HISTORY", "off")
            .env("TERM", "xterm")
            .env("LINERATE_STATE", self.scratch.path("near-state"));
        command
    }

    /// Runs linerate on the near host to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> FinishedChild {
        run(self.command(env!("CARGO_BIN_EXE_linerate"), arguments), LIMIT)
    }

    /// Starts linerate on the near host.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Process::start(self.command(env!("CARGO_BIN_EXE_linerate"), arguments))
    }

    /// Processes in the namespace, without those that the tests hold, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let namespace = |process: u32| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let own = namespace(self.namespace.id());
        let numbers = fs::read_dir("/proc").expect("procfs").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let there = numbers.filter(|process: &u32| namespace(*process) == own);
        there
            .filter(|process| ![self.namespace.id(), self.sshd.id()].contains(process))
            .map(|process| {
                let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
                (process, String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned())
            })
            .filter(|(_, line)| !line.is_empty())
            .collect()
    }

    /// Waits for a process whose command line begins so.
    pub(crate) fn wait_for_process(&self, beginning: &str) -> u32 {
        let mut found = None;
        let came = eventually(LIMIT, || {
            found = self.processes().into_iter().find(|(_, line)| line.starts_with(beginning));
            found.is_some()
        });
        assert!(came, "no {beginning:?} among {:?}", self.processes());
        found.expect("it came").0
    }

    /// Port of the server of a session.
    pub(crate) fn wait_for_server(&self) -> u16 {
        let mut port = None;
        let came = eventually(LIMIT, || {
            let listening = self.listening();
            port = listening.iter().find_map(|line| {
                let is_tcp = line.starts_with("tcp");
                line.split_whitespace().nth(4).filter(|_| is_tcp)?.rsplit(':').next()?.parse().ok()
            });
            port.is_some()
        });
        assert!(came, "no server");
        port.expect("it came")
    }

    /// Sockets that listen, without sshd's.
    fn listening(&self) -> Vec<String> {
        let output = self.namespace.command("ss").arg("-Hltun").output().expect("ss of iproute2");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().filter(|line| !line.contains("127.0.0.1:22 ")).map(str::to_owned).collect()
    }

    /// Everything that a run may leave: processes, listening sockets, files.
    fn left(&self) -> String {
        let mut left = String::new();
        for (process, line) in self.processes() {
            let _ = writeln!(left, "process {process}: {line}");
        }
        for line in self.listening() {
            let _ = writeln!(left, "socket: {line}");
        }
        for directory in ["tmp", "home", "home/.cache"] {
            for file in files(Path::new(&self.scratch.path(directory))) {
                let _ = writeln!(left, "file: {}", file.display());
            }
        }
        left
    }

    /// Waits until nothing is left.
    #[track_caller]
    pub(crate) fn assert_clean(&self, after: &str) {
        let is_clean = eventually(Duration::from_secs(30), || self.left().is_empty());
        assert!(is_clean, "after {after}: {}", self.left());
    }
}

fn start_sshd(namespace: &Namespace, scratch: &Scratch, compression: &str) -> Process {
    // sshd separates its privileges there.
    let _ = fs::create_dir_all("/run/sshd");
    let config = format!(
        "Port 22\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n\
         Compression {compression}\nForceCommand {}\n",
        scratch.path("host_key"),
        scratch.path("authorized"),
        scratch.path("shell"),
    );
    fs::copy(scratch.path("user_key.pub"), scratch.path("authorized")).expect("space");
    let mut command = namespace.command("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &scratch.file("sshd_config", config)]);
    let mut sshd = Process::start(command);
    let listens = eventually(LIMIT, || sshd.stderr().contains("Server listening") || !sshd.is_running());
    assert!(listens && sshd.is_running(), "not run: openssh-server is needed: {}", sshd.stderr());
    sshd
}

/// Files and directories in a directory, without the usual ones.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
    entries.filter(|path| path.file_name().is_some_and(|name| name != ".cache")).collect()
}
