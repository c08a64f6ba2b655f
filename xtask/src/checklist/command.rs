//! Commands of the rows of docs/seeds-checks.tsv.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use linerate_rules::audit::{AuditRule, RULES};

use crate::repository::Repository;
use crate::workspace;

/// Port of the server of `served`, unlike iperf3's.
const PORT: &str = "52871";

/// Command of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowCommand {
    /// Arguments of linerate.
    Linerate(Vec<String>),
    /// Arguments of linerate, with a server of its own on this host.
    Served(Vec<String>),
    /// Audit of a made host with these settings, as running values.
    Running(Vec<String>),
    /// Audit of a made host with these settings in a drop-in file.
    File(Vec<String>),
    /// Audit rule, checked on the host for which it finds something, and on the similar one for which it finds nothing:
    /// the facts are of hardware or of counters.
    Rule(String),
    /// Test that checks the row: it needs what a command alone does not show.
    Test(String),
    /// Nothing to run; the expectation is the reason.
    Reason,
}

impl RowCommand {
    /// Parses the second column.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut tokens = text.split(' ').map(str::to_owned);
        let first = tokens.next().unwrap_or_default();
        let others: Vec<String> = tokens.collect();
        Ok(match (first.as_str(), &others[..]) {
            ("-", []) => Self::Reason,
            ("rule", [id]) => Self::Rule(id.clone()),
            ("tested-by", [name]) => Self::Test(name.clone()),
            ("rule" | "tested-by" | "-", _) => bail!("'{text}' takes one name"),
            ("running", _) => Self::Running(others),
            ("file", _) => Self::File(others),
            ("served", _) => Self::Served(others),
            _ => Self::Linerate([vec![first], others].concat()),
        })
    }

    /// Shown in the page.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Linerate(arguments) => format!("`linerate {}`", arguments.join(" ")),
            Self::Served(arguments) => format!("`linerate {}`, `iperf3 -s` there", arguments.join(" ")),
            Self::Running(settings) => format!("`linerate audit`, running `{}`", settings.join(" ")),
            Self::File(settings) => format!("`linerate audit`, drop-in file with `{}`", settings.join(" ")),
            Self::Rule(id) => format!("rule `{id}` on the hosts of its tests"),
            Self::Test(name) => format!("test `{name}`"),
            Self::Reason => "–".to_owned(),
        }
    }

    /// Runs it; returns the text in which the expectations are looked for.
    pub(super) fn output(&self, linerate: &Path, reason: &str) -> Result<String> {
        match self {
            Self::Linerate(arguments) => run(Command::new(linerate).args(arguments)),
            Self::Served(arguments) => served(linerate, arguments),
            Self::Running(settings) => audit(linerate, settings, false),
            Self::File(settings) => audit(linerate, settings, true),
            Self::Rule(id) => rule(id),
            Self::Test(name) => test(name),
            Self::Reason => Ok(reason.to_owned()),
        }
    }
}

/// Both outputs of a command.
fn run(command: &mut Command) -> Result<String> {
    let done = command.env("LINERATE_HISTORY", "off").env("COLUMNS", "100").output().context("starting linerate")?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

/// Server that ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn served(linerate: &Path, arguments: &[String]) -> Result<String> {
    let mut command = Command::new(linerate);
    command.args(["iperf3", "-s", "-p", PORT, "-B", "127.0.0.1", "--forceflush"]);
    let mut server = Server(command.stdout(Stdio::piped()).spawn().context("starting a server")?);
    let output = server.0.stdout.take().context("the server's output is a pipe")?;
    let is_listening = |line: &String| line.contains("Server listening");
    let found = BufReader::new(output).lines().map_while(Result::ok).find(is_listening);
    ensure!(found.is_some(), "the server ended before it listened on port {PORT}");
    run(Command::new(linerate).args(arguments).args(["-p", PORT]))
}

fn audit(linerate: &Path, settings: &[String], in_file: bool) -> Result<String> {
    let root = made_host(settings, in_file)?;
    let output = run(Command::new(linerate).args(["audit", "--verbose", "--root"]).arg(&root));
    fs::remove_dir_all(&root).context("removing the made host")?;
    output
}

/// Creates the files of a host with these settings as running values, or in a drop-in file.
fn made_host(settings: &[String], in_file: bool) -> Result<PathBuf> {
    let root = std::env::temp_dir().join(format!("linerate-checklist-{}", std::process::id()));
    let write = |path: &str, text: &str| -> Result<()> {
        let file = root.join(path);
        fs::create_dir_all(file.parent().context("a file in a directory")?)?;
        fs::write(&file, text).with_context(|| file.display().to_string())
    };
    write("proc/sys/kernel/osrelease", "6.12.38\n")?;
    write("proc/meminfo", "MemTotal: 16777216 kB\n")?;
    write("proc/sys/net/core/netdev_max_backlog", "1000\n")?;
    write("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n")?;
    let defaults = [
        ("ipv4/tcp_sack", "1"),
        ("ipv4/tcp_timestamps", "1"),
        ("ipv4/tcp_mem", "196608 262144 393216"),
        ("ipv4/tcp_rmem", "4096 131072 6291456"),
        ("ipv4/tcp_wmem", "4096 16384 4194304"),
        ("ipv4/tcp_congestion_control", "cubic"),
        ("core/rmem_max", "212992"),
    ];
    for (path, value) in defaults {
        write(&format!("proc/sys/net/{path}"), value)?;
    }
    let mut lines = String::new();
    for setting in settings {
        let (key, value) = setting.split_once('=').with_context(|| format!("'{setting}' is no KEY=VALUE"))?;
        let value = value.replace('+', " ");
        if in_file {
            writeln!(lines, "{key} = {value}")?;
        } else {
            write(&format!("proc/sys/{}", key.replace('.', "/")), &value)?;
        }
    }
    write("etc/sysctl.d/10-recipe.conf", &lines)?;
    Ok(root)
}

/// Findings of a rule on the hosts of its tests.
fn rule(id: &str) -> Result<String> {
    let rule: &AuditRule =
        RULES.iter().find(|rule| rule.id == id).with_context(|| format!("there is no rule '{id}'"))?;
    let findings = (rule.check)(&(rule.fires)());
    ensure!(!findings.is_empty(), "rule {id} finds nothing on the host of its test");
    ensure!((rule.check)(&(rule.silent)()).is_empty(), "rule {id} finds something where nothing is wrong");
    let text = findings.iter().map(|finding| format!("{}\n{}\n", finding.text, finding.remedy.join("\n")));
    Ok(format!("{}\n{}", text.collect::<String>(), rule.explanation))
}

/// Names the file that has a test of this name: `file::name`.
fn test(name: &str) -> Result<String> {
    let repository = Repository::read_files(&workspace::root())?;
    let (file, function) = name.split_once("::").with_context(|| format!("'{name}' is no FILE::TEST"))?;
    let found = repository
        .files()
        .find(|(path, text)| path.ends_with(&format!("{file}.rs")) && text.contains(&format!("fn {function}(")));
    let (path, _) = found.with_context(|| format!("there is no test '{name}'"))?;
    Ok(format!("{path} has {function}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        let parse = |text: &str| RowCommand::parse(text).expect("valid");
        assert_eq!(parse("-"), RowCommand::Reason);
        assert_eq!(parse("rule sack-off").text(), "rule `sack-off` on the hosts of its tests");
        assert_eq!(parse("calc bdp 1G 2ms").text(), "`linerate calc bdp 1G 2ms`");
        assert!(RowCommand::parse("rule").is_err() && RowCommand::parse("tested-by a b").is_err());
    }

    #[test]
    fn rules_and_tests_are_those_that_exist() {
        let output = |text: &str| RowCommand::parse(text).expect("valid").output(Path::new("/dev/null"), "reason");
        assert!(output("rule sack-off").expect("a rule").contains("net.ipv4.tcp_sack"));
        assert!(output("rule nothing").is_err() && output("tested-by checklist/command::no_such_test").is_err());
        assert!(output("tested-by checklist/command::commands_are_parsed").is_ok());
        assert_eq!(output("-").expect("a reason"), "reason");
    }
}
