//! Options of the transfer, after `--`: those of iperf3 that mean something here, with values that a transfer can have.

use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_sys::options::check_congestion;
use linerate_wire::parameters::MAX_TIME;

use crate::console;
use crate::exit::ExitStatus;
use crate::iperf3;

/// Options of iperf3 that have no effect on a transfer, and what does the same.
const WITHOUT_EFFECT: [(char, &[&str], &str); 4] = [
    ('c', &["client"], "the host comes before `--`"),
    ('p', &["port"], "-p comes before `--`"),
    ('B', &["bind"], "-B comes before `--`"),
    ('J', &["json", "json-stream"], "--json comes before `--`"),
];

/// Short options of iperf3 without a value, to which others may be joined (`-RJ`).
const FLAGS: &str = "46RZNVJdu";

/// The transfer that is asked for, for this command.
pub(crate) fn parameters(transfer: &[String], command: &str) -> Result<TestParameters, ExitStatus> {
    checked(transfer, command).map_err(|text| {
        console::error(&text, None);
        ExitStatus::Unable
    })
}

fn checked(transfer: &[String], command: &str) -> Result<TestParameters, String> {
    for (short, long, instead) in WITHOUT_EFFECT {
        if let Some(typed) = find(transfer, short, long) {
            return Err(format!("{} has no effect after `--`: {instead}", typed.option));
        }
    }
    check_time(transfer)?;
    let parameters = iperf3::transfer(transfer)
        .map_err(|text| format!("{text}\n`linerate {command} --help` shows the position of the transfer's options"))?;
    if parameters.protocol == TestProtocol::Udp {
        return Err(format!("{command} needs TCP: UDP has no window and no congestion control"));
    }
    if parameters.direction == TestDirection::Bidirectional {
        return Err("only one direction can be diagnosed at a time: omit --bidir".to_owned());
    }
    if parameters.end == EndCondition::Time(core::time::Duration::ZERO) {
        return Err(format!("-t: {}", time_rule()));
    }
    if let Some(name) = &parameters.congestion {
        // The path takes half a minute, at whose end no transfer would begin.
        check_congestion(name).map_err(|cause| cause.to_string())?;
    }
    Ok(parameters)
}

/// Refuses a time that iperf3 would read as another one: as `atoi(3)`, for which 0.1 and `abc` are 0, and 0 never ends.
fn check_time(transfer: &[String]) -> Result<(), String> {
    let Some(TypedOption { option, value: Some(value) }) = find(transfer, 't', &["time"]) else { return Ok(()) };
    let seconds = value.parse().ok().filter(|seconds| (1..=MAX_TIME.as_secs()).contains(seconds));
    seconds.map(|_: u64| ()).ok_or_else(|| format!("{option} {value}: {}", time_rule()))
}

fn time_rule() -> String {
    format!("the time of the transfer is a whole number of seconds from 1 to {}", MAX_TIME.as_secs())
}

/// An option as it was typed.
struct TypedOption<'a> {
    option: &'a str,
    /// Its value, if one follows.
    value: Option<&'a str>,
}

/// The first use of an option: `-t 5`, `-t5`, `-Rt 5`, `--time 5` or `--time=5`.
fn find<'a>(transfer: &'a [String], short: char, long: &[&str]) -> Option<TypedOption<'a>> {
    transfer.iter().enumerate().find_map(|(index, argument)| {
        let next = transfer.get(index + 1).map(String::as_str);
        if let Some(name) = argument.strip_prefix("--") {
            let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let option = &argument[..2 + name.len()];
            return long.contains(&name).then(|| TypedOption { option, value: value.or(next) });
        }
        let joined = argument.strip_prefix('-')?;
        let (at, _) = joined.char_indices().find(|(_, letter)| !FLAGS.contains(*letter) || *letter == short)?;
        let attached = joined[at..].strip_prefix(short)?;
        let value = if attached.is_empty() { next } else { Some(attached) };
        let option = if at == 0 { &argument[..=short.len_utf8()] } else { argument };
        Some(TypedOption { option, value })
    })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn check(line: &str) -> Result<TestParameters, String> {
        let transfer: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        checked(&transfer, "diagnose")
    }

    #[test]
    fn a_time_that_would_never_end_is_refused() {
        let range = "a whole number of seconds from 1 to 86400";
        for (line, typed) in [
            ("-t 0.1", "-t 0.1: "),
            ("-t abc", "-t abc: "),
            ("-t 0", "-t 0: "),
            ("-t0", "-t 0: "),
            ("-R -t 10s", "-t 10s: "),
            ("-Rt 1m", "-Rt 1m: "),
            ("--time=0", "--time 0: "),
            ("--time -5", "--time -5: "),
            ("-t 86401", "-t 86401: "),
            // The last one counts.
            ("-t 5 -t 0", "-t: "),
        ] {
            let error = check(line).expect_err(line);
            assert!(error.starts_with(typed) && error.ends_with(range), "{line}: {error}");
        }
        for (line, seconds) in [("-t 5", 5), ("-P4 -Rt30", 30), ("--time=86400 -C reno", 86_400), ("", 10)] {
            let end = check(line).expect(line).end;
            assert_eq!(end, EndCondition::Time(Duration::from_secs(seconds)), "{line}");
        }
    }

    #[test]
    fn options_without_an_effect_are_refused() {
        for (line, option) in [
            ("-c other", "-c has"),
            ("-cother", "-c has"),
            ("--client=other", "--client has"),
            ("-p 5202", "-p has"),
            ("-t 5 -J", "-J has"),
            ("-RJ", "-RJ has"),
            ("--json-stream", "--json-stream has"),
            ("-B 192.0.2.1", "-B has"),
        ] {
            let error = check(line).expect_err(line);
            assert!(error.starts_with(option) && error.contains("before `--`"), "{line}: {error}");
        }
        assert!(check("-u").is_err_and(|error| error.contains("needs TCP")));
        assert!(check("--bidir").is_err_and(|error| error.contains("omit --bidir")));
        // Values are not options.
        let unknown = check("-C no-such").expect_err("no host has it");
        assert!(unknown.contains("\"no-such\" (TCP_CONGESTION)"), "{unknown}");
        assert!(check("-C reno -w 64K -P 2 -Z --fq-rate 95M -n 1M").is_ok());
    }
}
