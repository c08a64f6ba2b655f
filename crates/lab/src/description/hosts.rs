//! Hosts: their order, and their settings.

use core::ops::Range;

use toml::Spanned;

use super::error::DescriptionProblem;
use super::quantity::NamedQuantity;
use super::raw::{RawHost, RawLink, RawPath};
use super::types::HostDescription;
use super::unknown;
use crate::compile::sysctl;
use crate::plan::{FAR, NEAR, SysctlSetting, WIRE};

/// The congestion controls that the lab's kernel has.
pub const CONGESTION_CONTROLS: [&str; 16] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Default congestion control of a host.
const DEFAULT_CONGESTION_CONTROL: &str = "cubic";

/// Root queueing disciplines of hosts that need no parameters.
const HOST_QUEUEING: [&str; 7] = ["fq", "fq_codel", "fq_pie", "pfifo_fast", "sfq", "codel", "pie"];

/// Maximum length of a host's name, which also names its namespace and is in `/etc/hosts`.
const MAX_NAME_LENGTH: usize = 15;

/// Maximum number of links: more do not fit the addresses of the lab.
const MAX_LINKS: usize = 64;

const CHAIN_ADVICE: &str =
    "write the links in the order of the path, each from a host to the next: [\"near\", \"r1\"], [\"r1\", \"far\"]";

/// Names of the hosts in the order of the links.
pub(super) fn chain(raw: &RawPath) -> Result<Vec<String>, DescriptionProblem> {
    for name in raw.host.keys() {
        check_name(name)?;
    }
    let mut names = vec![NEAR.to_owned()];
    let Some(last) = raw.link.last() else {
        return Err(DescriptionProblem::new(
            0..0,
            "no link joins near and far",
            "add a [[link]] with between = [\"near\", \"far\"]",
        ));
    };
    if raw.link.len() > MAX_LINKS {
        let message = format!("{} links are more than the lab has addresses for", raw.link.len());
        return Err(DescriptionProblem::new(
            link_location(last),
            message,
            format!("describe the path with at most {MAX_LINKS}"),
        ));
    }
    for link in &raw.link {
        let next = next_host(link, &names, raw)?;
        names.push(next);
    }
    if names.last().map(String::as_str) != Some(FAR) {
        return Err(DescriptionProblem::new(link_location(last), "the last link does not end at far", CHAIN_ADVICE));
    }
    match raw.host.keys().find(|host| !names.contains(host.get_ref())) {
        Some(unused) => {
            let message = format!("no link leads to the host '{}'", unused.get_ref());
            Err(DescriptionProblem::new(unused.span(), message, CHAIN_ADVICE))
        }
        None => Ok(names),
    }
}

/// Location of a link in the text.
fn link_location(link: &RawLink) -> Range<usize> {
    link.between.as_ref().map_or(0..0, Spanned::span)
}

/// The host to which `link` leads from the last of `names`.
fn next_host(link: &RawLink, names: &[String], raw: &RawPath) -> Result<String, DescriptionProblem> {
    let Some(between) = &link.between else {
        let message = format!("link {} does not name the hosts that it joins", names.len());
        return Err(DescriptionProblem::new(first_key(link), message, "add between = [\"near\", \"far\"] to it"));
    };
    let [from, to] = between.get_ref().as_slice() else {
        return Err(DescriptionProblem::new(between.span(), "a link joins two hosts", CHAIN_ADVICE));
    };
    for host in [from, to] {
        if !raw.host.contains_key(host.get_ref().as_str()) {
            let message = format!("the host '{}' is not described", host.get_ref());
            let advice = format!("add [host.{}], or correct the name", host.get_ref());
            return Err(DescriptionProblem::new(host.span(), message, advice));
        }
    }
    let expected = names.last().map_or(NEAR, String::as_str);
    if from.get_ref() != expected {
        let message = format!("the link begins at '{}' where the chain has come to '{expected}'", from.get_ref());
        return Err(DescriptionProblem::new(from.span(), message, CHAIN_ADVICE));
    }
    if names.contains(to.get_ref()) {
        let message = format!("the link leads back to '{}'", to.get_ref());
        return Err(DescriptionProblem::new(to.span(), message, CHAIN_ADVICE));
    }
    if expected == FAR {
        return Err(DescriptionProblem::new(from.span(), "the path goes on after far", CHAIN_ADVICE));
    }
    Ok(to.get_ref().clone())
}

/// Location of a link that does not name its hosts: one of its keys.
fn first_key(link: &RawLink) -> Range<usize> {
    let spans = [&link.rate, &link.delay, &link.buffer].map(|key| key.as_ref().map(Spanned::span));
    let mtu = link.mtu.as_ref().map(Spanned::span);
    spans.into_iter().chain([mtu]).flatten().min_by_key(|span| span.start).unwrap_or(0..0)
}

fn check_name(name: &Spanned<String>) -> Result<(), DescriptionProblem> {
    let text = name.get_ref();
    let problem = |why: String, advice: &str| {
        Err(DescriptionProblem::new(name.span(), format!("the host's name '{text}' {why}"), advice))
    };
    if text.len() > MAX_NAME_LENGTH {
        return problem(format!("is longer than {MAX_NAME_LENGTH} characters"), "choose a shorter one");
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.bytes().all(is_plain) || text.ends_with('-') {
        return problem("is not a host name".to_owned(), "use small letters, digits and hyphens, with a letter first");
    }
    if text == WIRE || text == "localhost" || text.ends_with('6') {
        let advice = "choose another one: the lab reserves 'wire', 'localhost', and names that end with 6 (NAME6 is a \
                      host's IPv6 address)";
        return problem("is reserved".to_owned(), advice);
    }
    Ok(())
}

/// The hosts in the order of `names`.
pub(super) fn hosts(raw: &RawPath, names: &[String]) -> Result<Vec<HostDescription>, DescriptionProblem> {
    names.iter().filter_map(|name| raw.host.iter().find(|(key, _)| key.get_ref() == name)).map(host).collect()
}

fn host((name, raw): (&Spanned<String>, &RawHost)) -> Result<HostDescription, DescriptionProblem> {
    let congestion_control = match &raw.congestion_control {
        Some(text) => congestion_control(text)?,
        None => DEFAULT_CONGESTION_CONTROL.to_owned(),
    };
    Ok(HostDescription {
        name: name.get_ref().clone(),
        congestion_control,
        queueing: raw.queueing.as_ref().map(queueing).transpose()?,
        queueing_rate: raw
            .queueing_rate
            .as_ref()
            .map(|text| NamedQuantity { what: "the host's queueing rate", text }.rate())
            .transpose()?,
        sysctls: raw
            .sysctl
            .iter()
            .map(|(key, value)| setting(name.get_ref(), key, &value.get_ref().0))
            .collect::<Result<_, _>>()?,
        offload: raw.offload,
        server: server(name.get_ref(), raw)?,
    })
}

/// The name of a congestion control that the lab's kernel has.
pub(super) fn congestion_control(text: &Spanned<String>) -> Result<String, DescriptionProblem> {
    if CONGESTION_CONTROLS.contains(&text.get_ref().as_str()) {
        return Ok(text.get_ref().clone());
    }
    Err(unknown(text, "congestion control", CONGESTION_CONTROLS.into_iter()))
}

fn queueing(text: &Spanned<String>) -> Result<String, DescriptionProblem> {
    if HOST_QUEUEING.contains(&text.get_ref().as_str()) {
        return Ok(text.get_ref().clone());
    }
    Err(unknown(text, "queueing discipline for a host", HOST_QUEUEING.into_iter()))
}

/// Server of a host: far always serves, others when they specify it.
fn server(name: &str, raw: &RawHost) -> Result<Option<Vec<String>>, DescriptionProblem> {
    let Some(arguments) = &raw.server else {
        return Ok((name == FAR).then(Vec::new));
    };
    match arguments.get_ref().iter().find(|argument| argument.is_empty() || argument.contains(char::is_control)) {
        Some(argument) => Err(DescriptionProblem::new(
            arguments.span(),
            format!("the server argument {argument:?} is not valid"),
            "write each argument as a string of its own: [\"--read-rate\", \"5MB/s\"]",
        )),
        None => Ok(Some(arguments.get_ref().clone())),
    }
}

fn setting(host: &str, key: &Spanned<String>, value: &str) -> Result<SysctlSetting, DescriptionProblem> {
    let name = key.get_ref().as_str();
    let problem = |message: String, advice: &str| DescriptionProblem::new(key.span(), message, advice);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let has_parts = name.split('.').count() > 2 && name.split('.').all(|part| !part.is_empty());
    if !name.starts_with("net.") || !has_parts || !name.bytes().all(is_plain) {
        return Err(problem(
            format!("'{name}' is not the name of a network setting"),
            "write it with dots, in quotes, from net. on: \"net.ipv4.tcp_rmem\"",
        ));
    }
    if let Some(instead) = sysctl::reserved_key_remedy(name) {
        return Err(problem(format!("the lab itself sets '{name}'"), instead));
    }
    if host != NEAR && sysctl::is_system_wide(name) {
        return Err(problem(
            format!("'{name}' is one setting for the whole system, and cannot be set on '{host}' alone"),
            "write it under [host.near]: it holds for all hosts of the path",
        ));
    }
    check_value(key, value)?;
    Ok(SysctlSetting { key: name.to_owned(), value: value.trim().to_owned() })
}

/// Settings whose value the lab itself reads (to size the guest, to compute the bounds) must be readable.
fn check_value(key: &Spanned<String>, value: &str) -> Result<(), DescriptionProblem> {
    let name = key.get_ref().as_str();
    let problem =
        |why: &str, advice: &str| DescriptionProblem::new(key.span(), format!("{name} = '{value}' {why}"), advice);
    if value.trim().is_empty() || value.contains(char::is_control) {
        return Err(problem("is not a value", "write the value as the kernel shows it"));
    }
    if sysctl::is_triple(name) && sysctl::triple(value).is_none() {
        let advice = "write three whole numbers, none smaller than the one before, such as \"4096 131072 6291456\"";
        return Err(problem("is not what this setting holds", advice));
    }
    if sysctl::is_size(name) && value.trim().parse::<u32>().map_or(true, |number| i32::try_from(number).is_err()) {
        return Err(problem("is not a number of bytes", "write a whole number of bytes up to 2147483647"));
    }
    Ok(())
}
