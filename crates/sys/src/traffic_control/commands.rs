//! The commands of a plan: lines of `tc` and `ip`, executed in order on a cleared interface.

use linerate_model::change::intermediate_device;

use super::record::TrafficControlObject;
use super::{dual_queue, replay};
use crate::command;
use crate::error::{Error, Result};
use crate::iproute2;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcCommand {
    pub(super) is_tc: bool,
    pub(super) words: Vec<String>,
    line: String,
    /// Discipline that is made over rtnetlink instead, as `tc` may be too old for its options.
    object: Option<TrafficControlObject>,
}

impl TcCommand {
    /// True for a command that `tc` executes.
    const fn is_of_tc(&self) -> bool {
        self.is_tc && self.object.is_none()
    }
}

/// True when a value is commands, not a record.
pub(super) fn is_commands(value: &str) -> bool {
    value.lines().all(|line| line.starts_with("tc ") || line.starts_with("ip ")) && !value.trim().is_empty()
}

/// Parses commands as a shell would, and refuses those that are not about this interface or its intermediate device.
pub(super) fn parse(interface: &str, value: &str) -> Result<Vec<TcCommand>> {
    value.lines().map(|line| parse_line(interface, line)).collect()
}

fn parse_line(interface: &str, line: &str) -> Result<TcCommand> {
    let operation = || format!("setting up the traffic control of {interface}");
    let refused = |reason: &str| Error::refused(operation(), format!("{line:?} {reason}"));
    let mut words = shell_tokens(line).ok_or_else(|| refused("has an open quote, or one inside an argument"))?;
    let program = if words.is_empty() { String::new() } else { words.remove(0) };
    let is_known = match (program.as_str(), words.first().map(String::as_str)) {
        ("tc", Some("qdisc" | "class" | "filter")) => true,
        ("ip", Some("link")) => matches!(words.get(1).map(String::as_str), Some("add" | "set")),
        _ => false,
    };
    if !is_known || words.iter().any(|word| word.starts_with("-n") || word == "netns") {
        return Err(refused("is no command that sets up traffic control"));
    }
    let intermediate = intermediate_device(interface);
    let mut named =
        words.windows(2).filter(|pair| pair[0] == "dev" || pair[0] == "name").map(|pair| &pair[1]).peekable();
    let is_about_it = named.peek().is_some() && named.all(|name| name == interface || *name == intermediate);
    if !is_about_it {
        return Err(refused("is not about this interface or its intermediate device alone"));
    }
    let object = dual_queue::object(&words).transpose().map_err(|reason| refused(&format!("is refused: {reason}")))?;
    Ok(TcCommand { is_tc: program == "tc", words, line: line.to_owned(), object })
}

/// The tokens of a line of a shell, with single quotes as the only ones.
fn shell_tokens(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '\\' | '"' | '\t' => return None,
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// A token as `tc -batch` reads it.
fn batch_token(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '#']) { format!("'{word}'") } else { word.to_owned() }
}

/// Executes them on a cleared interface.
pub(super) fn run_all(interface: &str, commands: &[TcCommand]) -> Result<()> {
    let programs: &[&str] = if commands.iter().all(|command| command.is_tc) { &["tc"] } else { &["tc", "ip"] };
    programs.iter().try_for_each(|program| iproute2::require(program))?;
    let existing = replay::clear(interface)?;
    let mut done = 0;
    for run in commands.chunk_by(|one, other| one.is_of_tc() && other.is_of_tc()) {
        if run.iter().all(TcCommand::is_of_tc) {
            batch(interface, run, done, commands.len())?;
        } else {
            for (index, command) in run.iter().enumerate() {
                match &command.object {
                    Some(object) => make(interface, command, object, (done + index + 1, commands.len()))?,
                    None => one(interface, command, existing.as_deref(), done + index, commands.len())?,
                }
            }
        }
        done += run.len();
    }
    Ok(())
}

fn failed(interface: &str, command: &TcCommand, (number, all): (usize, usize), message: &str) -> Error {
    let operation = format!("setting up the traffic control of {interface}");
    let program = if command.is_tc { "tc" } else { "ip" };
    let reason = format!("command {number} of {all}, `{}`, failed: {program}: {message}", command.line);
    Error::refused(operation, reason)
}

/// Several commands of `tc`, up to the first that fails.
fn batch(interface: &str, run: &[TcCommand], done: usize, all: usize) -> Result<()> {
    let line =
        |command: &TcCommand| command.words.iter().map(|word| batch_token(word)).collect::<Vec<_>>().join(" ") + "\n";
    let input: String = run.iter().map(line).collect();
    let output = command::run_bound_to_thread("tc", &["-batch", "-"], Some(input.as_bytes()), iproute2::TIME_LIMIT)?;
    if output.status.success() {
        return Ok(());
    }
    let said = output.stderr_text();
    // `Command failed -:3`
    let number = said.rsplit("Command failed -:").next().and_then(|rest| rest.trim().parse::<usize>().ok());
    let at = number.and_then(|number| number.checked_sub(1)).filter(|at| *at < run.len());
    let said = said.lines().filter(|line| !line.starts_with("Command failed")).collect::<Vec<_>>().join(" ");
    Err(match at {
        Some(at) => failed(interface, &run[at], (done + at + 1, all), &said),
        None => failed(interface, &run[0], (done + 1, all), &said),
    })
}

/// Makes a discipline over rtnetlink.
fn make(interface: &str, command: &TcCommand, object: &TrafficControlObject, place: (usize, usize)) -> Result<()> {
    let made = replay::RecordReplayer::new().and_then(|mut replayer| replayer.make([object]));
    made.map_err(|cause| failed(interface, command, place, &cause.to_string()))
}

/// Runs a command of `ip`. One that adds an existing device does nothing.
fn one(interface: &str, command: &TcCommand, existing: Option<&str>, done: usize, all: usize) -> Result<()> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let is_there = |name: &str| existing == Some(name);
    if matches!(words[..], ["link", "add", "name" | "dev", name, "type", "ifb"] if is_there(name)) {
        return Ok(());
    }
    let output = command::run_bound_to_thread("ip", &words, None, iproute2::TIME_LIMIT)?;
    if output.status.success() {
        return Ok(());
    }
    let said = output.stderr_text().lines().collect::<Vec<_>>().join(" ");
    Err(failed(interface, command, (done + 1, all), &said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_about_the_interface_are_taken() {
        let take = |line: &str| parse("eth0", line);
        let taken = take("tc qdisc add dev eth0 root handle 1: htb default 10\nip link add name ifb4eth0 type ifb");
        let taken = taken.expect("about it");
        assert!(taken[0].is_tc && !taken[1].is_tc);
        assert_eq!(taken[1].words, ["link", "add", "name", "ifb4eth0", "type", "ifb"]);
        assert!(
            take("tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb4eth0").is_ok()
        );
        for wrong in [
            "tc qdisc add dev eth1 root htb",
            "tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev eth1",
            "tc qdisc add root htb",
            "tc qdisc add block 7 root htb",
            "tc -batch /etc/passwd",
            "tc actions add action drop dev eth0",
            "ip link set dev eth0 netns 1",
            "ip link del dev eth0",
            "ip -n other link set dev eth0 up",
            "ip route add default dev eth0",
            "rm -rf dev eth0",
            "tc qdisc add dev 'eth0",
            "",
        ] {
            assert!(take(&format!("{wrong}\n")).is_err(), "{wrong:?}");
        }
        assert!(is_commands("tc qdisc") && !is_commands("") && !is_commands("traffic control of eth0"));
    }

    #[test]
    fn tokens_are_those_of_the_shell() {
        assert_eq!(shell_tokens("tc  'a b' '' c'd e'"), Some(["tc", "a b", "", "cd e"].map(str::to_owned).to_vec()));
        for open in ["tc 'a", r"tc \'", "tc \"a\""] {
            assert_eq!(shell_tokens(open), None, "{open}");
        }
        assert_eq!(["a", "", "a b"].map(batch_token), ["a", "''", "'a b'"]);
    }
}
