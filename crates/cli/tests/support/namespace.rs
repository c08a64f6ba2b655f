//! Network namespace for a test, in a user namespace if this user needs one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::process::Process;

const LIMIT: Duration = Duration::from_secs(300);

/// Options of `unshare` for these namespaces.
#[track_caller]
pub(crate) fn unshare(options: &str) -> String {
    let allowed = |options: &str| {
        let tried = Command::new("unshare").args([options, "true"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let with_users = format!("-r{options}");
    let without = format!("-{options}");
    let found = [without, with_users].into_iter().find(|options| allowed(options));
    found.expect("these tests need namespaces of their own: run them as root, or allow user namespaces")
}

/// Network namespace that is removed on drop.
pub(crate) struct Namespace {
    holder: Process,
    options: String,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let options = unshare("n");
        let mut command = Command::new("unshare");
        command.arg(&options);
        Self::hold(command, options)
    }

    /// Another one of the same user namespace: interfaces can move between the two.
    pub(crate) fn beside(&self) -> Self {
        let mut command = self.command("unshare");
        command.arg("-n");
        Self::hold(command, self.options.clone())
    }

    fn hold(mut unshare: Command, options: String) -> Self {
        unshare.args(["sh", "-c", "echo ready; exec sleep 600"]);
        let holder = Process::start(unshare);
        holder.wait_for_output("ready", LIMIT);
        Self { holder, options }
    }

    /// Process whose namespace it is.
    pub(crate) fn id(&self) -> u32 {
        self.holder.id()
    }

    /// Program in the namespace.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        if self.options.contains('r') {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(format!("--target={}", self.holder.id())).arg("--net").arg(program.as_ref());
        command
    }

    /// Runs `ip` in the namespace with these arguments, separated by blanks; returns its output.
    #[track_caller]
    pub(crate) fn ip(&self, arguments: &str) -> String {
        self.output("ip", &arguments.split(' ').collect::<Vec<_>>())
    }

    /// Output of a program in the namespace that has to succeed.
    #[track_caller]
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output().expect("it runs");
        assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Setting in the namespace, with single blanks between numbers.
    pub(crate) fn read(&self, setting: &str) -> String {
        let path = format!("/proc/sys/{}", setting.replace('.', "/"));
        let output = self.command("cat").arg(path).output().expect("cat runs");
        String::from_utf8_lossy(&output.stdout).split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }
}
