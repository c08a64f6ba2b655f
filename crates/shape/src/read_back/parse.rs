//! Parser of `tc` output. Not every `tc` prints every kind as JSON: many print HTB classes as text.

use core::fmt;

use linerate_units::BitRate;
use serde_json::{Map, Value};

use super::{FoundClass, FoundDiscipline, FoundFilter};
use crate::plan::{QdiscHandle, TcParent};

/// Error of unreadable `tc` output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBackError {
    /// Listed objects, for example `queueing disciplines`.
    list: &'static str,
    /// Cause.
    reason: String,
}

impl fmt::Display for ReadBackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot parse tc's list of {}: {}", self.list, self.reason)
    }
}

impl core::error::Error for ReadBackError {}

/// Parses `tc -j qdisc show`, of all interfaces or, with `device`, of that one.
pub fn disciplines(text: &str, device: Option<&str>) -> Result<Vec<FoundDiscipline>, ReadBackError> {
    let entries = entries(&without_unknown_options(text), "queueing disciplines")?;
    Ok(entries.iter().filter_map(|entry| discipline(entry, device)).collect())
}

/// Removes what `tc` prints into its JSON for options of a kind that it does not know: `[Unknown qdisc, optlen=108]`.
fn without_unknown_options(text: &str) -> String {
    const BEGIN: &str = "[Unknown qdisc, optlen=";
    let mut parts = text.split(BEGIN);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str(part.split_once(']').map_or(part, |(_, after)| after));
    }
    clean
}

/// Parses `tc -j class show dev DEVICE`, as JSON or as text.
pub fn classes(text: &str, device: &str) -> Result<Vec<FoundClass>, ReadBackError> {
    if text.trim_start().starts_with('[') {
        let entries = entries(text, "classes")?;
        return Ok(entries.iter().filter_map(|entry| class_of_json(entry, device)).collect());
    }
    Ok(text.lines().filter_map(|line| class_of_text(line, device)).collect())
}

/// Parses `tc -j filter show dev DEVICE parent PARENT`.
pub fn filters(text: &str, device: &str, parent: TcParent) -> Result<Vec<FoundFilter>, ReadBackError> {
    let entries = entries(text, "filters")?;
    Ok(entries.iter().filter_map(|entry| filter(entry, device, parent)).collect())
}

/// Parses `tc filter show dev DEVICE parent PARENT` without `-j`: older versions of iproute2 (5.9, for example) print `u32`
/// filters as text within their JSON.
#[must_use]
pub fn filters_of_text(text: &str, device: &str, parent: TcParent) -> Vec<FoundFilter> {
    let mut filters: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        // Matches and actions follow their filter on lines of their own, those of `fw` after an empty one.
        if line.trim().is_empty() {
            continue;
        }
        match filters.last_mut() {
            Some(words) if line.starts_with([' ', '\t']) => words.extend(line.split_whitespace()),
            _ => filters.push(line.split_whitespace().collect()),
        }
    }
    filters.iter().filter_map(|words| filter_of_text(words, device, parent)).collect()
}

/// One filter, such as `filter protocol all pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:1 action
/// order 1: mirred (Egress Redirect to device ifb0) stolen`.
fn filter_of_text(words: &[&str], device: &str, parent: TcParent) -> Option<FoundFilter> {
    let place = |key: &str| words.iter().position(|word| word.trim_start_matches('*') == key);
    let after = |key: &str| words.get(place(key)? + 1).copied();
    words.first().filter(|word| **word == "filter")?;
    let class = after("flowid").or_else(|| after("classid")).and_then(|handle| handle.parse().ok());
    let is_redirect = words.windows(2).any(|pair| pair == ["Redirect", "to"]);
    let redirect = after("device").filter(|_| is_redirect).map(|name| name.trim_end_matches(')').to_owned());
    let polices = place("police").is_some();
    let goes = class.is_some() || redirect.is_some() || polices || place("action").is_some();
    goes.then_some(FoundFilter {
        device: device.to_owned(),
        parent,
        protocol: after("protocol")?.to_owned(),
        kind: words.get(place("pref")? + 2).map(|kind| (*kind).to_owned())?,
        class,
        redirect,
        polices,
    })
}

fn entries(text: &str, what: &'static str) -> Result<Vec<Map<String, Value>>, ReadBackError> {
    if text.trim().is_empty() {
        return Ok(vec![]);
    }
    serde_json::from_str(text).map_err(|error| ReadBackError { list: what, reason: error.to_string() })
}

fn text_of<'v>(entry: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    entry.get(key)?.as_str()
}

fn handle_of(entry: &Map<String, Value>, key: &str) -> Option<QdiscHandle> {
    text_of(entry, key)?.parse().ok()
}

/// Reads a rate, which `tc` writes as byte/s in JSON.
fn rate_of(entry: &Map<String, Value>, key: &str) -> Option<BitRate> {
    entry.get(key)?.as_f64().map(|bytes| BitRate::from_bits_per_second(bytes * 8.0))
}

fn discipline(entry: &Map<String, Value>, device: Option<&str>) -> Option<FoundDiscipline> {
    let kind = text_of(entry, "kind")?.to_owned();
    let parent = if entry.get("root").is_some_and(|root| root != &Value::Bool(false)) {
        Some(TcParent::Root)
    } else if kind == "ingress" || kind == "clsact" {
        Some(TcParent::Ingress)
    } else {
        handle_of(entry, "parent").map(TcParent::At)
    };
    let options = entry.get("options").and_then(Value::as_object);
    let rate = options.and_then(|options| rate_of(options, "bandwidth").or_else(|| rate_of(options, "rate")));
    let device = text_of(entry, "dev").or(device)?.to_owned();
    let options = options.cloned().unwrap_or_default();
    Some(FoundDiscipline { device, kind, handle: handle_of(entry, "handle")?, parent, rate, options })
}

fn class_of_json(entry: &Map<String, Value>, device: &str) -> Option<FoundClass> {
    let options = entry.get("options").and_then(Value::as_object);
    let rate = |key: &str| rate_of(entry, key).or_else(|| rate_of(options?, key));
    Some(FoundClass {
        device: device.to_owned(),
        kind: text_of(entry, "class").or_else(|| text_of(entry, "kind"))?.to_owned(),
        handle: handle_of(entry, "handle")?,
        rate: rate("rate"),
        ceiling: rate("ceil"),
    })
}

/// Parses `class htb 1:10 parent 1:1 leaf 10: prio 0 rate 73328bit ceil 220Kbit burst 1513b cburst 1513b`.
fn class_of_text(line: &str, device: &str) -> Option<FoundClass> {
    let mut words = line.split_whitespace();
    if words.next() != Some("class") {
        return None;
    }
    let kind = words.next()?.to_owned();
    let handle = words.next()?.parse().ok()?;
    let rest: Vec<_> = words.collect();
    let after = |key: &str| rest.windows(2).find(|pair| pair[0] == key).and_then(|pair| rate(pair[1]));
    Some(FoundClass { device: device.to_owned(), kind, handle, rate: after("rate"), ceiling: after("ceil") })
}

/// Parses a rate as `tc` prints it: `220Kbit`, `73328bit`, `1Gbit`.
fn rate(text: &str) -> Option<BitRate> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "bit" => 1.0,
        "Kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        "Tbit" => 1e12,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| BitRate::from_bits_per_second(number * factor))
}

fn filter(entry: &Map<String, Value>, device: &str, parent: TcParent) -> Option<FoundFilter> {
    // `tc` lists the chain and the hash table before their filters: those have no options or no target.
    let options = entry.get("options").and_then(Value::as_object)?;
    let actions = options.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let action =
        |kind: &str| actions.iter().filter_map(Value::as_object).find(|one| text_of(one, "kind") == Some(kind));
    let redirect = action("mirred").filter(|one| text_of(one, "mirred_action") == Some("redirect"));
    let class = handle_of(options, "flowid").or_else(|| handle_of(options, "classid"));
    // A policer without the keyword `action` is printed among the options.
    let polices = action("police").is_some() || text_of(options, "kind") == Some("police");
    let redirect = redirect.and_then(|one| text_of(one, "to_dev")).map(str::to_owned);
    let goes = class.is_some() || redirect.is_some() || polices || !actions.is_empty();
    goes.then(|| FoundFilter {
        device: device.to_owned(),
        parent,
        protocol: text_of(entry, "protocol").unwrap_or_default().to_owned(),
        kind: text_of(entry, "kind").unwrap_or_default().to_owned(),
        class,
        redirect,
        polices,
    })
}
